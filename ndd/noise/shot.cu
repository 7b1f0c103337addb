// A block of threads takes TILE elements at a time: most are counted at once, the others are listed and counted exactly.
#include "poisson.cuh"

#define TILE 2048

inline float mean_of(IN0 value, float factor) { return fmaxf(float(value) / factor, 0.0f); }

extern "C" __global__ void __launch_bounds__(256) shot(const Sample* samples, int count, Shared shared) {
  __shared__ LogFactorials factorials;
  __shared__ unsigned short listed[TILE];
  __shared__ int listed_count;
  bool filled = false;
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    const float factor = s.factor[0];
    long long total = 1;
    for (long long extent : s.out0_shape) total *= extent;
    for (long long base = blockIdx.x * (long long)TILE; base < total; base += gridDim.x * (long long)TILE) {
      const int size = total - base < TILE ? int(total - base) : TILE;
      if (factor == 0.0f) {
        for (int i = threadIdx.x; i < size; i += blockDim.x) s.out0[base + i] = s.in0[base + i];
        continue;
      }
      __syncthreads();
      if (threadIdx.x == 0) listed_count = 0;
      __syncthreads();
      SmallCount small;
      bool busy = false;
      int element = 0, next = threadIdx.x;
      while (true) {
        while (!busy && next < size) {
          element = next;
          next += blockDim.x;
          const float mean = mean_of(s.in0[base + element], factor);
          if (mean == 0.0f || !(mean < 2147483646.0f)) {
            s.out0[base + element] = convert<OUT0>(mean * factor);
          } else if (mean >= 12.0f) {
            listed[atomicAdd(&listed_count, 1)] = (unsigned short)element;
          } else {
            small = SmallCount(s.stream, base + element, mean);
            busy = true;
          }
        }
        if (!busy) break;
        const SmallCount::Found found = small.step(s.stream[0]);
        busy = found == SmallCount::GOES_ON;
        if (found == SmallCount::COUNTED) s.out0[base + element] = convert<OUT0>(float(small.count) * factor);
        else if (!busy) listed[atomicAdd(&listed_count, 1)] = (unsigned short)element;
      }
      __syncthreads();
      if (listed_count && !filled) {
        factorials.fill();
        filled = true;
        __syncthreads();
      }
      for (int i = threadIdx.x; i < listed_count; i += blockDim.x) {
        const long long e = base + listed[i];
        const double mean = mean_of(s.in0[e], factor);
        s.out0[e] = convert<OUT0>(float(exact_count(s.stream, e, mean, factorials)) * factor);
      }
    }
  }
}
