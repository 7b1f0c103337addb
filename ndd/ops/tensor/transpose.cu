// One thread an element of the output; `size` and `step` are extents of the output and what each means in the input.
extern "C" __global__ void transpose(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    constexpr int AXES = sizeof(s.size) / sizeof(s.size[0]);
    unsigned long long total = 1;
    for (int axis = 0; axis < AXES; axis++) total *= s.size[axis];
    for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < total;
         i += (unsigned long long)gridDim.x * blockDim.x) {
      unsigned long long rest = i, from = 0;
#pragma unroll
      for (int axis = AXES - 1; axis >= 0; axis--) {
        const unsigned long long size = s.size[axis];
        unsigned long long place = rest;
        if (axis > 0 && rest >= size) {
          // 64-bit division costs several times as much.
          rest = rest <= 0xffffffffull ? (unsigned int)rest / (unsigned int)size : rest / size;
          place -= rest * size;
        } else {
          rest = 0;
        }
        from += place * s.step[axis];
      }
      s.out0[i] = s.in0[from];
    }
  }
}
