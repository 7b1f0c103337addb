// One thread an element of the output. A row of the output is made of a part of each input; `ends` says where these end.
extern "C" __global__ void join(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    constexpr int INPUTS = sizeof(s.ends) / sizeof(s.ends[0]);
    const IN0* const* inputs = &s.in0;  // the pointers in0, in1, ... lie next to each other
    const long long row = s.ends[INPUTS - 1];
    long long total = 1;
    for (int axis = 0; axis < (int)(sizeof(s.out0_shape) / sizeof(s.out0_shape[0])); axis++) total *= s.out0_shape[axis];
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < total;
         i += (long long)gridDim.x * blockDim.x) {
      long long o = 0, at = i;
      if (i >= row) {
        o = (unsigned long long)i <= 0xffffffffull ? (long long)((unsigned int)i / (unsigned int)row) : i / row;
        at = i - o * row;
      }
      int low = 0, high = INPUTS - 1;
      while (low < high) {
        const int middle = (low + high) / 2;
        if (at < s.ends[middle]) high = middle;
        else low = middle + 1;
      }
      const long long start = low ? s.ends[low - 1] : 0;
      s.out0[i] = inputs[low][o * (s.ends[low] - start) + at - start];
    }
  }
}
