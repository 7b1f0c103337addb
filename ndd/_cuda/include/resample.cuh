// Separable resampling with windowed filters: the rule of ndd/_cpu/resample.py, one output pixel at a time.
//
//   resample_axis_of(...)     how an axis is resampled: filter, first tap, number of taps
//   first_tap(axis, i, &x)    source index of the first tap of output i (may lie outside) and its filter coordinate
//   fill_table(axis, table)   the filter's table in shared memory; all threads of a block call it and then wait
//   table_weight(axis, table, x)
//                             weight, not normalised, at filter coordinate x; the next tap is at x + axis.step
//   inside(index, n)          an index outside the image is that of its edge; `within` for 32 bits
#ifndef NDD_RESAMPLE_CUH
#define NDD_RESAMPLE_CUH

#include "scalar.cuh"

enum { FILTER_NN = 0, FILTER_CUBIC = 2, FILTER_LANCZOS3 = 3, FILTER_TRIANGLE = 4, FILTER_GAUSSIAN = 5, FILTER_NN_FUSED = 6 };
// As torch and torchvision resample, see `exact_taps` in ndd/_cpu/filter_taps.py.
enum { NN_CORNER = 7, NN_CENTRE, SHARP_TRIANGLE, SHARP_CUBIC, SHARP_LANCZOS, NARROW_TRIANGLE, NARROW_CUBIC };

struct ResampleAxis {
  float start, scale;  // source coordinate of the left edge of output 0; source pixels for each output pixel
  float origin, step;  // source index of the left end of the filter at output 0; table entries for each source pixel
  int kind, last, taps;
  bool fused;  // the nearest pixel as CV-CUDA finds it
};

inline ResampleAxis resample_axis_of(float start, float end, long long n_out, int kind, float radius) {
  ResampleAxis axis;
  axis.start = start;
  axis.scale = (end - start) / float(n_out);
  axis.fused = kind == FILTER_NN_FUSED;
  if (axis.fused) kind = FILTER_NN;
  axis.kind = kind;
  axis.last = kind == FILTER_CUBIC ? 128 : kind == FILTER_LANCZOS3 ? 192 : kind == FILTER_GAUSSIAN ? 64 : 2;
  float support = 2.0f * radius;
  // Rounded as on the CPU: it decides which taps count.
  if (kind == FILTER_GAUSSIAN) support = float(double(radius) * 0.5 / 1.4142135623730951) * 5.656854249492381f;
  axis.step = float(axis.last) / support;
  axis.taps = kind == FILTER_NN ? 1 : int(ceilf(float(axis.last) / axis.step));
  axis.origin = start + (0.5f * axis.scale - 0.5f - float(axis.last / 2) / axis.step);
  return axis;
}

inline long long first_tap(const ResampleAxis& axis, long long i, float* x) {
  if (axis.kind == FILTER_NN) {
    *x = 1.0f;
    if (axis.fused) return (long long)floorf(fmaf(float(i), axis.scale, axis.start + 0.5f * axis.scale));
    // Separate roundings, as on the CPU: where two pixels are equally near, they decide.
#ifdef __CUDACC_RTC__
    return (long long)floorf(__fadd_rn(__fmul_rn(float(i) + 0.5f, axis.scale), axis.start));
#else
    return (long long)floorf((float(i) + 0.5f) * axis.scale + axis.start);
#endif
  }
#ifdef __CUDACC_RTC__
  const float left = __fadd_rn(__fmul_rn(float(i), axis.scale), axis.origin);
#else
  const float left = float(i) * axis.scale + axis.origin;
#endif
  const float index = ceilf(left);
  *x = (index - left) * axis.step;
  return (long long)index;
}

// Short forms, absolute error below 1e-6: the long ones in the many places where kernels ask for weights made 1.3 MB
// of code that took a minute to compile. sin(pi * x) for x in -3..3.
inline float sine_of_half_turns(float x) {
#ifdef __CUDACC_RTC__
  return __sinf(3.14159265358979f * (x - 2.0f * rintf(0.5f * x)));
#else
  return sinf(3.14159265358979f * (x - 2.0f * rintf(0.5f * x)));
#endif
}

// Entry j of the table that the filter is looked up in; 32 entries for each pixel of the filter not widened.
inline float filter_entry(int kind, int j) {
  if (kind == FILTER_CUBIC) {
    const float t = fabsf(float(j - 64)) * 0.03125f;
    return t < 1.0f ? (1.5f * t - 2.5f) * t * t + 1.0f : ((-0.5f * t + 2.5f) * t - 4.0f) * t + 2.0f;
  }
  if (kind == FILTER_GAUSSIAN) {
    const float t = float(j - 32) * 0.03125f;
#ifdef __CUDACC_RTC__
    return __expf(-4.0f * t * t);
#else
    return expf(-4.0f * t * t);
#endif
  }
  const float t = float(j - 96) * 0.03125f;
  const float product = sine_of_half_turns(t) * sine_of_half_turns(t * 0.333333333f) * 0.303963550927013f;  // 3 / pi^2
#ifdef __CUDACC_RTC__
  return j == 96 ? 1.0f : __fdividef(product, t * t);
#else
  return j == 96 ? 1.0f : product / (t * t);
#endif
}

inline float triangle_weight(float x) { return fmaxf(fminf(x, 2.0f - x), 0.0f); }

// Entries of a filter's table: all of them, the one behind and one to spare.
#define FILTER_ENTRIES 195

// An entry and the way to the next one.
struct alignas(8) FilterStep {
  float value, rise;
};

// The table of an axis, by the threads of a block together; a triangle or NN needs none.
inline void fill_table(const ResampleAxis& axis, FilterStep* table) {
  if (axis.last <= 2) return;
  for (int j = threadIdx.x; j < axis.last + 3; j += blockDim.x) {
    const float value = j <= axis.last ? filter_entry(axis.kind, j) : 0.0f;
    table[j].value = value;
    table[j].rise = (j < axis.last ? filter_entry(axis.kind, j + 1) : 0.0f) - value;
  }
}

inline float table_weight(const ResampleAxis& axis, const FilterStep* table, float x) {
  if (axis.last <= 2) return axis.kind == FILTER_NN ? 1.0f : triangle_weight(x);
  const int j = int(x) < axis.last + 1 ? int(x) : axis.last + 1;
  const FilterStep found = table[j];
  return found.value + (x - float(j)) * found.rise;
}

inline long long inside(long long index, long long n) { return index < 0 ? 0 : index >= n ? n - 1 : index; }

inline int within(int index, int n) { return index < 0 ? 0 : index >= n ? n - 1 : index; }

// An element as float. For bytes without the conversion instruction, which GPUs run at a quarter of the rate.
template <class T>
inline float as_float(T value) {
  return float(value);
}
inline float as_float(unsigned char value) { return float_from_bits(0x4b000000u | value) - 8388608.0f; }

// How an axis is resampled by torch's rule: of `extent` pixels from `low` on.
struct ExactAxis {
  long long low, extent, n_out;
  float scale, widened, radius;
  int kind, taps;
  bool mirrored;
};

inline ExactAxis exact_axis_of(float start, float end, long long n_out, int kind, float radius) {
  ExactAxis axis;
  axis.kind = kind;
  axis.n_out = n_out;
  axis.mirrored = end < start;
  axis.low = (long long)floorf(fminf(start, end));
  axis.extent = (long long)ceilf(fmaxf(start, end)) - axis.low;
  if (axis.extent < 1) axis.extent = 1;
  axis.scale = float(double(fabsf(end - start)) / double(n_out));
  axis.widened = kind < NARROW_TRIANGLE ? fmaxf(axis.scale, 1.0f) : 1.0f;
  axis.radius = radius;
  axis.taps = kind <= NN_CENTRE ? 1 : int(ceilf(2.0f * radius)) + (kind < NARROW_TRIANGLE ? 1 : 0);
  return axis;
}

inline float exact_weight(int kind, float x) {
  x = fabsf(x);
  if (kind == SHARP_TRIANGLE || kind == NARROW_TRIANGLE) return fmaxf(1.0f - x, 0.0f);
  if (kind == SHARP_LANCZOS) {
    if (x >= 3.0f) return 0.0f;
    const float angle = 3.14159265358979f * x;
    return x == 0.0f ? 1.0f : 3.0f * sinf(angle) * sinf(angle / 3.0f) / (angle * angle);
  }
  const float a = kind == SHARP_CUBIC ? -0.5f : -0.75f;
  if (x < 1.0f) return ((a + 2.0f) * x - (a + 3.0f)) * x * x + 1.0f;
  return x < 2.0f ? (((x - 5.0f) * x + 8.0f) * x - 4.0f) * a : 0.0f;
}

// The first pixel of the region that output `i` is made of (and how many), and where in its filter that lies.
inline long long exact_first(const ExactAxis& axis, long long i, int* count, float* place) {
  if (axis.mirrored) i = axis.n_out - 1 - i;
  *count = axis.taps;
  const float centre = axis.scale * (float(i) + 0.5f);
  if (axis.kind == NN_CORNER || axis.kind == NN_CENTRE) {
    const long long pixel = (long long)floorf(axis.kind == NN_CENTRE ? centre : float(i) * axis.scale);
    return pixel < axis.extent ? pixel : axis.extent - 1;
  }
  if (axis.kind >= NARROW_TRIANGLE) {  // it repeats the edge
    const long long begin = (long long)floorf(centre - 0.5f) - (axis.taps / 2 - 1);
    *place = float(begin) - (centre - 0.5f);
    return begin;
  }
  long long first = (long long)(centre - axis.radius + 0.5f), behind = (long long)(centre + axis.radius + 0.5f);
  first = first < 0 ? 0 : first < axis.extent ? first : axis.extent - 1;
  if (behind > axis.extent) behind = axis.extent;
  if (behind - first < axis.taps) *count = int(behind - first);
  *place = float(first) - centre + 0.5f;
  return first;
}

#endif
