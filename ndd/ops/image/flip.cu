// One thread an element; the extents are [outer, D, H, W, inner], as in flip.py.
template <class I>
inline void mirror_sample(const Sample& s, I total) {
  const I inner = (I)s.extents[4], w = (I)s.extents[3], h = (I)s.extents[2], d = (I)s.extents[1];
  const I step = (I)gridDim.x * blockDim.x;
  for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < total; i += step) {
    const I pixel = inner == 1 ? i : i / inner, c = i - pixel * inner;
    const I row = pixel / w;
    I x = pixel - row * w;
    if (s.mirror[2]) x = w - 1 - x;
    I from = row;
    if (s.mirror[0] || s.mirror[1]) {
      const I slice = row / h, o = slice / d;
      I y = row - slice * h, z = slice - o * d;
      if (s.mirror[1]) y = h - 1 - y;
      if (s.mirror[0]) z = d - 1 - z;
      from = (o * d + z) * h + y;
    }
    s.out0[i] = s.in0[((unsigned long long)from * w + x) * inner + c];
    if (i + step < i) break;
  }
}

extern "C" __global__ void flip(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    unsigned long long total = 1;
    for (int axis = 0; axis < 5; axis++) total *= s.extents[axis];
    // The index is 32 bits wide where it can be: 64-bit division costs several times as much.
    if (total < 0xffffffffull) mirror_sample<unsigned int>(s, (unsigned int)total);
    else mirror_sample<unsigned long long>(s, total);
  }
}
