// A pixel is read at matrix @ (x + o, y + o, 1), divided by its third component, from `o` of the first pixel.
#include "warp.cuh"

struct Perspective {
  double origin;
  inline void operator()(const Sample& s, int x, int y, float* sx, float* sy) const {
    const double u = x + origin, v = y + origin;
    double w = s.matrix[2][0] * u + s.matrix[2][1] * v + s.matrix[2][2];
    w = w != 0 ? 1 / w : 0.0;
    *sx = float((s.matrix[0][0] * u + s.matrix[0][1] * v + s.matrix[0][2]) * w + (0.5 - origin));
    *sy = float((s.matrix[1][0] * u + s.matrix[1][1] * v + s.matrix[1][2]) * w + (0.5 - origin));
  }
};

extern "C" __global__ void warp_perspective(const Sample* samples, int count, Shared shared) {
  const Perspective map = {shared.origin};
  warp_samples(samples, count, shared, map);
}
