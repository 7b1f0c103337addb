// One thread an element of the output; `size` and `step` are extents of the output and what each means in the input.
PER_ITEM(transpose) {
  constexpr int AXES = sizeof(s.size) / sizeof(s.size[0]);
  unsigned long long rest = i, from = 0;
#pragma unroll
  for (int axis = AXES - 1; axis >= 0; axis--) {
    const unsigned long long size = s.size[axis];
    unsigned long long place = rest;
    if (axis > 0 && rest >= size) {
      // 64-bit division costs several times as much.
      rest = rest <= 0xffffffffull ? (unsigned int)rest / (unsigned int)size : rest / size;
      place -= rest * size;
    } else {
      rest = 0;
    }
    from += place * s.step[axis];
  }
  s.out0[i] = s.in0[from];
}
