// factor * log2(max(in / reference, least)); PEAK: the reference is the sample's largest value, if that is positive.
#if PEAK
// The largest value goes to the sample's record, which begins with 0: of positive numbers the larger has the larger bits.
KERNEL_NAME(peaks)(const Sample* samples, int count, Shared shared) {
  __shared__ int highest[256];
  EACH_SAMPLE(s) {
    float largest = 0;
    EACH_ITEM(i, s.items) {
      const float value = s.in0[i];
      largest = value > largest ? value : largest;
    }
    highest[threadIdx.x] = __float_as_int(largest);
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
      if (threadIdx.x < half && highest[threadIdx.x + half] > highest[threadIdx.x])
        highest[threadIdx.x] = highest[threadIdx.x + half];
      __syncthreads();
    }
    if (threadIdx.x == 0 && highest[0] > 0) atomicMax((int*)&s.peak, highest[0]);
    __syncthreads();
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
