// PACK elements a thread; each pixel that it meets is placed in the grid once. The same rounding as on the CPU: no fused
// multiply-add.
#include "pack.cuh"
#include "scalar.cuh"

// As on the CPU, a NaN counts as below.
inline bool below(float value, float ratio) { return !(value - floorf(value) >= ratio); }

PER_PACK(grid_mask) {
  const unsigned int height = s.extents[1], width = s.extents[2], inner = s.extents[3];
  const unsigned long long pixel = quotient(first, inner), row = quotient(pixel, width);
  unsigned int channel = (unsigned int)(first - pixel * inner), x = (unsigned int)(pixel - row * width);
  unsigned int y = (unsigned int)(row - quotient(row, height) * height);
  Pack<IN0, PACK> values = load<PACK>(s.in0 + first, size);
  float u0, v0;
  bool erased = false, fresh = true, line = true;
#pragma unroll
  for (int k = 0; k < PACK; k++) {
    if (line) {
      u0 = __fsub_rn(-s.grid[2], __fmul_rn(float(y), s.grid[1]));
      v0 = __fadd_rn(-s.grid[3], __fmul_rn(float(y), s.grid[0]));
      line = false;
    }
    if (fresh) {
      erased = below(__fadd_rn(u0, __fmul_rn(float(x), s.grid[0])), s.grid[4]) &&
               below(__fadd_rn(v0, __fmul_rn(float(x), s.grid[1])), s.grid[4]);
      fresh = false;
    }
    if (erased) values.element[k] = {};
    if (++channel == inner) {
      channel = 0;
      fresh = true;
      if (++x == width) {
        x = 0;
        line = true;
        if (++y == height) y = 0;
      }
    }
  }
  store(s.out0 + first, values, size);
}
