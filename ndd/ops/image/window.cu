// A window of each sample, of at most SLOTS axes; what lies outside the input takes the fill value of its channel.
// A thread makes CHUNK elements, next to each other, so that it divides and stores once for all of them.
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

#ifdef BORDER
// Beyond the edges the array's own elements. BORDER: 0 the last one repeated, 1 mirrored at it, 2 mirrored with it repeated.
inline long long within_border(long long at, long long extent) {
  if (at >= 0 && at < extent) return at;
  if (BORDER == 0 || extent == 1) return at < 0 ? 0 : extent - 1;
  const long long period = BORDER == 1 ? 2 * (extent - 1) : 2 * extent;
  at %= period;
  if (at < 0) at += period;
  return at < extent ? at : BORDER == 1 ? period - at : period - 1 - at;
}

PER_ITEM(window_border) {
  long long rest = i, offset = 0, step = 1;
  for (int axis = SLOTS - 1; axis >= 0; axis--) {
    offset += within_border(rest % s.size[axis] + s.start[axis], s.extent[axis]) * step;
    rest /= s.size[axis];
    step *= s.extent[axis];
  }
  s.out0[i] = s.in0[offset];
}
#else
struct Row {  // where the elements of one line of the output come from
  long long offset;
  bool inside;
  int channel;
};

inline Row row_at(const Sample& s, const Shared& shared, const unsigned int* at) {
  Row row = {0, true, 0};
  for (int axis = 0; axis < SLOTS - 1; axis++) {
    const long long source = (long long)at[axis] + s.start[axis];
    row.inside = row.inside && source >= 0 && source < s.extent[axis];
    row.offset = (row.offset + source) * s.extent[axis + 1];
    if (axis == shared.channel_slot) row.channel = (int)at[axis];
  }
  return row;
}

PER_ITEM(window) {
  constexpr int LAST = SLOTS - 1;
  unsigned long long total = 1;
  for (int axis = 0; axis < SLOTS; axis++) total *= s.size[axis];
  const unsigned long long first = i * (unsigned long long)CHUNK;
  unsigned long long rest = first;
  unsigned int at[SLOTS];
#pragma unroll
  for (int axis = LAST; axis > 0; axis--) {
    const unsigned int size = (unsigned int)s.size[axis];
    const unsigned long long above = rest < size ? 0 : quotient(rest, size);
    at[axis] = (unsigned int)(rest - above * size);
    rest = above;
  }
  at[0] = (unsigned int)rest;
  Row row = row_at(s, shared, at);
  Pack<OUT, CHUNK> pack;
  const int made = total - first < CHUNK ? (int)(total - first) : CHUNK;
  const long long begin = (long long)at[LAST] + s.start[LAST];
  const bool one_line = at[LAST] + CHUNK <= (unsigned int)s.size[LAST];
  if (one_line && row.inside && begin >= 0 && begin + CHUNK <= s.extent[LAST]) {  // the frequent cases: no questions
    const IN0* source = s.in0 + row.offset + begin;
#pragma unroll
    for (int k = 0; k < CHUNK; k++) pack.element[k] = converted_element(source[k]);
  } else if (one_line && !row.inside && shared.channel_slot != LAST) {
    const OUT value = convert<OUT>(s.fill[row.channel]);
#pragma unroll
    for (int k = 0; k < CHUNK; k++) pack.element[k] = value;
  } else {
#pragma unroll
    for (int k = 0; k < CHUNK; k++) {
      if (k < made) {
        const long long source = (long long)at[LAST] + s.start[LAST];
        if (row.inside && source >= 0 && source < s.extent[LAST])
          pack.element[k] = converted_element(s.in0[row.offset + source]);
        else
          pack.element[k] = convert<OUT>(s.fill[shared.channel_slot == LAST ? (int)at[LAST] : row.channel]);
        if (++at[LAST] == (unsigned int)s.size[LAST]) {
          at[LAST] = 0;
          int axis = LAST - 1;
          while (axis > 0 && ++at[axis] == (unsigned int)s.size[axis]) at[axis--] = 0;
          if (axis == 0) at[0]++;
          row = row_at(s, shared, at);
        }
      }
    }
  }
  store(s.out0 + first, pack, made);
}
#endif
