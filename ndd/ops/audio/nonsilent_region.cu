// The power of a moving window, and where it is not below a threshold. Sums of floats in float32, as on the CPU, without fused
// multiply-add: the region is the same sample for sample.
#include "block.cuh"
#include "scalar.cuh"

#if EXACT  // integers of 8 and 16 bits: sums are whole numbers, as on the CPU
typedef long long Sum;
#define ADD(a, b) ((a) + (b))
#define SQUARE(a) ((a) * (a))
#else
typedef float Sum;
#define ADD(a, b) PLUS(a, b)
#define SQUARE(a) TIMES(a, a)
#endif

#ifdef __CUDACC_RTC__
#define TIMES(a, b) __fmul_rn(a, b)
#define PLUS(a, b) __fadd_rn(a, b)
#else
#define TIMES(a, b) ((a) * (b))
#define PLUS(a, b) ((a) + (b))
#endif

// One warp for each interval at whose beginning the sum is formed anew. Each addition waits for the one before, so that is
// all that the chain does: 32 lanes read and square 32 numbers at once and hand them round.
KERNEL_NAME(powers)(const Sample* samples, int count, Shared shared) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  EACH_SAMPLE(s) {
    const long long n = s.in0_shape[0], window = s.window;
    const float share = 1.0f / float(window);
    float* powers = (float*)s.powers;
    for (long long i = blockIdx.x * 8ll + warp; i < s.intervals; i += gridDim.x * 8ll) {
      const long long first = i * shared.interval, last = i + 1 == s.intervals ? n : first + shared.interval;
      Sum total = 0;
      float peak = 0;
      // Numbers are read three rounds ahead: to wait for them takes twice as long as to add 32 of them.
      auto near = [&](long long at, long long from, long long to) {
        return at >= from && at < to ? Sum(s.in0[at]) : Sum(0);
      };
      const long long begin = i ? first - window + 1 : first;
      Sum value = near(begin + lane, begin, first), next = near(begin + 32 + lane, begin, first);
      Sum later = near(begin + 64 + lane, begin, first);
      for (long long start = begin; start < first; start += 32) {
        const Sum square = SQUARE(value);
        value = next;
        next = later;
        later = near(start + 96 + lane, begin, first);
#pragma unroll
        for (int k = 0; k < 32; k++) total = ADD(total, __shfl_sync(~0u, square, k));  // what is behind the end adds 0
      }
      const long long leaves = i ? first + 1 : first;  // from here on a number leaves the window where one comes in
      value = near(first + lane, first, last);
      next = near(first + 32 + lane, first, last);
      later = near(first + 64 + lane, first, last);
      Sum old = first + lane >= leaves ? near(first + lane - window, 0, last - window) : Sum(0);
      Sum old_next = near(first + 32 + lane - window, 0, last - window);
      for (long long start = first; start < last; start += 32) {
        const long long at = start + lane;
        const Sum square = SQUARE(value), gone = -SQUARE(old);
        value = next;
        next = later;
        later = near(at + 96, first, last);
        old = old_next;
        old_next = near(at + 64 - window, 0, last - window);
        Sum own = 0;
#pragma unroll
        for (int k = 0; k < 32; k++) {
          total = ADD(ADD(total, __shfl_sync(~0u, gone, k)), __shfl_sync(~0u, square, k));
          own = lane == k ? total : own;
        }
        const float power = TIMES(float(own), share);
        if (at < last) {
          powers[at] = power;
          peak = power > peak ? power : peak;
        }
      }
      for (int half = 16; half > 0; half /= 2) {
        const float other = __shfl_xor_sync(~0u, peak, half);
        peak = other > peak ? other : peak;
      }
      // In the sample's record, which begins with 0: of positive numbers the larger has the larger bits.
      if (lane == 0) atomicMax((int*)&s.peak, __float_as_int(peak));
    }
  }
}

// One block for each sample: the threshold, then the first and the last power that reaches it.
KERNEL_NAME(region)(const Sample* samples, int count, Shared shared) {
  const int thread = threadIdx.x;
  if (blockIdx.x) return;
  EACH_SAMPLE(s) {
    const long long n = s.in0_shape[0];
    const float* powers = (const float*)s.powers;
    const float threshold = TIMES(shared.reference > 0 ? shared.reference : s.peak, shared.ratio);
    long long first = n, last = -1;
    for (long long k = thread; k < n; k += 256)
      if (powers[k] >= threshold) {
        first = k;
        break;
      }
    if (n) {
      for (long long k = (n - 1 - thread); k >= 0; k -= 256)
        if (powers[k] >= threshold) {
          last = k;
          break;
        }
    }
    first = -largest_in_block(-first);
    last = largest_in_block(last);
    if (thread == 0) {
      const long long begin = first - s.window + 1 > 0 ? first - s.window + 1 : 0;
      *s.out0 = last < 0 ? 0 : int(begin);
      *s.out1 = last < 0 ? 0 : int(last - begin + 1);
    }
  }
}
