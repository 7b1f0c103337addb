// One thread an element: it is in a region if it lies between `bounds[region][0]` and `bounds[region][1]` on every axis.
#include "scalar.cuh"

PER_ITEM(erase) {
  constexpr int AXES = sizeof(s.out0_shape) / sizeof(s.out0_shape[0]);
  constexpr int REGIONS = sizeof(s.bounds) / sizeof(s.bounds[0]);
  long long at[AXES];
  unsigned long long rest = i;
#pragma unroll
  for (int axis = AXES - 1; axis >= 0; axis--) {
    const unsigned int size = (unsigned int)s.out0_shape[axis];
    const unsigned long long above = quotient(rest, size);
    at[axis] = (long long)(rest - above * size);
    rest = above;
  }
  bool erased = false;
  for (int region = 0; region < REGIONS && !erased; region++) {
    erased = true;
    for (int axis = 0; axis < AXES; axis++)
      erased = erased && at[axis] >= s.bounds[region][0][axis] && at[axis] < s.bounds[region][1][axis];
  }
  s.out0[i] = erased ? convert<OUT>(s.fill[shared.channel < 0 ? 0 : at[shared.channel]]) : s.in0[i];
}
