// One thread an element; the extents are [outer, D, H, W, inner], as in flip.py.
extern "C" __global__ void flip(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    const long long inner = s.extents[4], w = s.extents[3], h = s.extents[2], d = s.extents[1];
    const long long total = s.extents[0] * d * h * w * inner;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < total;
         i += (long long)gridDim.x * blockDim.x) {
      const long long c = i % inner;
      const long long pixel = i / inner;
      long long x = pixel % w, row = pixel / w;
      long long y = row % h, slice = row / h;
      long long z = slice % d, o = slice / d;
      if (s.mirror[2]) x = w - 1 - x;
      if (s.mirror[1]) y = h - 1 - y;
      if (s.mirror[0]) z = d - 1 - z;
      s.out0[i] = s.in0[(((o * d + z) * h + y) * w + x) * inner + c];
    }
  }
}
