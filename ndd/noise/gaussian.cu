// One thread an element: in float, or in double if the parameters are. The lanes of a warp take every fourth element:
// these stand at the same word of their blocks, and all of the warp needs a second block or none does.
#include "draws.cuh"

inline float noisy(float value, Words& words, float mean, float stddev) {
  return value + float(fma(double(draw_normal(words)), double(stddev), double(mean)));
}
inline double noisy(double value, Words& words, double mean, double stddev) {
  return value + fma(draw_normal64(words), stddev, mean);
}

KERNEL_NAME(gaussian)(const Sample* samples, int count, Shared shared) {
  const int place = (threadIdx.x & ~127u) + (threadIdx.x & 31u) * 4 + (threadIdx.x >> 5 & 3u);
  EACH_SAMPLE(s) {
    for (long long first = blockIdx.x * (long long)blockDim.x; first < s.items; first += (long long)gridDim.x * blockDim.x) {
      const long long i = first + place;
      if (i >= s.items) continue;
      Words words(s.stream, i);
      s.out0[i] = convert<OUT0>(noisy(decltype(s.mean + 0)(s.in0[i]), words, s.mean, s.stddev));
    }
  }
}
