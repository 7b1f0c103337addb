// One thread a number; its pixel's two words say where it comes from.
#include "philox.cuh"

PER_ITEM(jitter) {
  const long long height = s.out0_shape[0], width = s.out0_shape[1], channels = s.out0_shape[2];
  const unsigned long long span = 2 * s.reach + 1;
  const long long pixel = i / channels, c = i % channels;
  Words words(s.stream, pixel);
  const long long x = pixel % width - s.reach + (long long)((words.next() * span) >> 32);
  const long long y = pixel / width - s.reach + (long long)((words.next() * span) >> 32);
  const bool inside = x >= 0 && x < width && y >= 0 && y < height;
  s.out0[i] = inside ? s.in0[(y * width + x) * channels + c] : convert<OUT0>(shared.fill_value);
}
