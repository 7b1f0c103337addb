// out = matrix * in + offset for each pixel: COLUMNS channels in, ROWS channels out, PACK pixels a thread.
// COLUMNS and ROWS are 1 or 3, PACK a power of two for which PACK elements are 16 bytes at most.
#include "pack.cuh"
#include "scalar.cuh"

template <class PIXEL>
inline float mixed(const Sample& s, int row, PIXEL channel) {
  float sum = s.matrix[row][0] * channel(0);
#pragma unroll
  for (int c = 1; c < COLUMNS; c++) sum += s.matrix[row][c] * channel(c);
  return sum + s.matrix[row][COLUMNS];
}

// PACK neighbours: COLUMNS packs of PACK elements make ROWS packs.
inline void pixels(const Sample& s, long long first) {
  Pack<IN, PACK> from[COLUMNS];
  Pack<OUT, PACK> to[ROWS];
  const Pack<IN, PACK>* source = (const Pack<IN, PACK>*)(s.in0 + first * COLUMNS);
#pragma unroll
  for (int i = 0; i < COLUMNS; i++) from[i] = source[i];
#pragma unroll
  for (int k = 0; k < PACK; k++)
#pragma unroll
    for (int row = 0; row < ROWS; row++) {
      const int at = k * ROWS + row;
      to[at / PACK].element[at % PACK] = convert<OUT>(mixed(s, row, [&](int c) {
        return (float)number(from[(k * COLUMNS + c) / PACK].element[(k * COLUMNS + c) % PACK]);
      }));
    }
#pragma unroll
  for (int i = 0; i < ROWS; i++) store(s.out0 + first * ROWS + i * PACK, to[i], PACK);
}

KERNEL_NAME(linear_color)(const Sample* samples, int count, Shared shared) {
  EACH_SAMPLE(s) {
    // So many pixels go before the first one at an address for wide loads (3 * 5 and 1 * 15 are -1 modulo 16).
    const unsigned long long misplaced = (unsigned long long)s.in0 / sizeof(IN);
    long long head = (COLUMNS == 3 ? 5 : 15) * misplaced % PACK;
    if (head > s.items) head = s.items;
    const long long groups = (s.items - head) / PACK, single = s.items - groups * PACK;
    EACH_ITEM(g, groups) pixels(s, head + g * PACK);
    EACH_ITEM(i, single) {
      const long long p = i < head ? i : groups * PACK + i;
#pragma unroll
      for (int row = 0; row < ROWS; row++)
        s.out0[p * ROWS + row] =
            convert<OUT>(mixed(s, row, [&](int c) { return (float)number(s.in0[p * COLUMNS + c]); }));
    }
  }
}
