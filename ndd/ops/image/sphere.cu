// A pixel at d from the middle is read at d |d| / (half of the longer side).
#include "warp.cuh"

struct Sphere {
  inline void operator()(const Sample& s, int x, int y, float* sx, float* sy) const {
    const float cx = s.view[1] * 0.5f, cy = s.view[0] * 0.5f;
    const float u = x + 0.5f - cx, v = y + 0.5f - cy;
    const float stretch = sqrtf(u * u + v * v) / fmaxf(fmaxf(s.view[1] / 2, s.view[0] / 2), 1.0f);
    *sx = cx + u * stretch;
    *sy = cy + v * stretch;
  }
};

extern "C" __global__ void sphere(const Sample* samples, int count, Shared shared) {
  warp_or_copy(samples, count, shared, Sphere());
}
