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

inline float mixed(float p00, float p01, float p10, float p11, float fx, float fy) {
  const float first = p00 * (1.0f - fx) + p01 * fx, second = p10 * (1.0f - fx) + p11 * fx;
  return first + (second - first) * fy;
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
__noinline__ void warp_pixel(const Sample& s, const Shared& shared, const View& v, int x, int y, Map map) {
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
inline void each_pixel(const Sample& s, const View& v, Pixel pixel) {
  const unsigned int across = (v.w_out + 31u) / 32, tiles = across * ((v.h_out + 7u) / 8);
  for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < tiles * 256; i += gridDim.x * blockDim.x) {
    const unsigned int tile = i / 256, down = tile / across;
    const int x = (tile - down * across) * 32 + (i / 32 % 4) * 8 + i % 8;
    const int y = down * 8 + (i / 128 % 2) * 4 + i / 8 % 4;
    if (x < v.w_out && y < v.h_out) pixel(s, v, x, y);
  }
}

// ---- RGB images in bytes: four pixels a thread, in whole words

constexpr bool BYTES = limits<IN>::is_integer && !limits<IN>::is_signed && limits<OUT>::is_integer &&
                       !limits<OUT>::is_signed && sizeof(IN) == 1 && sizeof(OUT) == 1;

// `stored_number` of a number from 0 to 255.
inline unsigned int byte_from(float value) {
#ifdef HALVES_TO_EVEN
  return (unsigned int)(int)rintf(value);
#else
  return (unsigned int)(int)(value + 0.49999997f);  // a whole 0.5 would lift the number below it
#endif
}

inline unsigned int rgb_bytes(unsigned int r, unsigned int g, unsigned int b) { return r | g << 8 | b << 16; }

// Two pixels that lie side by side: bytes 0 to 3, bytes 4 and 5.
struct Pair {
  unsigned int low, high;
};

inline unsigned int shifted(unsigned int low, unsigned int high, int bits) {
  return (unsigned int)(((unsigned long long)high << 32 | low) >> bits);
}

inline Pair pair_at(const unsigned char* from) {
  const unsigned long long address = (unsigned long long)from;
  const unsigned int* words = (const unsigned int*)(address & ~3ull);
  const int bits = 8 * (int)(address & 3);
  const unsigned int first = words[0], second = words[1], third = bits == 24 ? words[2] : 0;
  return {shifted(first, second, bits), shifted(second, third, bits)};
}

inline float byte_of(Pair p, int k) { return float((k < 4 ? p.low >> 8 * k : p.high >> 8 * (k - 4)) & 255u); }

__noinline__ unsigned int rgb_fill(const Shared& shared) {
  const int each = shared.fills > 1 ? 1 : 0;
  return rgb_bytes(convert<unsigned char>(shared.fill[0]), convert<unsigned char>(shared.fill[each]),
                   convert<unsigned char>(shared.fill[2 * each]));
}

// These are calls: inlined four times, they would cost the usual way half of its threads.
__noinline__ unsigned int rgb_nearest(const Sample& s, const Shared& shared, const View& v, float sx, float sy) {
  const int ix = border_index((int)floorf(bounded(sx, v.w, shared.border)), v.w, shared.border);
  const int iy = border_index((int)floorf(bounded(sy, v.h, shared.border)), v.h, shared.border);
  if (ix < 0 || iy < 0) return rgb_fill(shared);
  const unsigned char* source = (const unsigned char*)s.in0 + ((long long)iy * v.w + ix) * 3;
  return rgb_bytes(source[0], source[1], source[2]);
}

// Where some of the four pixels are beyond the border.
__noinline__ unsigned int rgb_at_border(const Sample& s, const Shared& shared, const View& v, float sx, float sy) {
  sx = bounded(sx, v.w, shared.border);
  sy = bounded(sy, v.h, shared.border);
  const int left = (int)floorf(sx), top = (int)floorf(sy);
  const float fx = sx - left, fy = sy - top;
  const int x0 = border_index(left, v.w, shared.border), x1 = border_index(left + 1, v.w, shared.border);
  const int y0 = border_index(top, v.h, shared.border), y1 = border_index(top + 1, v.h, shared.border);
  const unsigned char* above = (const unsigned char*)s.in0 + (long long)(y0 < 0 ? 0 : y0) * v.w * 3;
  const unsigned char* below = (const unsigned char*)s.in0 + (long long)(y1 < 0 ? 0 : y1) * v.w * 3;
  unsigned int found = 0;
  for (int c = 0; c < 3; c++) {
    const float fill = shared.fill[shared.fills > 1 ? c : 0];
    const float p00 = y0 < 0 || x0 < 0 ? fill : above[x0 * 3 + c], p01 = y0 < 0 || x1 < 0 ? fill : above[x1 * 3 + c];
    const float p10 = y1 < 0 || x0 < 0 ? fill : below[x0 * 3 + c], p11 = y1 < 0 || x1 < 0 ? fill : below[x1 * 3 + c];
    found |= byte_from(mixed(p00, p01, p10, p11, fx, fy)) << 8 * c;
  }
  return found;
}

inline unsigned int rgb_linear(const Sample& s, const Shared& shared, const View& v, float sx, float sy) {
  sx -= 0.5f;
  sy -= 0.5f;
  if (!(sx >= 0.0f && sy >= 0.0f && sx < v.w - 1 && sy < v.h - 1)) {
    if (shared.border == 0 && (sx < -1.0f || sy < -1.0f || sx >= v.w || sy >= v.h)) return rgb_fill(shared);
    return rgb_at_border(s, shared, v, sx, sy);
  }
  const int left = (int)sx, top = (int)sy;
  const float fx = sx - left, fy = sy - top;
  const unsigned char* above = (const unsigned char*)s.in0 + ((long long)top * v.w + left) * 3;
  const Pair a = pair_at(above), b = pair_at(above + 3 * v.w);
  unsigned int found = 0;
#pragma unroll
  for (int c = 0; c < 3; c++)
    found |= byte_from(mixed(byte_of(a, c), byte_of(a, c + 3), byte_of(b, c), byte_of(b, c + 3), fx, fy)) << 8 * c;
  return found;
}

// Pixels x to x + 3 of a row of the output, as far as they are in it; where x begins, a word does.
template <class Map>
inline void rgb_run(const Sample& s, const Shared& shared, const View& v, int x, int y, Map map) {
  unsigned int pixel[4];
#pragma unroll
  for (int k = 0; k < 4; k++) {
    float sx, sy;
    map(s, x + k, y, &sx, &sy);
    pixel[k] = shared.nearest ? rgb_nearest(s, shared, v, sx, sy) : rgb_linear(s, shared, v, sx, sy);
  }
  unsigned char* target = (unsigned char*)s.out0 + ((long long)y * v.w_out + x) * 3;
  if (x >= 0 && x + 4 <= v.w_out) {
    unsigned int* words = (unsigned int*)target;
    words[0] = pixel[0] | pixel[1] << 24;
    words[1] = pixel[1] >> 8 | pixel[2] << 16;
    words[2] = pixel[2] >> 16 | pixel[3] << 8;
    return;
  }
  for (int k = 0; k < 4; k++)
    if (x + k >= 0 && x + k < v.w_out)
      for (int c = 0; c < 3; c++) target[3 * k + c] = (unsigned char)(pixel[k] >> 8 * c);
}

// Calls run(x, y) for runs of four pixels, a warp taking 4 x 8 of them. Rows do not begin where words do:
// the first run of a row may begin left of it, at the last such place.
template <class Run>
inline void each_run(const Sample& s, const View& v, Run run) {
  const unsigned int across = (v.w_out + 3u) / 32 + 1, tiles = across * ((v.h_out + 31u) / 32);
  for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < tiles * 256; i += gridDim.x * blockDim.x) {
    const unsigned int tile = i / 256, down = tile / across;
    const int y = down * 32 + i / 64 % 4 * 8 + i / 4 % 8;
    if (y >= v.h_out) continue;
    const unsigned long long row = (unsigned long long)s.out0 + (unsigned long long)y * v.w_out * 3;
    const int x = (tile - down * across) * 32 + i / 32 % 2 * 16 + i % 4 * 4 - ((4 - (int)(row & 3)) & 3);
    if (x < v.w_out) run(x, y);
  }
}

template <class Map>
struct WarpPixel {
  const Shared& shared;
  Map map;
  inline void operator()(const Sample& s, const View& v, int x, int y) const { warp_pixel(s, shared, v, x, y, map); }
};

template <class Map>
inline void warp_sample(const Sample& s, const View& v, const Shared& shared, Map map) {
  if constexpr (BYTES) {
    if (v.channels == 3 && !shared.planar) {
      each_run(s, v, [&](int x, int y) { rgb_run(s, shared, v, x, y, map); });
      return;
    }
  }
  const WarpPixel<Map> pixel = {shared, map};
  each_pixel(s, v, pixel);
}

template <class Map>
inline void warp_samples(const Sample* samples, int count, const Shared& shared, Map map) {
  EACH_SAMPLE(s) warp_sample(s, view_of(s), shared, map);
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
