// One thread eight elements of the output. A row of the output is made of a part of each input; `ends` says where these
// end.
#include "pack.cuh"

constexpr int COUNT = 8;  // the plan knows it too

extern "C" __global__ void join(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    constexpr int INPUTS = sizeof(s.ends) / sizeof(s.ends[0]);
    const IN0* const* inputs = &s.in0;  // the pointers in0, in1, ... lie next to each other
    const long long row = s.ends[INPUTS - 1], total = s.total;
    for (long long chunk = blockIdx.x * (long long)blockDim.x + threadIdx.x; chunk < s.chunks;
         chunk += (long long)gridDim.x * blockDim.x) {
      const long long first = chunk * COUNT;
      // 64-bit division costs several times as much.
      long long o = first < row ? 0 : first <= 0xffffffffll ? (unsigned int)first / (unsigned int)row : first / row;
      long long at = first - o * row;
      int low = 0, high = INPUTS - 1;
      while (low < high) {
        const int middle = (low + high) / 2;
        if (at < s.ends[middle]) high = middle;
        else low = middle + 1;
      }
      const int made = total - first < COUNT ? (int)(total - first) : COUNT;
      Pack<OUT, COUNT> pack;
#pragma unroll
      for (int k = 0; k < COUNT; k++) {
        if (k < made) {
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
      store(s.out0 + first, pack, made);
    }
  }
}
