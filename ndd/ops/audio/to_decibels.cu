// factor * log2(max(in / reference, least)); PEAK: the reference is the sample's largest value, if that is positive.
#include "block.cuh"

#if PEAK
// The largest value goes to the sample's record, which begins with 0: of positive numbers the larger has the larger bits.
KERNEL_NAME(peaks)(const Sample* samples, int count, Shared shared) {
  EACH_SAMPLE(s) {
    float largest = 0;
    EACH_ITEM(i, s.items) {
      const float value = s.in0[i];
      largest = value > largest ? value : largest;
    }
    const int peak = __float_as_int(largest_in_block(largest));
    if (threadIdx.x == 0 && peak > 0) atomicMax((int*)&s.peak, peak);
  }
}
#endif

PER_ITEM(to_decibels) {
#if PEAK
  const float inverse = 1.0f / (s.peak > 0 ? s.peak : 1.0f);
#else
  const float inverse = shared.inverse;
#endif
  const float value = s.in0[i] * inverse;
  s.out0[i] = shared.factor * log2f(value > shared.least ? value : shared.least);
}
