// A pixel is moved by waves; `wave` is [a, f, p, b, g, q], as in water.py.
#include "warp.cuh"

struct Water {
  const float* wave;
  inline void operator()(const Sample& s, int x, int y, float* sx, float* sy) const {
    *sx = x + wave[0] * sinf(wave[1] * y + wave[2]);
    *sy = y + wave[3] * cosf(wave[4] * x + wave[5]);
  }
};

KERNEL_NAME(water)(const Sample* samples, int count, Shared shared) {
  const Water map = {shared.wave};
  warp_or_copy(samples, count, shared, map);
}
