// One thread an element: 1 where its word is below the threshold.
#include "philox.cuh"

extern "C" __global__ void coin_flip(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    long long total = 1;
    for (long long extent : s.out0_shape) total *= extent;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < total;
         i += (long long)gridDim.x * blockDim.x) {
      Words words(s.stream, i);
      s.out0[i] = OUT0((unsigned long long)words.next() < s.threshold[0]);
    }
  }
}
