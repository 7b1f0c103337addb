// One thread an element: in float, or in double if the parameters are.
#include "draws.cuh"

inline float scaled(Words& words, float mean, float stddev) {
  return float(fma(double(draw_normal(words)), double(stddev), double(mean)));
}
inline double scaled(Words& words, double mean, double stddev) { return fma(draw_normal64(words), stddev, mean); }

extern "C" __global__ void normal(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    long long total = 1;
    for (long long extent : s.out0_shape) total *= extent;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < total;
         i += (long long)gridDim.x * blockDim.x) {
      Words words(s.stream, i);
      s.out0[i] = convert<OUT0>(scaled(words, s.mean[0], s.stddev[0]));
    }
  }
}
