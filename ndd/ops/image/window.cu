// A window of each sample, of at most five axes; what lies outside the input takes the fill value of its channel.
#include "scalar.cuh"

// Integers beyond float16 become its largest number; halves between two numbers go away from zero (see window.py).
template <class IN_>
inline OUT converted_element(IN_ value) {
  if constexpr (same_type<OUT, half_t>::value && limits<IN_>::is_integer) {
    float number = fminf(fmaxf((float)value, -65504.0f), 65504.0f);
    if (fabsf(number) > 2048.0f) number += copysignf(0.25f, number);
    return convert<OUT>(number);
  } else {
    return truncated<OUT>(value);
  }
}

// The index type is 32 bits wide where it can be: 64-bit division costs several times as much.
template <class I>
inline void take_window(const Sample& s, const Shared& shared, I total) {
  const I step = (I)gridDim.x * blockDim.x;
  for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < total; i += step) {
    I rest = i;
    long long offset = 0, stride = 1;
    bool inside = true;
    int channel = 0;
#pragma unroll
    for (int axis = 4; axis >= 0; axis--) {
      const I size = (I)s.size[axis];
      I place = rest;
      if (axis > 0 && rest >= size) {
        rest = place / size;
        place -= rest * size;
      } else {
        rest = 0;
      }
      const long long source = (long long)place + s.start[axis];
      inside = inside && source >= 0 && source < s.extent[axis];
      offset += source * stride;
      stride *= s.extent[axis];
      if (axis == shared.channel_slot) channel = (int)place;
    }
    s.out0[i] = inside ? converted_element(s.in0[offset]) : convert<OUT>(s.fill[channel]);
    if (i + step < i) break;
  }
}

extern "C" __global__ void window(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    unsigned long long total = 1;
    for (int axis = 0; axis < 5; axis++) total *= s.size[axis];
    if (total < 0xffffffffull) take_window<unsigned int>(s, shared, (unsigned int)total);
    else take_window<unsigned long long>(s, shared, total);
  }
}
