// From the sums of all samples to their common centres, from squared deviations to factors (SUMS 1, ACC their type), and
// from both to the normalized values (INDEX the type that element numbers fit).
#include "scalar.cuh"

#define THREAD (blockIdx.x * (long long)blockDim.x + threadIdx.x)
#define THREADS ((long long)gridDim.x * blockDim.x)

#ifdef SUMS
inline double total_of(const Sample* samples, int count, long long k) {
  double total = 0;
  for (int n = 0; n < count; n++) total += double(((const ACC*)samples[n].sums)[k]);
  return total;
}

extern "C" __global__ void centre(const Sample* samples, int count, Shared shared) {
  if (blockIdx.y == 0)
    for (long long k = THREAD; k < samples[0].kept; k += THREADS)
      ((float*)samples[0].target)[k] = float(total_of(samples, count, k) / samples[0].divisor);
}

extern "C" __global__ void factor(const Sample* samples, int count, Shared shared) {
  if (blockIdx.y == 0)
    for (long long k = THREAD; k < samples[0].kept; k += THREADS) {
      const double divisor = samples[0].divisor;
      const double variance = (divisor > 0 ? total_of(samples, count, k) / divisor : 0.0) + shared.add;
      ((float*)samples[0].target)[k] = variance > 0 ? float(shared.times / sqrt(variance)) : 0.0f;
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
      INDEX rest = (INDEX)i;
      long long of_centre = 0, of_factor = 0;
      for (int d = axes - 1; d >= 0; d--) {
        const INDEX extent = (INDEX)s.out0_shape[d], whole = rest / extent, coordinate = rest - whole * extent;
        rest = whole;
        of_centre += coordinate * s.mean_steps[d];
        of_factor += coordinate * s.factor_steps[d];
      }
      const float centre = ((const float*)s.mean_address)[of_centre], factor = ((const float*)s.factor_address)[of_factor];
      s.out0[i] = convert<OUT0>((float(s.in0[i]) - centre) * factor + shared.move);
    }
  }
}
#endif
