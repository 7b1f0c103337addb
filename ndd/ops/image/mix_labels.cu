// Shares of the label of a sample and of its partner's: class numbers, or weights of all classes.
#include "scalar.cuh"

inline float weight_of(const Sample& s, long long i) {
  return s.numbered ? float((long long)number(s.in1[0]) == i) : float(number(s.in1[i]));
}

PER_ITEM(mix_labels) {
  const Sample& other = (&s)[s.step];
  s.out1[i] = s.share * weight_of(s, i) + (1.0f - s.share) * weight_of(other, i);
}
