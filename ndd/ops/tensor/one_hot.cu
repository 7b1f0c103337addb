// out[o, c, i] = on where c is the class number in[o, i], off elsewhere.
#include "scalar.cuh"

PER_ITEM(one_hot) {
  const long long inside = i % s.inner, place = i / s.inner % shared.classes;
  const IN0 number = s.in0[i / s.inner / shared.classes * s.inner + inside];
  bool found = false;
  if constexpr (limits<IN0>::is_float)
    found = number > (IN0)(-1) && number < (IN0)shared.classes && (long long)number == place;
  else
    found = (unsigned long long)number == (unsigned long long)place;
  s.out0[i] = found ? shared.on : shared.off;
}
