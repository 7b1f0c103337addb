// Images read between their pixels, one thread a pixel of the output; the GPU's half of ndd/_cpu/sampling.py.
//
// A kernel gives a map: a struct with `void operator()(const Sample& s, int x, int y, float* sx, float* sy)`, where
// the pixel is read, from the corner of the image (the middle of pixel 0 is at 0.5). Of the plan it needs per sample
// `view`, [h, w, channels, h_out, w_out], and `shared.fill`, `shared.fills` (1, or one for each channel),
// `shared.border`, `shared.nearest`, `shared.planar` (CHW).
#ifndef NDD_WARP_CUH
#define NDD_WARP_CUH

#include "border.cuh"

// A coordinate that an index can be made of; also for NaN.
inline float bounded(float value, int n, int border) {
  const float limit = border < 2 ? float(n + 1) : 1e9f;
  if (!(value > -limit)) return -limit;
  return value < limit ? value : limit;
}

// As on the CPU: halves away from zero, or where HALVES_TO_EVEN is defined, to even.
template <class FROM>
inline OUT stored_number(FROM value) {
#ifdef HALVES_TO_EVEN
  if constexpr (limits<FROM>::is_float && limits<OUT>::is_integer) return convert<OUT>(rintf(value));
#endif
  return convert<OUT>(value);
}

template <class Map>
inline void warp_pixel(const Sample& s, const Shared& shared, int x, int y, Map map) {
  const int h = s.view[0], w = s.view[1], channels = s.view[2], h_out = s.view[3], w_out = s.view[4];
  const long long step = shared.planar ? 1 : channels, plane = shared.planar ? (long long)h * w : 1;
  const long long plane_out = shared.planar ? (long long)h_out * w_out : 1;
  OUT* target = s.out0 + ((long long)y * w_out + x) * step;
  float sx, sy;
  map(s, x, y, &sx, &sy);
  if (shared.nearest) {
    const int ix = border_index((int)floorf(bounded(sx, w, shared.border)), w, shared.border);
    const int iy = border_index((int)floorf(bounded(sy, h, shared.border)), h, shared.border);
    const bool outside = ix < 0 || iy < 0;
    const IN* source = s.in0 + (outside ? 0 : ((long long)iy * w + ix) * step);
    for (int c = 0; c < channels; c++)
      target[c * plane_out] = outside ? stored_number(shared.fill[shared.fills > 1 ? c : 0])
                                      : stored_number(source[c * plane]);
    return;
  }
  sx = bounded(sx - 0.5f, w, shared.border);
  sy = bounded(sy - 0.5f, h, shared.border);
  const int left = (int)floorf(sx), top = (int)floorf(sy);
  const float fx = sx - left, fy = sy - top;
  const int x0 = border_index(left, w, shared.border), x1 = border_index(left + 1, w, shared.border);
  const int y0 = border_index(top, h, shared.border), y1 = border_index(top + 1, h, shared.border);
  const IN* above = s.in0 + (long long)(y0 < 0 ? 0 : y0) * w * step;
  const IN* below = s.in0 + (long long)(y1 < 0 ? 0 : y1) * w * step;
  const bool in00 = x0 >= 0 && y0 >= 0, in01 = x1 >= 0 && y0 >= 0, in10 = x0 >= 0 && y1 >= 0, in11 = x1 >= 0 && y1 >= 0;
  const long long a = (long long)x0 * step, b = (long long)x1 * step;
#pragma unroll 4
  for (int c = 0; c < channels; c++) {
    const float fill = shared.fill[shared.fills > 1 ? c : 0];
    const float p00 = in00 ? float(above[a + c * plane]) : fill, p01 = in01 ? float(above[b + c * plane]) : fill;
    const float p10 = in10 ? float(below[a + c * plane]) : fill, p11 = in11 ? float(below[b + c * plane]) : fill;
    const float first = p00 * (1.0f - fx) + p01 * fx, second = p10 * (1.0f - fx) + p11 * fx;
    target[c * plane_out] = stored_number(first + (second - first) * fy);
  }
}

template <class Map>
inline void warp_samples(const Sample* samples, int count, const Shared& shared, Map map) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    const unsigned int w_out = s.view[4], total = s.view[3] * w_out, step = gridDim.x * blockDim.x;
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += step) {
      const unsigned int y = i / w_out;
      warp_pixel(s, shared, (int)(i - y * w_out), (int)y, map);
    }
  }
}

// For operators that have `applied` in the plan: where it is 0, the image stays as it is. Its points are then the
// middles of the pixels themselves, which both interpolations give back as they are.
template <class Map>
struct WhereApplied {
  Map map;
  template <class S>
  inline void operator()(const S& s, int x, int y, float* sx, float* sy) const {
    *sx = x + 0.5f;
    *sy = y + 0.5f;
    if (s.applied) map(s, x, y, sx, sy);
  }
};

template <class Map>
inline void warp_or_copy(const Sample* samples, int count, const Shared& shared, Map map) {
  const WhereApplied<Map> either = {map};
  warp_samples(samples, count, shared, either);
}

#endif
