// One thread a number; its pixel's two words say where it comes from.
#include "philox.cuh"

extern "C" __global__ void jitter(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    const long long height = s.out0_shape[0], width = s.out0_shape[1], channels = s.out0_shape[2];
    const long long total = height * width * channels, reach = s.reach[0];
    const unsigned long long span = 2 * reach + 1;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < total;
         i += (long long)gridDim.x * blockDim.x) {
      const long long pixel = i / channels, c = i % channels;
      Words words(s.stream, pixel);
      const long long x = pixel % width - reach + (long long)((words.next() * span) >> 32);
      const long long y = pixel / width - reach + (long long)((words.next() * span) >> 32);
      const bool inside = x >= 0 && x < width && y >= 0 && y < height;
      s.out0[i] = inside ? s.in0[(y * width + x) * channels + c] : convert<OUT0>(shared.fill_value);
    }
  }
}
