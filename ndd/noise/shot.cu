// One thread an element.
#include "draws.cuh"

extern "C" __global__ void shot(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    const float factor = s.factor[0];
    long long total = 1;
    for (long long extent : s.out0_shape) total *= extent;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < total;
         i += (long long)gridDim.x * blockDim.x) {
      if (factor == 0.0f) {
        s.out0[i] = s.in0[i];
        continue;
      }
      Words words(s.stream, i);
      Poisson events;
      const float mean = fmaxf(float(s.in0[i]) / factor, 0.0f);
      s.out0[i] = convert<OUT0>(float(events.draw(words, mean)) * factor);
    }
  }
}
