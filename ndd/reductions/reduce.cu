// One stage of a reduction: a sample is [outer, rows, inner]; `splits` threads share the rows of each kept element and
// leave [outer, splits, inner] accumulators in `parts` for the next stage, or the result where there is one thread for
// each.
//
// With TOGETHER the block of a sample that finishes last makes the results from what all blocks left, in the same launch.
//
// Macros: ACC the accumulator; KIND what is accumulated, FINISH what is made of it; FROM_INPUT 1 to read input 0, 0 to
// read accumulators of the stage before (`source`); LAST 1 to write results of type RESULT to `result`; MEAN_STEPS 1 to
// find the mean of an element by a step for every axis; POOL 1 for the kernel `pool`.
#define KIND_SUM 1  // not 0, which every name is that nobody has defined
#define KIND_SQUARE 2
#define KIND_DEVIATION 3
#define KIND_MIN 4
#define KIND_MAX 5
#define KIND_MOMENTS 6  // the sums of x - p and of its square, p being a kept element's first value: they do not cancel

#define FINISH_PLAIN 1
#define FINISH_MEAN 2
#define FINISH_ROOT 3     // of the mean
#define FINISH_FACTOR 4   // times / sqrt(mean + add)
#define FINISH_MOMENTS 5  // the mean to `result`, a factor as above to `factor`

#if !KIND || !FINISH
#error "KIND and FINISH are names of those above"
#endif

#if KIND == KIND_MOMENTS
struct Moments {
  double first, second;
};
inline Moments operator+(Moments a, Moments b) { return {a.first + b.first, a.second + b.second}; }
inline Moments fresh(const volatile Moments* p) { return {p->first, p->second}; }
#endif
template <class T> T fresh(const volatile T* p) { return *p; }  // the value that other blocks have written, not a cached one

#if FROM_INPUT && KIND == KIND_DEVIATION
inline double mean_at(const Sample& s, long long o, long long i, long long flat) {
  const float* mean = (const float*)s.mean;
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
}
#endif

// What row element `flat` of kept element (o, i) adds.
inline ACC term(const Sample& s, long long o, long long i, long long flat) {
#if !FROM_INPUT
  return ((const ACC*)s.source)[flat];
#elif KIND == KIND_SQUARE
  return (ACC)s.in0[flat] * (ACC)s.in0[flat];
#elif KIND == KIND_DEVIATION
  const ACC away = (ACC)s.in0[flat] - mean_at(s, o, i, flat);
  return away * away;
#elif KIND == KIND_MOMENTS
  const double away = double(s.in0[flat]) - double(s.in0[o * s.span + i]);
  return {away, away * away};
#else
  return (ACC)s.in0[flat];
#endif
}

inline ACC joined(ACC acc, ACC value) {
#if KIND == KIND_MIN
  return value < acc ? value : acc;
#elif KIND == KIND_MAX
  return value > acc ? value : acc;
#else
  return acc + value;
#endif
}

inline ACC nothing(const Shared& shared) {
#if KIND == KIND_MIN || KIND == KIND_MAX
  return shared.first;
#else
  return {};
#endif
}

#if FINISH >= FINISH_FACTOR
inline float factor_of(const Sample& s, const Shared& shared, double squares) {
  const double variance = (s.divisor > 0 && squares > 0 ? squares / s.divisor : 0.0) + shared.add;
  return variance > 0 ? float(shared.times / sqrt(variance)) : 0.0f;
}
#endif

template <class T> void finish(const Sample& s, const Shared& shared, long long item, T acc) {
  RESULT& result = ((RESULT*)s.result)[item];
#if FINISH == FINISH_PLAIN
  result = (RESULT)acc;
#elif FINISH == FINISH_FACTOR
  result = factor_of(s, shared, double(acc));
#elif FINISH == FINISH_MOMENTS
  const double mean = double(s.in0[item / s.inner * s.span + item % s.inner]) + acc.first / s.total;
  result = float(mean);
  const double squares = acc.second - acc.first * acc.first / s.total + s.total * (mean - result) * (mean - result);
  ((float*)s.factor)[item] = factor_of(s, shared, squares);
#else
  if constexpr (limits<RESULT>::is_integer) {
    // DALI accumulates in the type of the result, which wraps, and divides in float.
    const float mean = float((RESULT)acc) * (1.0f / float(s.divisor));
    result = (RESULT)(FINISH == FINISH_ROOT ? sqrtf(mean) : mean);
  } else {
    const double mean = double(acc) / s.divisor;
    result = (RESULT)(FINISH == FINISH_ROOT ? sqrt(mean) : mean);
  }
#endif
}

#if POOL
// The results of all samples together, from the sums of each; the same for every sample.
KERNEL_NAME(pool)(const Sample* samples, int count, Shared shared) {
  if (blockIdx.y) return;
  EACH_ITEM(kept, samples[0].items) {
    double total = 0;
    for (int n = 0; n < count; n++) total += double(((const ACC*)samples[n].source)[kept]);
    for (int n = 0; n < count; n++) finish(samples[n], shared, kept, total);
  }
}
#else
#if TOGETHER
#include "block.cuh"

// Called by all threads of a block; in the sample's last block it adds up the accumulators in `s.parts`.
inline void finish_together(const Sample& s, const Shared& shared) {
  __shared__ int is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd((int*)&s.arrived, 1) == int(gridDim.x) - 1;
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  for (long long kept = 0; kept < s.outer * s.inner; kept++) {
    const long long first = kept / s.inner * s.splits * s.inner + kept % s.inner;
    ACC acc = nothing(shared);
    for (long long k = threadIdx.x; k < s.splits; k += blockDim.x)
      acc = joined(acc, fresh((const ACC*)s.parts + first + k * s.inner));
    acc = joined_in_block(acc, [](ACC a, ACC b) { return joined(a, b); });
    if (threadIdx.x == 0) finish(s, shared, kept, acc);
  }
}
#endif

KERNEL_NAME(reduce)(const Sample* samples, int count, Shared shared) {
  EACH_SAMPLE(s) {
    const long long line = s.splits * s.inner;
#if KIND == KIND_MOMENTS
    if (s.total == 0) continue;
#endif
    EACH_ITEM(item, s.items) {
      const long long o = item / line, i = item % line % s.inner;
      ACC acc = nothing(shared);
#pragma unroll 8
      for (long long r = item % line / s.inner; r < s.rows; r += s.splits)
        acc = joined(acc, term(s, o, i, (o * s.rows + r) * s.inner + i));
#if LAST
      finish(s, shared, item, acc);
#else
      ((ACC*)s.parts)[item] = acc;
#endif
    }
#if TOGETHER
    finish_together(s, shared);
#endif
  }
}
#endif
