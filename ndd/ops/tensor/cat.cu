// One thread PACK elements of the output. A row of the output is made of a part of each input; `ends` says where these
// end.
#include "pack.cuh"

PER_PACK(join) {
  constexpr int INPUTS = sizeof(s.ends) / sizeof(s.ends[0]);
  const IN0* const* inputs = &s.in0;  // the pointers in0, in1, ... lie next to each other
  const long long row = s.ends[INPUTS - 1];
  // 64-bit division costs several times as much.
  long long o = first < row ? 0 : first <= 0xffffffffll ? (unsigned int)first / (unsigned int)row : first / row;
  long long at = first - o * row;
  int low = 0, high = INPUTS - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (at < s.ends[middle]) high = middle;
    else low = middle + 1;
  }
  Pack<OUT, PACK> pack;
#pragma unroll
  for (int k = 0; k < PACK; k++) {
    if (k < size) {
      if (at == row) {
        at = 0;
        low = 0;
        o++;
      }
      while (at >= s.ends[low]) low++;
      const long long start = low ? s.ends[low - 1] : 0;
      pack.element[k] = inputs[low][o * (s.ends[low] - start) + at - start];
      at++;
    }
  }
  store(s.out0 + first, pack, size);
}
