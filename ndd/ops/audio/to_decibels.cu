// factor * log2(max(in / reference, least)); PEAK: the reference is the sample's largest value, if that is positive.
PER_ITEM(to_decibels) {
#if PEAK
  const float peak = *(const float*)s.peak;
  const float inverse = 1.0f / (peak > 0 ? peak : 1.0f);
#else
  const float inverse = shared.inverse;
#endif
  const float value = s.in0[i] * inverse;
  s.out0[i] = shared.factor * log2f(value > shared.least ? value : shared.least);
}
