// Mean and factor in one reading of the values (MOMENTS 1), or in two: the sums of all samples to their common centres,
// squared deviations to factors (SUMS 1, ACC their type). Then both to the normalized values (INDEX the type that element
// numbers fit).
#include "scalar.cuh"

#define THREAD (blockIdx.x * (long long)blockDim.x + threadIdx.x)
#define THREADS ((long long)gridDim.x * blockDim.x)

#ifdef MOMENTS
// The sums of x - p and of its square, p being the first value of the line (so that they do not cancel), by the threads
// of reductions/reduce.cu; then mean and factor.
extern "C" __global__ void moments(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    const long long line = s.splits * s.inner, items = s.outer * line;
    if (s.total == 0) continue;
    for (long long item = THREAD; item < items; item += THREADS) {
      const long long o = item / line, i = item % line % s.inner;
      const double pivot = double(s.in0[o * s.line + i]);
      double first = 0, second = 0;
#pragma unroll 8
      for (long long r = item % line / s.inner; r < s.rows; r += s.splits) {
        const long long flat = (o * s.rows + r) * s.inner + i;
#if FROM_INPUT
        const double away = double(s.in0[flat]) - pivot;
        first += away;
        second += away * away;
#else
        first += ((const double*)s.source)[flat];
        second += ((const double*)s.source)[s.outer * s.rows * s.inner + flat];
#endif
      }
#if LAST
      const double mean = pivot + first / s.total;
      const float centre = float(mean);
      const double squares = second - first * first / s.total + s.total * (mean - centre) * (mean - centre);
      const double variance = (s.divisor > 0 && squares > 0 ? squares / s.divisor : 0.0) + shared.add;
      ((float*)s.centre)[item] = centre;
      ((float*)s.factor)[item] = variance > 0 ? float(shared.times / sqrt(variance)) : 0.0f;
#else
      ((double*)s.target)[item] = first;
      ((double*)s.target)[items + item] = second;
#endif
    }
  }
}
#elif defined(SUMS)
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
