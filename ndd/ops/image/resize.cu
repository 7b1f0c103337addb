// Resampling of a ragged batch. `view` is [planes, h, w, channels, h_out, w_out]; `start`, `end`, `kind`, `radius`
// have an entry for each resampled axis, `shared.pair` says which of them are y and x.
//
// resample_plane: both axes at once, a thread a pixel. Without intermediate image it is bound by reading the source
//                 (a triangle reads each pixel four times, from L1), but slow for hundreds of taps.
// resample_line:  one axis of [outer, n, inner], a thread an element. `line` is [outer, n, inner, n_out]. With LINE.
#include "resample.cuh"

// Where pixels come from and go to: the operator's input and output, or float scratch memory.
#ifndef SOURCE
#define SOURCE s.in0
#define SOURCE_TYPE IN
#endif
#ifndef TARGET
#define TARGET s.out0
#define TARGET_TYPE OUT
#endif

// Ties are rounded to even, as on the CPU.
inline TARGET_TYPE stored(float value) {
  return convert<TARGET_TYPE>(limits<TARGET_TYPE>::is_float ? value : rintf(value));
}

#ifndef LINE
#define MOST_TAPS 32

template <int CHANNELS>
inline void pixel(const SOURCE_TYPE* source, TARGET_TYPE* target, long long h, long long w, long long stride,
                  const ResampleAxis& down, const ResampleAxis& across, long long y, long long x) {
  float weights[MOST_TAPS], at, total = 0.0f, sums[CHANNELS] = {0.0f};
  const long long left = first_tap(across, x, &at);
  for (int k = 0; k < across.taps; k++, at += across.step) total += weights[k] = filter_weight(across, at);
  const float across_norm = 1.0f / total;
  const long long top = first_tap(down, y, &at);
  total = 0.0f;
  for (int j = 0; j < down.taps; j++, at += down.step) {
    const float weight = filter_weight(down, at);
    total += weight;
    const SOURCE_TYPE* row = source + inside(top + j, h) * w * stride;
    float part[CHANNELS] = {0.0f};
    for (int k = 0; k < across.taps; k++) {
      const SOURCE_TYPE* tap = row + inside(left + k, w) * stride;
      for (int c = 0; c < CHANNELS; c++) part[c] += weights[k] * float(tap[c]);
    }
    for (int c = 0; c < CHANNELS; c++) sums[c] += weight * (part[c] * across_norm);
  }
  for (int c = 0; c < CHANNELS; c++) target[c] = stored(sums[c] / total);
}

extern "C" __global__ void resample_plane(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    const long long h = s.view[1], w = s.view[2], channels = s.view[3], h_out = s.view[4], w_out = s.view[5];
    const int p = shared.pair[0], q = shared.pair[1];
    const ResampleAxis down = resample_axis_of(s.start[p], s.end[p], h_out, s.kind[p], s.radius[p]);
    const ResampleAxis across = resample_axis_of(s.start[q], s.end[q], w_out, s.kind[q], s.radius[q]);
    const long long step = channels <= 4 ? channels : 1;  // channels that one thread computes
    const long long groups = channels == 0 ? 0 : channels / step;
    const long long total = s.view[0] * h_out * w_out * groups;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < total;
         i += (long long)gridDim.x * blockDim.x) {
      const long long c = i % groups * step, place = i / groups;
      const long long x = place % w_out, y = place / w_out % h_out, plane = place / w_out / h_out;
      const SOURCE_TYPE* source = SOURCE + plane * h * w * channels + c;
      TARGET_TYPE* target = TARGET + place * channels + c;
      if (step == 3) pixel<3>(source, target, h, w, channels, down, across, y, x);
      else if (step == 1) pixel<1>(source, target, h, w, channels, down, across, y, x);
      else if (step == 4) pixel<4>(source, target, h, w, channels, down, across, y, x);
      else pixel<2>(source, target, h, w, channels, down, across, y, x);
    }
  }
}

#else
extern "C" __global__ void resample_line(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    const long long extent = s.line[1], inner = s.line[2], n_out = s.line[3];
    const int p = shared.axis;
    const ResampleAxis axis = resample_axis_of(s.start[p], s.end[p], n_out, s.kind[p], s.radius[p]);
    const long long total = s.line[0] * n_out * inner;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < total;
         i += (long long)gridDim.x * blockDim.x) {
      const long long c = i % inner, o = i / inner % n_out, outer = i / inner / n_out;
      const SOURCE_TYPE* source = SOURCE + outer * extent * inner + c;
      float at, sum = 0.0f, norm = 0.0f;
      const long long first = first_tap(axis, o, &at);
      for (int k = 0; k < axis.taps; k++, at += axis.step) {
        const float weight = filter_weight(axis, at);
        norm += weight;
        sum += weight * float(source[inside(first + k, extent) * inner]);
      }
      TARGET[i] = stored(sum / norm);
    }
  }
}
#endif

#ifdef OUT1
extern "C" __global__ void save_extents(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < s.out1_shape[0];
         i += (long long)gridDim.x * blockDim.x)
      s.out1[i] = s.extents[i];
  }
}
#endif
