// Resampling of a ragged batch. `view` is [planes, h, w, channels, h_out, w_out]; `start`, `end`, `kind`, `radius`
// have an entry for each resampled axis, `shared.pair` says which of them are y and x.
//
// resample_plane: both axes at once, without an image in between: a thread makes 4 pixels in a column. Not for
//                 hundreds of taps, nor for more than 32 along x.
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
// A thread computes this many pixels, one below the other.
#define ROWS 4

// Triangles of up to 8 taps, the usual case: everything in registers, source rows shared by the pixels.
template <int CHANNELS>
inline void triangle_strip(const SOURCE_TYPE* source, TARGET_TYPE* target, int h, int w, int channels, int out_line,
                           const ResampleAxis& down, const ResampleAxis& across, int y, int count, int x) {
  float weights[8], at, total = 0.0f;
  int offset[8];
  const int left = int(first_tap(across, x, &at));
#pragma unroll
  for (int k = 0; k < 8; k++) {
    weights[k] = k < across.taps ? triangle_weight(at) : 0.0f;
    offset[k] = within(left + k, w) * channels;
    total += weights[k];
    at += across.step;
  }
  const float norm = 1.0f / total;
  int top[ROWS], low = 0, high = 0;
  float place[ROWS], totals[ROWS], sums[ROWS][CHANNELS];
#pragma unroll
  for (int j = 0; j < ROWS; j++) {
    totals[j] = 0.0f;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) sums[j][c] = 0.0f;
    top[j] = int(first_tap(down, y + (j < count ? j : 0), &place[j]));
    low = j == 0 || top[j] < low ? top[j] : low;
    high = j == 0 || top[j] > high ? top[j] : high;
  }
  for (int r = low; r < high + down.taps; r++) {
    float weight[ROWS], any = 0.0f, part[CHANNELS];
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
      // Outside of the window the weight is 0 by itself.
      weight[j] = triangle_weight(place[j] + float(r - top[j]) * down.step);
      any += weight[j];
    }
    if (any == 0.0f) continue;
    const SOURCE_TYPE* row = source + (long long)within(r, h) * (w * channels);
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) part[c] = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; k++) {
      if (k < across.taps) {
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) part[c] += weights[k] * as_float(row[offset[k] + c]);
      }
    }
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
      if (weight[j] != 0.0f) {
        totals[j] += weight[j];
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) sums[j][c] += weight[j] * part[c];
      }
    }
  }
#pragma unroll
  for (int j = 0; j < ROWS; j++) {
    if (j < count) {
      const float scale = norm / totals[j];
#pragma unroll
      for (int c = 0; c < CHANNELS; c++) target[j * out_line + c] = stored(sums[j][c] * scale);
    }
  }
}

// Any filter of up to 32 taps along x. Loops stay loops: unrolled they were a megabyte of code.
template <int CHANNELS>
inline void any_strip(const SOURCE_TYPE* source, TARGET_TYPE* target, int h, int w, int channels, int out_line,
                      const ResampleAxis& down, const ResampleAxis& across, int y, int count, int x) {
  float weights[32], at, total = 0.0f;
  const int left = int(first_tap(across, x, &at));
#pragma unroll 1
  for (int k = 0; k < across.taps; k++, at += across.step) total += weights[k] = filter_weight(across, at);
  const float norm = 1.0f / total;
#pragma unroll 1
  for (int j = 0; j < count; j++) {
    const int top = int(first_tap(down, y + j, &at));
    float sums[CHANNELS] = {0.0f};
    total = 0.0f;
#pragma unroll 1
    for (int t = 0; t < down.taps; t++, at += down.step) {
      const float weight = filter_weight(down, at);
      const SOURCE_TYPE* row = source + (long long)within(top + t, h) * (w * channels);
      float part[CHANNELS] = {0.0f};
      total += weight;
#pragma unroll 2
      for (int k = 0; k < across.taps; k++) {
        const SOURCE_TYPE* tap = row + within(left + k, w) * channels;
        for (int c = 0; c < CHANNELS; c++) part[c] += weights[k] * as_float(tap[c]);
      }
      for (int c = 0; c < CHANNELS; c++) sums[c] += weight * part[c];
    }
    const float scale = norm / total;
    for (int c = 0; c < CHANNELS; c++) target[j * out_line + c] = stored(sums[c] * scale);
  }
}

template <int CHANNELS>
inline void nearest(const SOURCE_TYPE* source, TARGET_TYPE* target, int h, int w, int channels, int out_line,
                    const ResampleAxis& down, const ResampleAxis& across, int y, int count, int x) {
  float unused;
  const int column = within(int(first_tap(across, x, &unused)), w) * channels;
  // From row to row the position is added up, as on the CPU.
  float position = down.start + 0.5f * down.scale;
  for (int j = 0; j < y && !down.fused; j++) position += down.scale;
  for (int j = 0; j < count; j++, position += down.scale) {
    const int row = down.fused ? int(first_tap(down, y + j, &unused)) : int(floorf(position));
    const SOURCE_TYPE* pixel = source + (long long)within(row, h) * w * channels + column;
    for (int c = 0; c < CHANNELS; c++) target[j * out_line + c] = convert<TARGET_TYPE>(pixel[c]);
  }
}

template <int CHANNELS>
inline void some_rows(const SOURCE_TYPE* source, TARGET_TYPE* target, int h, int w, int channels, int out_line,
                      const ResampleAxis& down, const ResampleAxis& across, int y, int count, int x) {
  if (down.kind == FILTER_NN && across.kind == FILTER_NN)
    nearest<CHANNELS>(source, target, h, w, channels, out_line, down, across, y, count, x);
  else if (down.kind == FILTER_TRIANGLE && across.kind == FILTER_TRIANGLE && across.taps <= 8)
    triangle_strip<CHANNELS>(source, target, h, w, channels, out_line, down, across, y, count, x);
  else
    any_strip<CHANNELS>(source, target, h, w, channels, out_line, down, across, y, count, x);
}

// At most 80 registers: on an H200, 64 photographs to 224x224 take 92 us; without the bound 203 us, with 64 registers 110.
extern "C" __global__ void __launch_bounds__(256, 3) resample_plane(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    // 32-bit numbers: a division in 64 bits costs as much as a filter. Samples of 2**31 elements come as lines.
    const int h = int(s.view[1]), w = int(s.view[2]), channels = int(s.view[3]);
    const int h_out = int(s.view[4]), w_out = int(s.view[5]);
    const int p = shared.pair[0], q = shared.pair[1];
    const ResampleAxis down = resample_axis_of(s.start[p], s.end[p], h_out, s.kind[p], s.radius[p]);
    const ResampleAxis across = resample_axis_of(s.start[q], s.end[q], w_out, s.kind[q], s.radius[q]);
    const int step = channels == 3 || channels == 4 ? channels : 1;  // channels that one thread computes
    const unsigned columns = unsigned(w_out * (channels / step)), strips = (h_out + ROWS - 1) / ROWS;
    const unsigned total = unsigned(s.view[0]) * strips * columns;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
      const unsigned line = i / columns, column = i - line * columns;
      const unsigned plane = line / strips;
      const int y = int(line - plane * strips) * ROWS, rows = h_out - y < ROWS ? h_out - y : ROWS;
      const int x = int(column) / (channels / step), c = int(column) % (channels / step) * step;
      const SOURCE_TYPE* source = SOURCE + (long long)plane * h * w * channels + c;
      TARGET_TYPE* target = TARGET + (((long long)plane * h_out + y) * w_out + x) * channels + c;
      const int out_line = w_out * channels;
      if (step == 3) some_rows<3>(source, target, h, w, channels, out_line, down, across, y, rows, x);
      else if (step == 4) some_rows<4>(source, target, h, w, channels, out_line, down, across, y, rows, x);
      else some_rows<1>(source, target, h, w, channels, out_line, down, across, y, rows, x);
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
        sum += weight * as_float(source[inside(first + k, extent) * inner]);
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
