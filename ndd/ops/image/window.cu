// A window of each sample, of at most five axes; what lies outside the input takes the fill value of its channel.
// A thread makes eight elements, so that it divides and stores once for all of them.
#include "pack.cuh"
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

struct Row {  // where the elements of one line of the output come from
  long long offset;
  bool inside;
  int channel;
};

inline Row row_at(const Sample& s, const Shared& shared, const unsigned int* at) {
  Row row = {0, true, 0};
  for (int axis = 0; axis < 4; axis++) {
    const long long source = (long long)at[axis] + s.start[axis];
    row.inside = row.inside && source >= 0 && source < s.extent[axis];
    row.offset = (row.offset + source) * s.extent[axis + 1];
    if (axis == shared.channel_slot) row.channel = (int)at[axis];
  }
  return row;
}

constexpr int COUNT = 8;  // elements that a thread makes, next to each other in the output; gpu_window knows it too
extern "C" __global__ void window(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    unsigned long long total = 1;
    for (int axis = 0; axis < 5; axis++) total *= s.size[axis];
    for (long long chunk = blockIdx.x * (long long)blockDim.x + threadIdx.x; chunk < s.chunks;
         chunk += (long long)gridDim.x * blockDim.x) {
      const unsigned long long first = chunk * (unsigned long long)COUNT;
      unsigned long long rest = first;
      unsigned int at[5];
#pragma unroll
      for (int axis = 4; axis > 0; axis--) {
        const unsigned int size = (unsigned int)s.size[axis];
        // 64-bit division costs several times as much.
        const unsigned long long above =
            rest < size ? 0 : rest <= 0xffffffffull ? (unsigned int)rest / size : rest / size;
        at[axis] = (unsigned int)(rest - above * size);
        rest = above;
      }
      at[0] = (unsigned int)rest;
      Row row = row_at(s, shared, at);
      Pack<OUT, COUNT> pack;
      const int made = total - first < COUNT ? (int)(total - first) : COUNT;
      const long long begin = (long long)at[4] + s.start[4];
      const bool one_line = at[4] + COUNT <= (unsigned int)s.size[4];
      if (one_line && row.inside && begin >= 0 && begin + COUNT <= s.extent[4]) {  // the frequent cases: no questions
        const IN0* source = s.in0 + row.offset + begin;
#pragma unroll
        for (int k = 0; k < COUNT; k++) pack.element[k] = converted_element(source[k]);
      } else if (one_line && !row.inside && shared.channel_slot != 4) {
        const OUT value = convert<OUT>(s.fill[row.channel]);
#pragma unroll
        for (int k = 0; k < COUNT; k++) pack.element[k] = value;
      } else {
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
          if (k < made) {
            const long long source = (long long)at[4] + s.start[4];
            if (row.inside && source >= 0 && source < s.extent[4])
              pack.element[k] = converted_element(s.in0[row.offset + source]);
            else
              pack.element[k] = convert<OUT>(s.fill[shared.channel_slot == 4 ? (int)at[4] : row.channel]);
            if (++at[4] == (unsigned int)s.size[4]) {
              at[4] = 0;
              int axis = 3;
              while (axis > 0 && ++at[axis] == (unsigned int)s.size[axis]) at[axis--] = 0;
              if (axis == 0) at[0]++;
              row = row_at(s, shared, at);
            }
          }
        }
      }
      store(s.out0 + first, pack, made);
    }
  }
}
