// Philox 4x32-10 for kernels: the words of one element in order. The same streams as ndd/_cpu/philox.py.
//
//   Words w(sample.stream, element);   stands before the first word of an element
//   w.next()                           the next word, 32 bits
//   w.next64()                         two words, the first one low
//   w.canonical(), w.canonical64()     uniform in [0, 1): from one word with 24 bits, from two with 53
//   w.below(limit)                     an integer in [0, limit), each equally likely
//   philox_block(key, counter, sequence, word)   the four words of one block
#ifndef NDD_PHILOX_CUH
#define NDD_PHILOX_CUH

inline void philox_block(unsigned long long key, unsigned long long counter, unsigned long long sequence,
                         unsigned int* word) {
  typedef unsigned long long u64;
  typedef unsigned int u32;
  u32 k0 = u32(key), k1 = u32(key >> 32);
  u32 a = u32(counter), b = u32(counter >> 32), c = u32(sequence), d = u32(sequence >> 32);
  for (int round = 0; round < 10; round++) {
    const u64 p = u64(a) * 0xD2511F53u, q = u64(c) * 0xCD9E8D57u;
    a = u32(q >> 32) ^ b ^ k0;
    b = u32(q);
    c = u32(p >> 32) ^ d ^ k1;
    d = u32(p);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  word[0] = a;
  word[1] = b;
  word[2] = c;
  word[3] = d;
}

struct Words {
  typedef unsigned long long u64;
  typedef unsigned int u32;
  u64 key, counter, sequence;
  u32 word[4];
  int place;

  Words(const u64* stream, u64 element) {
    const u64 position = stream[3] + 257ull * element;
    key = stream[0];
    counter = stream[1] + (position >> 2);
    sequence = stream[2] + (counter < stream[1] ? 1 : 0);
    place = int(position & 3);
    block();
  }

  void block() { philox_block(key, counter, sequence, word); }

  u32 next() {
    if (place == 4) {
      counter++;
      if (counter == 0) sequence++;
      place = 0;
      block();
    }
    // Chosen, not indexed: the block stays in registers.
    const u32 found = place == 0 ? word[0] : place == 1 ? word[1] : place == 2 ? word[2] : word[3];
    place++;
    return found;
  }

  u64 next64() {
    const u64 low = next();
    return (u64(next()) << 32) | low;
  }

  double canonical() {
    const float found = float(next()) * 2.3283064365386963e-10f;
    return found < 1.0f ? found : 0.99999994f;
  }

  double canonical64() {
    const double found = double(next64()) * 5.421010862427522e-20;
    return found < 1.0 ? found : 0.99999999999999989;
  }

  u64 below(u64 limit) {
    if (limit > 4294967296ull) {
      while (true) {
        const u64 high = below_word(((limit - 1) >> 32) + 1);
        const u64 found = (high << 32) | next();
        if (found < limit) return found;
      }
    }
    return below_word(limit);
  }

  u64 below_word(u64 limit) {
    const u64 refused = (4294967296ull - limit) % limit;
    u64 product = next() * limit;
    while ((product & 0xFFFFFFFFull) < refused) product = next() * limit;
    return product >> 32;
  }
};

#endif
