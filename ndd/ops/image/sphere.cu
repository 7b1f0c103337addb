// A pixel at d from the middle is read at d |d| / (half of the longer side).
#include "warp.cuh"

struct Sphere {
  inline void operator()(const Sample& s, int x, int y, float* sx, float* sy) const {
    const int h = s.in0_shape[0], w = s.in0_shape[1];
    const float cx = w * 0.5f, cy = h * 0.5f;
    const float u = x + 0.5f - cx, v = y + 0.5f - cy;
    const float stretch = sqrtf(u * u + v * v) / fmaxf(fmaxf(w / 2, h / 2), 1.0f);
    *sx = cx + u * stretch;
    *sy = cy + v * stretch;
  }
};

KERNEL_NAME(sphere)(const Sample* samples, int count, Shared shared) {
  warp_or_copy(samples, count, shared, Sphere());
}
