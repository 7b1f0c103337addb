// x[i] - coefficient * x[i - 1].
#include "scalar.cuh"

PER_ITEM(preemphasis_filter) {
  if (s.coefficient == 0) {
    s.out0[i] = convert<OUT0>(s.in0[i]);
    return;
  }
  float before = 0;
  if (i > 0)
    before = float(s.in0[i - 1]);
  else if (shared.border == 1)
    before = float(s.in0[0]);
  else if (shared.border == 2 && s.items > 1)
    before = float(s.in0[1]);
  s.out0[i] = convert<OUT0>(float(s.in0[i]) - s.coefficient * before);
}
