// A block for each tile makes its table; then each pixel is the mixture of what four tables say. The lightness of RGB is
// worked out in both (see lab.py, the same integers). Rounded as on the CPU: no fused multiply-add.
#include "pack.cuh"
#include "scalar.cuh"

#define BLOCK 256
#define COPIES 4  // of the counters of a block, so that its warps do not wait for each other

__device__ const unsigned short lab_linear[] = {LAB_LINEAR};
__device__ const unsigned short lab_root[] = {LAB_ROOT};
__device__ const int lab_lightness[] = {LAB_LIGHTNESS};
__device__ const unsigned char lab_gamma[] = {LAB_GAMMA};

inline int root_of(const int* m, int r, int g, int b) { return lab_root[(m[0] * r + m[1] * g + m[2] * b + 2048) >> 12]; }

struct Lab {
  int lightness, a, b;
};

inline Lab lab_of(const unsigned char* rgb) {
  const int m[9] = {LAB_TO_XYZ};
  const int r = lab_linear[rgb[0]], g = lab_linear[rgb[1]], b = lab_linear[rgb[2]];
  const int x = root_of(m, r, g, b), y = root_of(m + 3, r, g, b), z = root_of(m + 6, r, g, b);
  Lab found;
  found.lightness = (296 * y - (1336934 - 16384)) >> 15;
  found.a = (500 * (x - y) + 4194304 + 16384) >> 15;
  found.b = (200 * (y - z) + 4194304 + 16384) >> 15;
  return found;
}

// The L of a pixel alone.
inline int lightness_of(const unsigned char* rgb) {
  const int m[9] = {LAB_TO_XYZ};
  return (296 * root_of(m + 3, lab_linear[rgb[0]], lab_linear[rgb[1]], lab_linear[rgb[2]]) - (1336934 - 16384)) >> 15;
}

inline int cube(int root) {
  if (root > 3390) return (((root * root) >> 14) * root) >> 14;
  return root * 108 / 841 - 290;
}

inline unsigned char level(const int* m, int x, int y, int z) {
  const int value = (m[0] * x + m[1] * y + m[2] * z + 8192) >> 14;
  return lab_gamma[value < 0 ? 0 : value > 4095 ? 4095 : value];
}

inline void to_rgb(int lightness, int a, int b, unsigned char* rgb) {
  const int m[9] = {LAB_TO_RGB};
  const int known = lab_lightness[lightness], root = known & 32767, y = known >> 15;
  const int x = cube(root + ((a * (5 * 53687) + 128) >> 13) - 4194);
  const int z = cube(root - (((b * 41943 + 16) >> 9) - 10484));
  for (int c = 0; c < 3; c++) rgb[c] = level(m + 3 * c, x, y, z);
}

// Where a pixel at i lies if the image continues by reflection about its border pixels.
inline int reflected(int i, int size) {
  if (i < size) return i;
  if (size == 1) return 0;
  i %= 2 * size - 2;
  return i < size ? i : 2 * size - 2 - i;
}

KERNEL_NAME(tables)(const Sample* samples, int count, Shared shared) {
  __shared__ unsigned int counts[COPIES][256];
  __shared__ unsigned int cut;
  const int v = threadIdx.x;
  EACH_SAMPLE(s) {
    const int height = int(s.in0_shape[0]), width = int(s.in0_shape[1]), channels = int(s.in0_shape[2]);
    const int columns = s.tiles[1], tile_h = s.tiles[2], tile_w = s.tiles[3], limit = s.tiles[4];
    const long long area = (long long)tile_h * tile_w, each = (long long)s.tiles[0] * columns;
    const bool luma = shared.luma && channels == 3;
    for (long long tile = blockIdx.x; tile < s.items / BLOCK; tile += gridDim.x) {
      const int plane = int(tile / each), place = int(tile % each);
      const int top = place / columns * tile_h, left = place % columns * tile_w;
      for (int copy = 0; copy < COPIES; copy++) counts[copy][v] = 0;
      if (v == 0) cut = 0;
      __syncthreads();
      for (long long i = v; i < area; i += BLOCK) {
        const int y = reflected(top + int(i / tile_w), height), x = reflected(left + int(i % tile_w), width);
        const unsigned char* pixel = s.in0 + ((long long)y * width + x) * channels + plane;
        atomicAdd(&counts[v / 32 % COPIES][luma ? lightness_of(pixel) : *pixel], 1u);
      }
      __syncthreads();
      unsigned int own = 0;
      for (int copy = 0; copy < COPIES; copy++) own += counts[copy][v];
      if (limit > 0 && own > (unsigned int)limit) {
        atomicAdd(&cut, own - limit);
        own = limit;
      }
      __syncthreads();
      if (limit > 0) {
        const int extra = int(cut & 255), step = 256 / (extra > 0 ? extra : 1);
        own += (cut >> 8) + (v % step == 0 && v / step < extra ? 1 : 0);
      }
      // Running sums by doubling, between two rows of counters.
      int row = 0;
      counts[row][v] = own;
      __syncthreads();
      for (int distance = 1; distance < 256; distance *= 2) {
        counts[1 - row][v] = counts[row][v] + (v >= distance ? counts[row][v - distance] : 0u);
        row = 1 - row;
        __syncthreads();
      }
      const float value = rintf(__fmul_rn(float(counts[row][v]), 255.0f / float(area)));
      ((unsigned char*)s.tables)[tile * 256 + v] = (unsigned char)(value < 255.0f ? value : 255.0f);
      __syncthreads();
    }
  }
}

// The two tiles whose middles a pixel lies between, on one axis, and how near it is to the second.
struct Between {
  int first, second;
  float far, near;
};

inline Between between(int at, int size, int tiles) {
  const float place = __fsub_rn(__fmul_rn(float(at), 1.0f / float(size)), 0.5f), whole = floorf(place);
  Between b;
  b.first = whole < 0.0f ? 0 : int(whole);
  b.second = int(whole) + 1 < tiles ? int(whole) + 1 : tiles - 1;
  b.near = __fsub_rn(place, whole);
  b.far = __fsub_rn(1.0f, b.near);
  return b;
}

inline int mixture(const unsigned char* tables, int columns, const Between& y, const Between& x, int value) {
  const unsigned char* upper = tables + (long long)y.first * columns * 256 + value;
  const unsigned char* lower = tables + (long long)y.second * columns * 256 + value;
  const float above =
      __fadd_rn(__fmul_rn(upper[x.first * 256], x.far), __fmul_rn(upper[x.second * 256], x.near));
  const float below =
      __fadd_rn(__fmul_rn(lower[x.first * 256], x.far), __fmul_rn(lower[x.second * 256], x.near));
  return int(rintf(__fadd_rn(__fmul_rn(above, y.far), __fmul_rn(below, y.near))));
}

PER_ITEM(clahe) {
  const int width = int(s.in0_shape[1]), channels = int(s.in0_shape[2]);
  const int rows = s.tiles[0], columns = s.tiles[1];
  const long long pixels = s.in0_shape[0] * width, each = (long long)rows * columns * 256, first = i * PIXELS;
  const unsigned char* tables = (const unsigned char*)s.tables;
  int y = int(first / width), x = int(first - (long long)y * width);
  Between row = between(y, s.tiles[2], rows);
  Pack<unsigned char, 4> made[3];
  unsigned char* bytes = made[0].element;
  const int here = pixels - first < PIXELS ? int(pixels - first) : PIXELS;
  for (int k = 0; k < here; k++) {
    const unsigned char* pixel = s.in0 + (first + k) * channels;
    const Between column = between(x, s.tiles[3], columns);
    if (shared.luma && channels == 3) {
      const Lab lab = lab_of(pixel);
      to_rgb(mixture(tables, columns, row, column, lab.lightness), lab.a, lab.b, bytes + 3 * k);
    } else {
      for (int c = 0; c < channels; c++)
        bytes[channels * k + c] = (unsigned char)mixture(tables + c * each, columns, row, column, pixel[c]);
    }
    if (++x == width) {
      x = 0;
      row = between(++y, s.tiles[2], rows);
    }
  }
  for (int k = 0; 4 * k < here * channels; k++) {
    const int rest = here * channels - 4 * k;
    store(s.out0 + first * channels + 4 * k, made[k], rest < 4 ? rest : 4);
  }
}
