// Poisson counts for a block of threads: the numbers of ndd/noise/poisson.py, in an order that keeps warps together.
//
// A count of a mean below 12 is the number of uniform numbers whose product stays above exp(-mean). Each lane goes
// through elements of its own, and all lanes make one Philox block at the same time, whichever number they need next.
// The product is float, from the high words alone, with bounds of its error: where they leave open whether it is above
// (one element in 10,000), and for means from 12 on, `exact` counts in double, again one block for all lanes at a time.
#ifndef NDD_POISSON_CUH
#define NDD_POISSON_CUH

#include "philox.cuh"

// ln(k!) for k < 256; filled by all threads of a block, which then wait.
struct LogFactorials {
  double entry[256];

  void fill() {
    for (int k = threadIdx.x; k < 256; k += blockDim.x) entry[k] = lgamma(k + 1.0);
  }
  double operator()(double k) const { return k < 256.0 ? entry[int(k)] : lgamma(k + 1.0); }
};

// A count of a mean below 12, one block of words for each `step`.
struct SmallCount {
  typedef unsigned long long u64;
  typedef unsigned int u32;
  enum Found { GOES_ON, COUNTED, UNSURE };
  u64 counter, sequence;
  float product, low, high;  // the product is surely below the limit below `low`, surely above it above `high`
  int count, phase;
  bool skip;  // the first number of a block lies before the element

  SmallCount() {}

  SmallCount(const u64* stream, u64 element, float mean) {
    const u64 position = stream[3] + 257ull * element;
    phase = int(position & 3);
    // Of phase 3 the first high word stands in the block behind.
    counter = stream[1] + (position >> 2);
    sequence = stream[2] + (counter < stream[1] ? 1 : 0);
    if (phase == 3 && ++counter == 0) sequence++;
    skip = phase == 1 || phase == 2;
    product = 1.0f;
    count = 0;
    const float limit = expf(-mean);
    // 64 numbers, each off by 2^-22 from the low word left out and 2^-23 from roundings, stay below 2^-15.
    low = limit * (1.0f - 3.1e-5f);
    high = limit * (1.0f + 3.1e-5f);
  }

  Found step(u64 key) {
    u32 word[4];
    philox_block(key, counter, sequence, word);
    const u32 first = phase & 1 ? word[0] : word[1], second = phase & 1 ? word[2] : word[3];
    if (first < 1u << 22 && !skip) widen(first);
    if (second < 1u << 22) widen(second);
    const float one = skip ? 1.0f : product * (float(first) * 2.3283064365386963e-10f);
    const float two = one * (float(second) * 2.3283064365386963e-10f);
    if (skip || one > high) {
      count += skip ? 0 : 1;
      if (two > high) {
        if (++count >= 62) return UNSURE;
        product = two;
        skip = false;
        if (++counter == 0) sequence++;
        return GOES_ON;
      }
      return two < low ? COUNTED : UNSURE;
    }
    return one < low ? COUNTED : UNSURE;
  }

  // The low word left out may raise a number by 1 / high word.
  void widen(u32 word) {
    const float part = 1.001f / float(word);
    low *= 1.0f - part;
    high *= 1.0f + part;
  }
};

// Devroye's rejection from normal, constant and exponential pieces (1986) for means of at least 12.
struct LargeCount {
  typedef unsigned long long u64;
  typedef unsigned int u32;
  enum State { FIRST_BLOCK, ATTEMPT, POLAR, TAIL };
  u64 key, counter, sequence;
  u32 word[4];  // of the block before
  int offset;   // of the next pair of numbers in it
  State state = FIRST_BLOCK;
  double m, d, root, spread, slope, right, total, log_mean, log_factorial;
  double u, e, spare;
  bool kept = false;

  LargeCount(const u64* stream, u64 element, double mean, const LogFactorials& table) {
    const u64 position = stream[3] + 257ull * element;
    key = stream[0];
    counter = stream[1] + (position >> 2);
    sequence = stream[2] + (counter < stream[1] ? 1 : 0);
    offset = int(position & 3);
    const double pi = 3.141592653589793;
    m = floor(mean);
    log_mean = log(mean);
    log_factorial = table(m);
    root = sqrt(m);
    const double far = sqrt(2.0 * m * log(32.0 * m / (pi / 4)));
    d = floor(fmax(6.0, fmin(m, far)) + 0.5);
    spread = sqrt(width() / 2.0);
    slope = 1.0 / width();
    right = left() + sqrt(pi / 4 * width()) * exp(slope);
    total = one() + 2.0 * width() * exp(-d * slope * (1.0 + d / 2.0)) / d;
  }

  double width() const { return 2.0 * m + d; }
  double left() const { return root * 1.2533141373155001; }        // sqrt(pi / 2)
  double one() const { return right + 2.0 + 1.0129030479320018; }  // exp(1 / 78)

  static double uniform(u32 low, u32 high) {
    const double found = double(((u64)high << 32) | low) * 5.421010862427522e-20;
    return found < 1.0 ? found : 0.99999999999999989;
  }

  // Takes one block further; true if the count is found.
  bool step(const LogFactorials& table, double* count) {
    u32 next[4];
    philox_block(key, counter, sequence, next);
    if (state == FIRST_BLOCK) {
      state = ATTEMPT;
      advance(next);
      return false;
    }
    const double first = uniform(pick(next, 0), pick(next, 1)), second = uniform(pick(next, 2), pick(next, 3));
    bool normal = false, proposed = false;
    double z = 0.0, x = 0.0, weight = 0.0;
    if (state == ATTEMPT) {
      u = total * first;
      e = -log(1.0 - second);
      if (u <= right) {
        z = spare;
        normal = kept;
        kept = false;
        if (!normal) state = POLAR;
      } else {
        proposed = u <= one();
        if (!proposed) state = TAIL;
        x = u <= right + 1.0 ? -1.0 : u <= right + 2.0 ? 0.0 : 1.0;
        weight = u <= right + 2.0 ? 0.0 : 1.0 / 78.0;
      }
    } else if (state == POLAR) {
      const double a = 2.0 * first - 1.0, b = 2.0 * second - 1.0, square = a * a + b * b;
      normal = !(square > 1.0 || square == 0.0);
      if (normal) {
        const double scale = sqrt(-2.0 * log(square) / square);
        spare = a * scale;
        kept = true;
        z = b * scale;
      }
    } else {
      const double y = d - log(1.0 - first) * 2.0 * width() / d;
      x = ceil(y);
      weight = -d * slope * (1.0 + y / 2.0);
      proposed = true;
    }
    if (normal) {
      const double y = 1.0 + fabs(z) * spread;
      const bool below = u <= left();
      x = below ? floor(-fabs(z) * root - 1.0) : ceil(y);
      weight = below ? -z * z / 2.0 : y * (2.0 - y) * slope;
      proposed = below ? x >= -m : x <= d;
    }
    const bool single = state == TAIL && proposed;
    if (normal || proposed) state = ATTEMPT;
    if (proposed && weight - e - x * log_mean <= log_factorial - table(x + m)) {
      *count = x + m;
      return true;
    }
    // A tail takes one number only: the next pair begins with the other one.
    if (!single) advance(next);
    else if (offset < 2) offset += 2;
    else {
      offset -= 2;
      advance(next);
    }
    return false;
  }

  u32 pick(const u32* next, int i) const {
    const u32* w = word;
    const u32 at0 = w[i], at1 = i + 1 < 4 ? w[(i + 1) & 3] : next[(i + 1) & 3];
    const u32 at2 = i + 2 < 4 ? w[(i + 2) & 3] : next[(i + 2) & 3], at3 = i + 3 < 4 ? w[(i + 3) & 3] : next[(i + 3) & 3];
    return offset == 0 ? at0 : offset == 1 ? at1 : offset == 2 ? at2 : at3;
  }

  void advance(const u32* next) {
    for (int i = 0; i < 4; i++) word[i] = next[i];
    if (++counter == 0) sequence++;
  }
};

// The count of one element in double, whatever its mean.
inline double exact_count(const unsigned long long* stream, unsigned long long element, double mean,
                          const LogFactorials& table) {
  double count = 0.0;
  if (mean >= 12.0) {
    LargeCount large(stream, element, mean, table);
    while (!large.step(table, &count)) {
    }
    return count;
  }
  Words words(stream, element);
  const double limit = exp(-mean);
  double product = double(words.next64()) * 5.421010862427522e-20;
  while (product > limit) {
    product *= double(words.next64()) * 5.421010862427522e-20;
    count += 1.0;
  }
  return count;
}

#endif
