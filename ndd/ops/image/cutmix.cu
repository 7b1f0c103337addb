// An element of a sample, or of its partner where that is inside the window.
#include "scalar.cuh"

PER_ITEM(cutmix) {
  const unsigned long long pixel = quotient(i, (unsigned int)s.inner), row = quotient(pixel, (unsigned int)s.width);
  const long long x = pixel - row * s.width, y = row - quotient(row, (unsigned int)s.height) * s.height;
  const bool inside = y >= s.window[0] && y < s.window[2] && x >= s.window[1] && x < s.window[3];
  s.out0[i] = (inside ? (&s)[s.step] : s).in0[i];
}
