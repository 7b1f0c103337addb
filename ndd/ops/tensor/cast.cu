// Conversion of the element type. VECTOR elements a thread, read and written together where the addresses allow it.
#include "scalar.cuh"

template <class T> struct alignas(sizeof(T) * VECTOR) packed { T at[VECTOR]; };
#define ALIGNED(p) (((unsigned long long)(p)) % (sizeof(*(p)) * VECTOR) == 0)

extern "C" __global__ void cast(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    long long total = 1;
    for (int d = 0; d < int(sizeof(s.out0_shape) / sizeof(long long)); d++) total *= s.out0_shape[d];
    const long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x, step = (long long)gridDim.x * blockDim.x;
    const long long groups = ALIGNED(s.in0) && ALIGNED(s.out0) ? total / VECTOR : 0;
    for (long long g = first; g < groups; g += step) {
      const packed<IN0> group = ((const packed<IN0>*)s.in0)[g];
      packed<OUT0> result;
#pragma unroll
      for (int v = 0; v < VECTOR; v++) result.at[v] = convert<OUT0>(group.at[v]);
      ((packed<OUT0>*)s.out0)[g] = result;
    }
    for (long long i = groups * VECTOR + first; i < total; i += step) s.out0[i] = convert<OUT0>(s.in0[i]);
  }
}
