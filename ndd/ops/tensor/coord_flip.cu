// A coordinate is multiplied by 1 or -1 and shifted.
extern "C" __global__ void coord_flip(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    const long long columns = s.out0_shape[1], total = s.out0_shape[0] * columns;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < total;
         i += (long long)gridDim.x * blockDim.x)
      s.out0[i] = s.in0[i] * s.factor[i % columns] + s.offset[i % columns];
  }
}
