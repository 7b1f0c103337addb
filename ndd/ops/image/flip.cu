// One thread eight elements; the extents are [outer, D, H, W, inner], as in flip.py.
#include "pack.cuh"

constexpr int COUNT = 8;  // the plan knows it too

inline unsigned long long line_start(const Sample& s, unsigned long long row) {
  if (s.mirror[0] || s.mirror[1]) {
    const unsigned int h = (unsigned int)s.extents[2], d = (unsigned int)s.extents[1];
    // 64-bit division costs several times as much.
    const unsigned long long slice = row <= 0xffffffffull ? (unsigned int)row / h : row / h;
    const unsigned long long outer = slice <= 0xffffffffull ? (unsigned int)slice / d : slice / d;
    unsigned long long y = row - slice * h, z = slice - outer * d;
    if (s.mirror[1]) y = h - 1 - y;
    if (s.mirror[0]) z = d - 1 - z;
    row = (outer * d + z) * h + y;
  }
  return row * s.extents[3] * s.extents[4];
}

extern "C" __global__ void flip(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    const unsigned int inner = (unsigned int)s.extents[4], line = (unsigned int)s.extents[3] * inner;
    const unsigned long long total = (unsigned long long)s.extents[0] * s.extents[1] * s.extents[2] * line;
    for (long long chunk = blockIdx.x * (long long)blockDim.x + threadIdx.x; chunk < s.chunks;
         chunk += (long long)gridDim.x * blockDim.x) {
      const unsigned long long first = chunk * (unsigned long long)COUNT;
      unsigned long long row = first <= 0xffffffffull ? (unsigned int)first / line : first / line;
      unsigned int x = (unsigned int)(first - row * line);  // element in its line, and channel in its pixel
      unsigned int c = x % inner;
      unsigned long long start = line_start(s, row);
      const int made = total - first < COUNT ? (int)(total - first) : COUNT;
      Pack<OUT, COUNT> pack;
#pragma unroll
      for (int k = 0; k < COUNT; k++) {
        if (k < made) {
          pack.element[k] = s.in0[start + (s.mirror[2] ? line - inner - x + 2 * c : x)];
          if (++c == inner) c = 0;
          if (++x == line) {
            x = 0;
            start = line_start(s, ++row);
          }
        }
      }
      store(s.out0 + first, pack, made);
    }
  }
}
