// One thread an element: a word, or two if the parameters are double, becomes a number of the range.
#include "philox.cuh"

inline float affine(Words& words, float start, float scale, float last) {
  return fminf(fmaf(float(words.next()), scale, start), last);
}
inline double affine(Words& words, double start, double scale, double last) {
  return fmin(fma(double(words.next64()), scale, start), last);
}

extern "C" __global__ void uniform(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    long long total = 1;
    for (long long extent : s.out0_shape) total *= extent;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < total;
         i += (long long)gridDim.x * blockDim.x) {
      Words words(s.stream, i);
      s.out0[i] = convert<OUT0>(affine(words, s.affine[0], s.affine[1], s.affine[2]));
    }
  }
}
