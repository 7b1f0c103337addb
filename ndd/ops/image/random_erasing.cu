// One thread an element: inside the region it is a normal number, the same in all frames of a video.
#include "draws.cuh"
#include "scalar.cuh"

template <class T>
inline T drawn(float value) {
  if constexpr (limits<T>::is_bool) return value != 0.0f;
  else if constexpr (limits<T>::is_integer) return (T)(long long)value;
  else return convert<T>(value);
}

PER_ITEM(random_erasing) {
  constexpr int AXES = sizeof(s.out0_shape) / sizeof(s.out0_shape[0]);
  unsigned long long rest = i, frame = 1;
  bool erased = true;
#pragma unroll
  for (int axis = AXES - 1; axis >= 0; axis--) {
    const unsigned int size = (unsigned int)s.out0_shape[axis];
    const unsigned long long above = quotient(rest, size);
    const long long at = (long long)(rest - above * size);
    erased = erased && at >= s.bounds[0][0][axis] && at < s.bounds[0][1][axis];
    if (axis >= shared.frames) frame *= size;
    rest = above;
  }
  if (erased) {
    Words words(s.stream, (unsigned long long)i % frame);
    s.out0[i] = drawn<OUT0>(draw_normal(words));
  } else {
    s.out0[i] = s.in0[i];
  }
}
