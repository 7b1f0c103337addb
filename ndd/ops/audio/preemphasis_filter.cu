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
  // Two roundings, as on the CPU: fused, 4 % of i16 results were off by one.
  s.out0[i] = convert<OUT0>(__fsub_rn(float(s.in0[i]), __fmul_rn(s.coefficient, before)));
}
