// `affine`: a pixel is read at matrix @ (x, y, 1) of its middle; where CENTRED is defined, where `centred_points` of
// warp_kernels.py says. `affine_volume`: the same of [D, H, W, C] with a 3x4
// matrix.
#ifndef VOLUME
#include "warp.cuh"

#ifdef CENTRED
#include "centred.cuh"
typedef Centred Affine;
#else
struct Affine {
  inline void operator()(const Sample& s, int x, int y, float* sx, float* sy) const {
    const float u = x + 0.5f, v = y + 0.5f;
    *sx = s.matrix[0][0] * u + s.matrix[0][1] * v + s.matrix[0][2];
    *sy = s.matrix[1][0] * u + s.matrix[1][1] * v + s.matrix[1][2];
  }
};
#endif

KERNEL_NAME(affine)(const Sample* samples, int count, Shared shared) {
  warp_samples(samples, count, shared, Affine());
}
#else
inline int volume_index(int i, int n, int border) {
  return i >= 0 && i < n ? i : border == 0 || n <= 0 ? -1 : i < 0 ? 0 : n - 1;
}

inline void volume_voxel(const Sample& s, const Shared& shared, const float* point, OUT* target) {
  const int channels = (int)s.in0_shape[3];
  int index[3][2];
  float weight[3][2];
  for (int a = 0; a < 3; a++) {
    const int n = (int)s.in0_shape[2 - a];
    const float limit = n + 1.0f;
    float at = s.matrix[a][0] * point[0] + s.matrix[a][1] * point[1] + s.matrix[a][2] * point[2] + s.matrix[a][3];
    if (!shared.nearest) at -= 0.5f;
    at = !(at > -limit) ? -limit : at < limit ? at : limit;
    const int first = (int)floorf(at);
    index[a][0] = volume_index(first, n, shared.border);
    index[a][1] = volume_index(first + 1, n, shared.border);
    weight[a][1] = shared.nearest ? 0.0f : at - first;
    weight[a][0] = 1.0f - weight[a][1];
  }
  for (int c = 0; c < channels; c++) {
    if (shared.nearest) {
      const bool outside = index[0][0] < 0 || index[1][0] < 0 || index[2][0] < 0;
      const long long at = ((long long)index[2][0] * s.in0_shape[1] + index[1][0]) * s.in0_shape[2] + index[0][0];
      target[c] = outside ? (OUT)shared.stored[0] : convert<OUT>(s.in0[at * channels + c]);
      continue;
    }
    float total = 0.0f;
    for (int k = 0; k < 2; k++)
      for (int j = 0; j < 2; j++) {
        float line = 0.0f;
        for (int i = 0; i < 2; i++) {
          float value = shared.fill[0];
          if (index[0][i] >= 0 && index[1][j] >= 0 && index[2][k] >= 0)
            value = s.in0[(((long long)index[2][k] * s.in0_shape[1] + index[1][j]) * s.in0_shape[2] + index[0][i]) * channels + c];
          line += value * weight[0][i];
        }
        total += line * (weight[1][j] * weight[2][k]);
      }
    target[c] = convert<OUT>(total);
  }
}

PER_ITEM(affine_volume) {
  const long long w = s.out0_shape[2], h = s.out0_shape[1], line = i / w, z = line / h;
  const float point[3] = {(i - line * w) + 0.5f, (line - z * h) + 0.5f, z + 0.5f};
  volume_voxel(s, shared, point, s.out0 + i * s.in0_shape[3]);
}
#endif
