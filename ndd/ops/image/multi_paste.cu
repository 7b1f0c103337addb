// One thread an element. A region is: address and width of its image, then start, size and place on the canvas (y, x).
// Where regions overlap, the last one shows.
#include "scalar.cuh"

extern "C" __global__ void multi_paste(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    constexpr int REGIONS = sizeof(s.regions) / sizeof(s.regions[0]);
    const long long width = s.out0_shape[1], channels = s.out0_shape[2];
    const long long total = s.out0_shape[0] * width * channels;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < total;
         i += (long long)gridDim.x * blockDim.x) {
      // 64-bit division costs several times as much.
      const bool narrow = i <= 0xffffffffll;
      const long long pixel = narrow ? (unsigned int)i / (unsigned int)channels : i / channels;
      const long long y = narrow ? (unsigned int)pixel / (unsigned int)width : pixel / width;
      const long long x = pixel - y * width, c = i - pixel * channels;
      OUT value = convert<OUT>(0.0f);
      for (int region = REGIONS - 1; region >= 0; region--) {
        const long long* r = s.regions[region];
        const long long at_y = y - r[6], at_x = x - r[7];
        if (at_y >= 0 && at_y < r[4] && at_x >= 0 && at_x < r[5]) {
          value = convert<OUT>(((const IN0*)r[0])[((r[2] + at_y) * r[1] + r[3] + at_x) * channels + c]);
          break;
        }
      }
      s.out0[i] = value;
    }
  }
}
