// One thread an element. A region is: input and sample of its image, width of that, then start, size and place on the
// canvas (y, x). Where regions overlap, the last one shows.
#include "scalar.cuh"

KERNEL_NAME(multi_paste)(const Sample* samples, int count, Shared shared) {
  EACH_SAMPLE(s) EACH_ITEM(i, s.items) {
    const long long width = s.out0_shape[1], channels = s.out0_shape[2];
    const long long pixel = quotient(i, (unsigned int)channels), y = quotient(pixel, (unsigned int)width);
    const long long x = pixel - y * width, c = i - pixel * channels;
    OUT value = convert<OUT>(0.0f);
    for (int region = sizeof(s.regions) / sizeof(s.regions[0]) - 1; region >= 0; region--) {
      const long long* r = s.regions[region];
      const long long at_y = y - r[7], at_x = x - r[8];
      if (at_y >= 0 && at_y < r[5] && at_x >= 0 && at_x < r[6]) {
        const IN0* image = (&samples[r[1]].in0)[r[0]];  // in0, in1, ... lie side by side and are of one type
        value = convert<OUT>(image[((r[3] + at_y) * r[2] + r[4] + at_x) * channels + c]);
        break;
      }
    }
    s.out0[i] = value;
  }
}
