// Images read between their pixels, one thread a pixel of the output; the GPU's half of ndd/_cpu/sampling.py.
//
// A kernel gives a map: a struct with `void operator()(const Sample& s, int x, int y, float* sx, float* sy)`, where
// the pixel is read, from the corner of the image (the middle of pixel 0 is at 0.5). It needs `shared.fill`,
// `shared.fills` (1, or one for each channel), `shared.border`, `shared.nearest`, `shared.planar` (CHW). Extents are those
// of HWC arrays, or where WARP_VIEW is defined, the sample's `view`: [h, w, channels, h_out, w_out].
#ifndef NDD_WARP_CUH
#define NDD_WARP_CUH

#include "border.cuh"

struct View {
  int h, w, channels, h_out, w_out;
};

inline View view_of(const Sample& s) {
#ifdef WARP_VIEW
  return {s.view[0], s.view[1], s.view[2], s.view[3], s.view[4]};
#else
  return {(int)s.in0_shape[0], (int)s.in0_shape[1], (int)s.in0_shape[2], (int)s.out0_shape[0], (int)s.out0_shape[1]};
#endif
}

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

// Six bytes, whole words at a time: those of two pixels that lie side by side.
inline unsigned long long six_bytes(const unsigned char* from) {
  const unsigned long long address = (unsigned long long)from;
  const unsigned int* words = (const unsigned int*)(address & ~3ull);
  const unsigned int skipped = address & 3;
  const unsigned long long found = ((unsigned long long)words[1] << 32 | words[0]) >> (8 * skipped);
  return skipped < 3 ? found : found | (unsigned long long)words[2] << 40;
}

inline float byte_of(unsigned long long bytes, int k) { return float((unsigned int)(bytes >> (8 * k)) & 255u); }

// `stored_number` of a number that lies within the output's range.
inline OUT stored_within(float value) {
#ifndef HALVES_TO_EVEN
  if constexpr (limits<OUT>::is_integer) {
    const int whole = (int)value;
    return (OUT)(whole + (value - whole >= 0.5f));
  }
#endif
  return stored_number(value);
}

inline float mixed(float p00, float p01, float p10, float p11, float fx, float fy) {
  const float first = p00 * (1.0f - fx) + p01 * fx, second = p10 * (1.0f - fx) + p11 * fx;
  return first + (second - first) * fy;
}

// Linear between RGB pixels in bytes, all four inside.
template <class FROM>
inline void mix_rgb(const FROM* above, int line, float fx, float fy, OUT* target) {
  const unsigned long long a = six_bytes((const unsigned char*)above), b = six_bytes((const unsigned char*)above + line);
#pragma unroll
  for (int c = 0; c < 3; c++)
    target[c] = stored_within(mixed(byte_of(a, c), byte_of(a, c + 3), byte_of(b, c), byte_of(b, c + 3), fx, fy));
}

inline void nearest_pixel(const Sample& s, const Shared& shared, const View& v, long long at, float sx, float sy) {
  const long long step = shared.planar ? 1 : v.channels, plane = shared.planar ? (long long)v.h * v.w : 1;
  const long long plane_out = shared.planar ? (long long)v.h_out * v.w_out : 1;
  OUT* target = s.out0 + at * step;
  const int ix = border_index((int)floorf(bounded(sx, v.w, shared.border)), v.w, shared.border);
  const int iy = border_index((int)floorf(bounded(sy, v.h, shared.border)), v.h, shared.border);
  const bool outside = ix < 0 || iy < 0;
  const IN* source = s.in0 + (outside ? 0 : ((long long)iy * v.w + ix) * step);
  for (int c = 0; c < v.channels; c++)
    target[c * plane_out] = outside ? stored_number(shared.fill[shared.fills > 1 ? c : 0])
                                    : stored_number(source[c * plane]);
}

template <class Map>
inline void warp_pixel(const Sample& s, const Shared& shared, const View& v, int x, int y, Map map) {
  const int h = v.h, w = v.w;
  const long long at = (long long)y * v.w_out + x;
  float sx, sy;
  map(s, x, y, &sx, &sy);
  if (shared.nearest) {
    nearest_pixel(s, shared, v, at, sx, sy);
    return;
  }
  sx = bounded(sx - 0.5f, w, shared.border);
  sy = bounded(sy - 0.5f, h, shared.border);
  const int left = (int)floorf(sx), top = (int)floorf(sy);
  const float fx = sx - left, fy = sy - top;
  if constexpr (limits<IN>::is_integer && !limits<IN>::is_signed && sizeof(IN) == 1 && sizeof(OUT) == 1) {
    if (v.channels == 3 && !shared.planar && left >= 0 && top >= 0 && left < w - 1 && top < h - 1) {
      mix_rgb(s.in0 + ((long long)top * w + left) * 3, 3 * w, fx, fy, s.out0 + at * 3);
      return;
    }
  }
  const long long step = shared.planar ? 1 : v.channels, plane = shared.planar ? (long long)h * w : 1;
  const long long plane_out = shared.planar ? (long long)v.h_out * v.w_out : 1;
  OUT* target = s.out0 + at * step;
  const int x0 = border_index(left, w, shared.border), x1 = border_index(left + 1, w, shared.border);
  const int y0 = border_index(top, h, shared.border), y1 = border_index(top + 1, h, shared.border);
  const IN* above = s.in0 + (long long)(y0 < 0 ? 0 : y0) * w * step;
  const IN* below = s.in0 + (long long)(y1 < 0 ? 0 : y1) * w * step;
  const bool in00 = x0 >= 0 && y0 >= 0, in01 = x1 >= 0 && y0 >= 0, in10 = x0 >= 0 && y1 >= 0, in11 = x1 >= 0 && y1 >= 0;
  const long long a = (long long)x0 * step, b = (long long)x1 * step;
#pragma unroll 4
  for (int c = 0; c < v.channels; c++) {
    const float fill = shared.fill[shared.fills > 1 ? c : 0];
    const float p00 = in00 ? float(above[a + c * plane]) : fill, p01 = in01 ? float(above[b + c * plane]) : fill;
    const float p10 = in10 ? float(below[a + c * plane]) : fill, p11 = in11 ? float(below[b + c * plane]) : fill;
    target[c * plane_out] = stored_number(mixed(p00, p01, p10, p11, fx, fy));
  }
}

// Calls pixel(s, view, x, y) for every pixel of the output. A warp of threads takes 8 x 4 of them: however the image is
// turned, they lie in few rows of it.
template <class Pixel>
inline void each_pixel(const Sample* samples, int count, Pixel pixel) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    const View v = view_of(s);
    const unsigned int across = (v.w_out + 31u) / 32, tiles = across * ((v.h_out + 7u) / 8);
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < tiles * 256; i += gridDim.x * blockDim.x) {
      const unsigned int tile = i / 256, down = tile / across;
      const int x = (tile - down * across) * 32 + (i / 32 % 4) * 8 + i % 8;
      const int y = down * 8 + (i / 128 % 2) * 4 + i / 8 % 4;
      if (x < v.w_out && y < v.h_out) pixel(s, v, x, y);
    }
  }
}

template <class Map>
struct WarpPixel {
  const Shared& shared;
  Map map;
  inline void operator()(const Sample& s, const View& v, int x, int y) const { warp_pixel(s, shared, v, x, y, map); }
};

template <class Map>
inline void warp_samples(const Sample* samples, int count, const Shared& shared, Map map) {
  const WarpPixel<Map> pixel = {shared, map};
  each_pixel(samples, count, pixel);
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
