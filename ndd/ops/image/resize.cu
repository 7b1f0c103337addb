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
// A thread computes this many pixels, one below the other: they share most of the source rows.
#define ROWS 4

// One source row resampled along x: part[c] = sum over k of weights[k] * row[offset[k] + c].
template <int CHANNELS, int TAPS>
inline void along_row(const SOURCE_TYPE* row, const int* offset, const float* weights, int taps, float* part) {
#pragma unroll
  for (int c = 0; c < CHANNELS; c++) part[c] = 0.0f;
#pragma unroll
  for (int k = 0; k < TAPS; k++) {
    if (k < taps) {
#pragma unroll
      for (int c = 0; c < CHANNELS; c++) part[c] += weights[k] * as_float(row[offset[k] + c]);
    }
  }
}

template <int CHANNELS, int TAPS>
inline void strip(const SOURCE_TYPE* source, TARGET_TYPE* target, int h, int w, int channels, long long out_line,
                  const ResampleAxis& down, const ResampleAxis& across, int y, int count, int x) {
  float weights[TAPS], at, total = 0.0f, part[CHANNELS];
  int offset[TAPS];
  const long long left = first_tap(across, x, &at);
#pragma unroll
  for (int k = 0; k < TAPS; k++) {
    if (k < across.taps) {
      offset[k] = int(inside(left + k, w)) * channels;
      total += weights[k] = filter_weight(across, at);
      at += across.step;
    }
  }
  const float norm = 1.0f / total;
#pragma unroll
  for (int k = 0; k < TAPS; k++)
    if (k < across.taps) weights[k] *= norm;

  long long top[ROWS], low = 0, high = 0;
  float place[ROWS], totals[ROWS], sums[ROWS][CHANNELS];
#pragma unroll
  for (int j = 0; j < ROWS; j++) {
    totals[j] = 0.0f;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) sums[j][c] = 0.0f;
    top[j] = first_tap(down, y + (j < count ? j : 0), &place[j]);
    if (j == 0 || top[j] < low) low = top[j];
    if (j == 0 || top[j] + down.taps > high) high = top[j] + down.taps;
  }
  // Rows between the windows of the pixels, if there are any, have no weight and are not read.
  for (long long r = low; r < high; r++) {
    float weight[ROWS], any = 0.0f;
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
      weight[j] = 0.0f;
      if (r >= top[j] && r < top[j] + down.taps) {
        weight[j] = filter_weight(down, place[j]);
        place[j] += down.step;
        any += fabsf(weight[j]);
      }
    }
    if (any == 0.0f) continue;
    along_row<CHANNELS, TAPS>(source + inside(r, h) * w * channels, offset, weights, across.taps, part);
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
      totals[j] += weight[j];
      if (weight[j] != 0.0f) {
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) sums[j][c] += weight[j] * part[c];
      }
    }
  }
#pragma unroll
  for (int j = 0; j < ROWS; j++) {
    if (j < count) {
#pragma unroll
      for (int c = 0; c < CHANNELS; c++) target[j * out_line + c] = stored(sums[j][c] / totals[j]);
    }
  }
}

template <int CHANNELS>
inline void nearest(const SOURCE_TYPE* source, TARGET_TYPE* target, int h, int w, int channels, long long out_line,
                    const ResampleAxis& down, const ResampleAxis& across, int y, int count, int x) {
  float unused;
  const long long column = inside(first_tap(across, x, &unused), w) * channels;
  // From row to row the position is added up, as on the CPU.
  float position = down.start + 0.5f * down.scale;
  for (int j = 0; j < y; j++) position += down.scale;
  for (int j = 0; j < count; j++, position += down.scale) {
    const SOURCE_TYPE* pixel = source + inside((long long)floorf(position), h) * w * channels + column;
    for (int c = 0; c < CHANNELS; c++) target[j * out_line + c] = convert<TARGET_TYPE>(pixel[c]);
  }
}

template <int CHANNELS>
inline void some_rows(const SOURCE_TYPE* source, TARGET_TYPE* target, int h, int w, int channels, long long out_line,
                      const ResampleAxis& down, const ResampleAxis& across, int y, int count, int x) {
  if (down.kind == FILTER_NN && across.kind == FILTER_NN)
    nearest<CHANNELS>(source, target, h, w, channels, out_line, down, across, y, count, x);
  else if (across.taps <= 8)
    strip<CHANNELS, 8>(source, target, h, w, channels, out_line, down, across, y, count, x);
  else
    strip<CHANNELS, 32>(source, target, h, w, channels, out_line, down, across, y, count, x);
}

extern "C" __global__ void resample_plane(const Sample* samples, int count, Shared shared) {
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
      const long long out_line = (long long)w_out * channels;
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
