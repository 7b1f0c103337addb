// From sums to centres, from squared deviations to factors, and from both to the normalized values.
#include "scalar.cuh"

#define THREAD (blockIdx.x * (long long)blockDim.x + threadIdx.x)
#define THREADS ((long long)gridDim.x * blockDim.x)

#ifdef SUMS
inline double total_of(const Sample* samples, int n, int count, long long k) {
#if BATCH
  double total = 0;
  for (int other = 0; other < count; other++) total += double(((const ACC*)samples[other].sums)[k]);
  return total;
#else
  return double(((const ACC*)samples[n].sums)[k]);
#endif
}

extern "C" __global__ void centre(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < (BATCH ? 1 : count); n += gridDim.y)
    for (long long k = THREAD; k < samples[n].kept; k += THREADS)
      ((float*)samples[n].target)[k] = float(total_of(samples, n, count, k) / samples[n].divisor);
}

extern "C" __global__ void factor(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < (BATCH ? 1 : count); n += gridDim.y)
    for (long long k = THREAD; k < samples[n].kept; k += THREADS) {
      const double divisor = samples[n].divisor;
      const double variance = (divisor > 0 ? total_of(samples, n, count, k) / divisor : 0.0) + shared.add;
      ((float*)samples[n].target)[k] = variance > 0 ? float(shared.times / sqrt(variance)) : 0.0f;
    }
}
#else
extern "C" __global__ void normalize(const Sample* samples, int count, Shared shared) {
  const int axes = int(sizeof(Sample::out0_shape) / sizeof(long long));
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    long long total = 1;
    for (int d = 0; d < axes; d++) total *= s.out0_shape[d];
    for (long long i = THREAD; i < total; i += THREADS) {
      long long rest = i, of_centre = 0, of_factor = 0;
      for (int d = axes - 1; d >= 0; d--) {
        const long long coordinate = rest % s.out0_shape[d];
        rest /= s.out0_shape[d];
        of_centre += coordinate * s.mean_steps[d];
        of_factor += coordinate * s.factor_steps[d];
      }
      const float centre = ((const float*)s.mean_address)[of_centre], factor = ((const float*)s.factor_address)[of_factor];
      s.out0[i] = convert<OUT0>((float(s.in0[i]) - centre) * factor + shared.move);
    }
  }
}
#endif
