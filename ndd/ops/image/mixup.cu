// PACK elements a thread of a sample and of its partner, blended.
#include "pack.cuh"
#include "scalar.cuh"

PER_PACK(mixup) {
  const Sample& other = (&s)[s.step];
  const float rest = 1.0f - s.share;
  Pack<OUT0, PACK> values;
  for (int k = 0; k < size; k++) {
    const float mixed = s.share * float(number(s.in0[first + k])) + rest * float(number(other.in0[first + k]));
    values.element[k] = convert<OUT0>(limits<OUT0>::is_integer ? rintf(mixed) : mixed);
  }
  store(s.out0 + first, values, size);
}
