// One thread an element; frame k of the output is frame order[k] of the input.
extern "C" __global__ void sequence_rearrange(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    const long long total = s.out0_shape[0] * s.inner;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < total;
         i += (long long)gridDim.x * blockDim.x) {
      const long long frame = i / s.inner;
      s.out0[i] = s.in0[i + (s.order[frame] - frame) * s.inner];
    }
  }
}
