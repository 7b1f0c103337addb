// The variance over no axes.
extern "C" __global__ void zeros(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    long long total = 1;
    for (int d = 0; d < int(sizeof(s.out0_shape) / sizeof(long long)); d++) total *= s.out0_shape[d];
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < total; i += step) s.out0[i] = 0;
  }
}
