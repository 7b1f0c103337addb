// One thread a sample: its elements follow from each other (see Beta in draws.cuh).
#include "draws.cuh"

extern "C" __global__ void beta(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    if (blockIdx.x * blockDim.x + threadIdx.x > 0) continue;
    const Sample& s = samples[n];
    long long total = 1;
    for (long long extent : s.out0_shape) total *= extent;
    Beta<OUT0> variates(OUT0(s.alpha[0]), OUT0(s.beta[0]));
    for (long long i = 0; i < total; i++) {
      Words words(s.stream, i);
      s.out0[i] = variates.draw(words);
    }
  }
}
