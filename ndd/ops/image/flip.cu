// One thread PACK elements; the extents are [outer, D, H, W, inner], as in flip.py.
#include "pack.cuh"

inline unsigned long long line_start(const Sample& s, unsigned long long row) {
  if (s.mirror[0] || s.mirror[1]) {
    const unsigned int h = (unsigned int)s.extents[2], d = (unsigned int)s.extents[1];
    const unsigned long long slice = quotient(row, h), outer = quotient(slice, d);
    unsigned long long y = row - slice * h, z = slice - outer * d;
    if (s.mirror[1]) y = h - 1 - y;
    if (s.mirror[0]) z = d - 1 - z;
    row = (outer * d + z) * h + y;
  }
  return row * s.extents[3] * s.extents[4];
}

PER_PACK(flip) {
  const unsigned int inner = (unsigned int)s.extents[4], line = (unsigned int)s.extents[3] * inner;
  unsigned long long row = quotient(first, line), start = line_start(s, row);
  unsigned int x = (unsigned int)(first - row * line), c = x % inner;  // element in its line, and channel in its pixel
  Pack<OUT, PACK> pack;
#pragma unroll
  for (int k = 0; k < PACK; k++) {
    if (k < size) {
      pack.element[k] = s.in0[start + (s.mirror[2] ? line - inner - x + 2 * c : x)];
      if (++c == inner) c = 0;
      if (++x == line) {
        x = 0;
        start = line_start(s, ++row);
      }
    }
  }
  store(s.out0 + first, pack, size);
}
