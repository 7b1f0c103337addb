// 16 bytes a thread; each pixel that it meets is placed in the grid once. The same rounding as on the CPU: no fused
// multiply-add.
#include "pack.cuh"
#include "scalar.cuh"

// As on the CPU, a NaN counts as below.
inline bool below(float value, float ratio) { return !(value - floorf(value) >= ratio); }

extern "C" __global__ void grid_mask(const Sample* samples, int count, Shared shared) {
  constexpr int COUNT = 16 / sizeof(IN0);
  typedef Pack<IN0, COUNT> Vector;
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    const unsigned long long height = s.sides[0], width = s.sides[1], inner = s.inner;
    unsigned long long total = 1;
    for (int axis = 0; axis < int(sizeof(s.out0_shape) / sizeof(long long)); axis++) total *= s.out0_shape[axis];
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x * COUNT;
    for (unsigned long long i = (blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x) * COUNT; i < total; i += step) {
      const bool small = total <= 0xffffffffull;  // 64-bit division costs several times as much
      const unsigned long long pixel = small ? (unsigned int)i / (unsigned int)inner : i / inner;
      const unsigned long long row = small ? (unsigned int)pixel / (unsigned int)width : pixel / width;
      unsigned long long channel = i - pixel * inner, x = pixel - row * width;
      unsigned long long y = small ? (unsigned int)row % (unsigned int)height : row % height;
      const int made = total - i < COUNT ? int(total - i) : COUNT;
      const IN0 nothing = {};
      Vector values;
      if (made == COUNT && (unsigned long long)(s.in0 + i) % alignof(Vector) == 0) {
        values = *(const Vector*)(s.in0 + i);
      } else {
        for (int k = 0; k < made; k++) values.element[k] = s.in0[i + k];
      }
      float u0, v0;
      bool erased = false, fresh = true, line = true;
#pragma unroll
      for (int k = 0; k < COUNT; k++) {
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
        if (erased) values.element[k] = nothing;
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
      store(s.out0 + i, values, made);
    }
  }
}
