// One stage of a reduction: a sample is [outer, rows, inner]; `splits` threads share the rows of each kept element and
// leave [outer, splits, inner] accumulators for the next stage, or the result where there is one thread for each.
//
// With TOGETHER the block of a sample that finishes last makes the results from what all blocks left, in the same launch.
//
// Macros: ACC the accumulator; KIND one of the numbers below; FROM_INPUT 1 to read input 0, 0 to read accumulators of
// the stage before; LAST 1 to write results; FINISH 0 as it is, 1 divided, 2 the root of that, 3 divided, as float to
// `target`, 4 the same with times / sqrt(that + add); INTEGER_RESULT 1 if the result is an
// integer made from a sum; MEAN_STEPS 1 to find the mean of an element by a step for every axis; MEAN_NUMBER 1 if
// `mean_address` is the mean itself, one float.
#include "scalar.cuh"

#define KIND_SUM 0
#define KIND_SQUARE 1
#define KIND_DEVIATION 2
#define KIND_MIN 3
#define KIND_MAX 4

#if FROM_INPUT
#define SOURCE IN0
#else
#define SOURCE ACC
#endif

#if FROM_INPUT && KIND == KIND_DEVIATION
inline double mean_at(const Sample& s, long long o, long long i, long long flat) {
#if MEAN_NUMBER
  return __int_as_float((int)s.mean_address);
#else
  const float* mean = (const float*)s.mean_address;
#if MEAN_STEPS
  long long at = 0;
  for (int d = int(sizeof(s.mean_steps) / sizeof(long long)) - 1; d >= 0; d--) {
    at += flat % s.in0_shape[d] * s.mean_steps[d];
    flat /= s.in0_shape[d];
  }
  return mean[at];
#else
  return mean[s.mean_size == 1 ? 0 : o * s.inner + i];
#endif
#endif
}
#endif

inline ACC joined(ACC acc, ACC value) {
#if KIND == KIND_MIN
  return value < acc ? value : acc;
#elif KIND == KIND_MAX
  return value > acc ? value : acc;
#else
  return acc + value;
#endif
}

inline void finish(const Sample& s, const Shared& shared, long long item, ACC acc) {
#if FINISH == 0
  s.out0[item] = (OUT0)acc;
#elif FINISH == 3
  ((float*)s.target)[item] = float(double(acc) / s.divisor);
#elif FINISH == 4
  const double variance = (s.divisor > 0 ? double(acc) / s.divisor : 0.0) + shared.add;
  ((float*)s.target)[item] = variance > 0 ? float(shared.times / sqrt(variance)) : 0.0f;
#elif INTEGER_RESULT
  // DALI accumulates in the type of the result, which wraps, and divides in float.
  float mean = float((OUT0)acc) * (1.0f / float(s.divisor));
  s.out0[item] = (OUT0)(FINISH == 2 ? sqrtf(mean) : mean);
#else
  const double mean = double(acc) / s.divisor;
  s.out0[item] = (OUT0)(FINISH == 2 ? sqrt(mean) : mean);
#endif
}

#if TOGETHER
// Called by all threads of a block; in the sample's last block it adds up the accumulators in `s.parts`.
inline void finish_together(const Sample& s, const Shared& shared) {
  __shared__ int is_last;
  __shared__ ACC held[256];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd((int*)&s.arrived, 1) == int(gridDim.x) - 1;
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  volatile const ACC* parts = (volatile const ACC*)s.parts;
  for (long long kept = 0; kept < s.outer * s.inner; kept++) {
    const long long first = kept / s.inner * s.splits * s.inner + kept % s.inner;
    ACC acc = shared.first;
    for (long long k = threadIdx.x; k < s.splits; k += blockDim.x) acc = joined(acc, parts[first + k * s.inner]);
    held[threadIdx.x] = acc;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
      if (int(threadIdx.x) < half) held[threadIdx.x] = joined(held[threadIdx.x], held[threadIdx.x + half]);
      __syncthreads();
    }
    if (threadIdx.x == 0) finish(s, shared, kept, held[0]);
    __syncthreads();
  }
}
#endif

extern "C" __global__ void reduce(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
#if FROM_INPUT
    const SOURCE* source = s.in0;
#else
    const SOURCE* source = (const SOURCE*)s.source;
#endif
    const long long line = s.splits * s.inner, items = s.outer * line;
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long item = blockIdx.x * (long long)blockDim.x + threadIdx.x; item < items; item += step) {
      const long long o = item / line, i = item % line % s.inner;
      ACC acc = shared.first;
#pragma unroll 8
      for (long long r = item % line / s.inner; r < s.rows; r += s.splits) {
        const long long flat = (o * s.rows + r) * s.inner + i;
        const SOURCE value = source[flat];
#if KIND == KIND_SQUARE
        acc += (ACC)value * (ACC)value;
#elif KIND == KIND_DEVIATION
        const ACC away = (ACC)value - mean_at(s, o, i, flat);
        acc += away * away;
#else
        acc = joined(acc, (ACC)value);
#endif
      }
#if TOGETHER
      ((ACC*)s.parts)[item] = acc;
#elif !LAST
      ((ACC*)s.target)[item] = acc;
#else
      finish(s, shared, item, acc);
#endif
    }
#if TOGETHER
    finish_together(s, shared);
#endif
  }
}
