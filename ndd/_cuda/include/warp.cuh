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

// ---- RGB images in bytes: a warp makes 32 x 4 pixels, puts them together in shared memory and writes whole words. What
// bounds it is the number of lines of the cache that a load touches: its pixels lie 8 x 4, and six bytes take one load or
// two.

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
  const unsigned long long* words = (const unsigned long long*)(address & ~7ull);
  const int skipped = (int)(address & 7), bits = 8 * (skipped & 3);
  const unsigned long long first = words[0], second = skipped > 2 ? words[1] : 0;
  const unsigned int w1 = (unsigned int)(first >> 32), w2 = (unsigned int)second;
  const bool late = skipped > 3;
  const unsigned int a = late ? w1 : (unsigned int)first, b = late ? w2 : w1, c = late ? (unsigned int)(second >> 32) : w2;
  return {shifted(a, b, bits), shifted(b, c, bits)};
}

inline float byte_of(Pair p, int k) { return float((k < 4 ? p.low >> 8 * k : p.high >> 8 * (k - 4)) & 255u); }

inline unsigned int rgb_fill(const Shared& shared) {
  const int each = shared.fills > 1 ? 1 : 0;
  return rgb_bytes(convert<unsigned char>(shared.fill[0]), convert<unsigned char>(shared.fill[each]),
                   convert<unsigned char>(shared.fill[2 * each]));
}

// These two are calls: inlined, they would cost the usual way half of its threads.
__noinline__ unsigned int rgb_nearest(const Sample& s, const Shared& shared, const View& v, float sx, float sy) {
  const int ix = border_index((int)floorf(bounded(sx, v.w, shared.border)), v.w, shared.border);
  const int iy = border_index((int)floorf(bounded(sy, v.h, shared.border)), v.h, shared.border);
  if (ix < 0 || iy < 0) return rgb_fill(shared);
  const unsigned char* source = (const unsigned char*)s.in0 + ((long long)iy * v.w + ix) * 3;
  return rgb_bytes(source[0], source[1], source[2]);
}

// Where some of the four pixels are beyond the border.
__noinline__ unsigned int rgb_at_border(
    const Sample& s, const Shared& shared, const View& v, int left, int top, float fx, float fy) {
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
  sx = bounded(sx - 0.5f, v.w, shared.border);
  sy = bounded(sy - 0.5f, v.h, shared.border);
  const float column = floorf(sx), row = floorf(sy);
  const int left = (int)column, top = (int)row;
  const float fx = sx - column, fy = sy - row;
  if (left < 0 || top < 0 || left >= v.w - 1 || top >= v.h - 1) {
    if (shared.border == 0 && (left < -1 || top < -1 || left >= v.w || top >= v.h)) return rgb_fill(shared);
    return rgb_at_border(s, shared, v, left, top, fx, fy);
  }
  const unsigned char* above = (const unsigned char*)s.in0 + ((long long)top * v.w + left) * 3;
  const Pair a = pair_at(above), b = pair_at(above + 3 * v.w);
  unsigned int found = 0;
#pragma unroll
  for (int c = 0; c < 3; c++)
    found |= byte_from(mixed(byte_of(a, c), byte_of(a, c + 3), byte_of(b, c), byte_of(b, c + 3), fx, fy)) << 8 * c;
  return found;
}

constexpr int TILE_WORDS = 24;  // of 32 pixels

// Where the tiles of a row begin, left of it by 0 to 3 pixels: so that a word of memory begins there too.
inline int before_row(const Sample& s, const View& v, int y) {
  const unsigned long long row = (unsigned long long)s.out0 + (unsigned long long)y * v.w_out * 3;
  return (4 - (int)(row & 3)) & 3;
}

// 32 pixels of four rows from y on. `staged` are the warp's own 4 x 24 words of shared memory.
template <class Map>
inline void rgb_tile(
    const Sample& s, const Shared& shared, const View& v, int left, int y, Map map, unsigned int* staged) {
  const int lane = threadIdx.x % 32, row = lane / 8, x = left - before_row(s, v, y + row) + lane % 8;
  unsigned char* bytes = (unsigned char*)(staged + row * TILE_WORDS) + lane % 8 * 3;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    float sx, sy;
    map(s, x + 8 * k, y + row, &sx, &sy);
    const unsigned int pixel = shared.nearest ? rgb_nearest(s, shared, v, sx, sy) : rgb_linear(s, shared, v, sx, sy);
    for (int c = 0; c < 3; c++) bytes[24 * k + c] = (unsigned char)(pixel >> 8 * c);
  }
  __syncwarp();
#pragma unroll
  for (int k = 0; k < 3; k++) {
    const int i = lane + 32 * k, at = y + i / TILE_WORDS;
    if (at < v.h_out) {
      const long long first = 3ll * (left - before_row(s, v, at)) + i % TILE_WORDS * 4, most = 3ll * v.w_out;
      unsigned char* target = (unsigned char*)s.out0 + at * most + first;
      if (first >= 0 && first + 4 <= most)
        *(unsigned int*)target = staged[i];
      else
        for (int c = 0; c < 4; c++)
          if (first + c >= 0 && first + c < most) target[c] = (unsigned char)(staged[i] >> 8 * c);
    }
  }
  __syncwarp();
}

// Every tile of the output; the eight warps of a block take 2 x 4 that lie together.
template <class Map>
inline void rgb_tiles(const Sample& s, const Shared& shared, const View& v, Map map) {
  __shared__ unsigned int staged[8][4 * TILE_WORDS];
  const unsigned int across = (v.w_out + 34u) / 32, down = (v.h_out + 3u) / 4, wide = (across + 1) / 2;
  const unsigned int squares = wide * ((down + 3) / 4), warp = threadIdx.x / 32;
  for (unsigned int i = blockIdx.x; i < squares; i += gridDim.x) {
    const unsigned int high = i / wide, tile_x = (i - high * wide) * 2 + warp % 2, tile_y = high * 4 + warp / 2;
    if (tile_x < across && tile_y < down) rgb_tile(s, shared, v, tile_x * 32, tile_y * 4, map, staged[warp]);
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
      rgb_tiles(s, shared, v, map);
      return;
    }
  }
  const WarpPixel<Map> pixel = {shared, map};
  each_pixel(s, v, pixel);
}

template <class Map>
inline void warp_samples(const Sample* samples, int count, const Shared& shared, Map map) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) warp_sample(samples[n], view_of(samples[n]), shared, map);
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
