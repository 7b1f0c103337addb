// out[o, c, i] = on where c is the class number in[o, i], off elsewhere.
#include "scalar.cuh"

extern "C" __global__ void one_hot(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    long long total = 1;
    for (int d = 0; d < int(sizeof(s.out0_shape) / sizeof(long long)); d++) total *= s.out0_shape[d];
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < total; i += step) {
      const long long inside = i % s.inner, place = i / s.inner % shared.classes;
      const IN0 number = s.in0[i / s.inner / shared.classes * s.inner + inside];
      bool found = false;
      if constexpr (limits<IN0>::is_float)
        found = number > (IN0)(-1) && number < (IN0)shared.classes && (long long)number == place;
      else
        found = (unsigned long long)number == (unsigned long long)place;
      s.out0[i] = found ? shared.on : shared.off;
    }
  }
}
