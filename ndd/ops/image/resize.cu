// Resampling of a ragged batch. `view` is [planes, h, w, channels, h_out, w_out]; `start`, `end`, `kind`, `radius`,
// `whole` and `skip` (see resample_plan) have an entry for each resampled axis, `shared.pair` says which of them are y and x.
//
// resample_plane: both axes at once, without an image in between: a thread makes 4 pixels in a column. NN, and triangles
//                 of up to 8 taps along x. With FILTERS any filter: 8 pixels a thread, weights in shared memory; not
//                 for hundreds of taps.
// resample_line:  one axis of [outer, n, inner], a thread an element. `line` is [outer, n, inner, n_out]. With LINE. With
//                 EXACT by torch's rule.
// save_extents:   the second output, the extents before resizing. With EXTENTS.
//
// Taps of no weight leave no trace: 0 times NaN or infinity, which only floats hold, would be NaN.
//
// With JOINED the pixels go through what crop_mirror_normalize does with them, with no image in between.
#include "pack.cuh"
#include "resample.cuh"

#ifdef EXTENTS
PER_ITEM(save_extents) { s.out1[i] = s.in0_shape[shared.axes[i]]; }
#else

// Where pixels come from and go to: the operator's input and output, or float scratch memory.
#ifndef SOURCE
#define SOURCE s.in0
#define SOURCE_TYPE IN
#endif
#ifdef JOINED
#include "normalized.cuh"
#define TARGET (Normalized{s, shared, 0})
#define TARGET_POINTER Normalized
#else
#ifndef TARGET
#define TARGET s.out0
#define TARGET_TYPE OUT
#endif
#define TARGET_POINTER TARGET_TYPE*
#endif

// A thread computes this many pixels, one below the other.
#define ROWS 4

// Ties are rounded to even, as on the CPU.
inline TARGET_TYPE stored(float value) {
  return convert<TARGET_TYPE>(limits<TARGET_TYPE>::is_float ? value : rintf(value));
}

inline float weighted(float weight, float value) {
  return limits<SOURCE_TYPE>::is_float && weight == 0.0f ? 0.0f : weight * value;
}

#ifndef LINE
#ifndef FILTERS
// Triangles of up to 8 taps, the usual case: everything in registers, source rows shared by the pixels.
template <int CHANNELS>
inline void triangle_strip(const SOURCE_TYPE* source, TARGET_POINTER target, int h, int w, int channels, int out_line,
                           const ResampleAxis& down, const ResampleAxis& across, int y, int count, int x) {
  float weights[8], at, total = 0.0f;
  int offset[8], kept = 0;  // the place of a tap that has a weight
  const int left = int(first_tap(across, x, &at));
#pragma unroll
  for (int k = 0; k < 8; k++) {
    weights[k] = k < across.taps ? triangle_weight(at) : 0.0f;
    offset[k] = within(left + k, w) * channels;
    kept = weights[k] != 0.0f ? offset[k] : kept;
    total += weights[k];
    at += across.step;
  }
  if (limits<SOURCE_TYPE>::is_float) {
#pragma unroll
    for (int k = 0; k < 8; k++) offset[k] = weights[k] != 0.0f ? offset[k] : kept;
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

#else
// Any filter, by a block of threads: groups of TALL output rows in which a thread makes one column. Weights along y are
// the same for all columns. Those for PORTION source rows are made at a time, and along x those of MOST_TAPS columns.
#define TALL 8
#define PORTION 32
#define GROUPS 8
#define MOST_TAPS 16
#define BLOCK 256

struct FilterTables {
  FilterStep down[FILTER_ENTRIES], across[FILTER_ENTRIES];
  Pack<float, TALL> weights[GROUPS][PORTION];  // along y
  float totals[GROUPS][TALL];                  // of these
  float columns[MOST_TAPS][BLOCK];             // along x, of each thread
};

// Weights along y of the output rows from y on, for the source rows from `first` on; 0 where a row has no part.
inline void fill_weights(Pack<float, TALL>* weights, const ResampleAxis& down, const FilterStep* table, int h_out, int y,
                         int first) {
  for (int i = threadIdx.x; i < PORTION * TALL; i += blockDim.x) {
    const int r = i / TALL, j = i % TALL;
    float at;
    const int t = first + r - int(first_tap(down, y + j < h_out ? y + j : h_out - 1, &at));
    weights[r].element[j] = t >= 0 && t < down.taps ? table_weight(down, table, at + float(t) * down.step) : 0.0f;
  }
}

// The source rows that the output rows from y on are made of: from the first to behind the last.
inline int first_of_strip(const ResampleAxis& down, int y, int h_out) {
  float unused;
  const int last = y + TALL <= h_out ? y + TALL - 1 : h_out - 1;
  return int(first_tap(down, down.scale < 0.0f ? last : y, &unused));
}
inline int last_of_strip(const ResampleAxis& down, int y, int h_out) {
  float unused;
  const int last = y + TALL <= h_out ? y + TALL - 1 : h_out - 1;
  return int(first_tap(down, down.scale < 0.0f ? y : last, &unused)) + down.taps;
}

// One source row, filtered along x by the weights of a thread.
template <int CHANNELS>
inline void filter_row(const SOURCE_TYPE* row, int left, int w, int channels, int taps, const float* weights,
                       float* part) {
#pragma unroll
  for (int c = 0; c < CHANNELS; c++) part[c] = 0.0f;
  if (left >= 0 && left + taps <= w) {
    const SOURCE_TYPE* tap = row + left * channels;
#pragma unroll 4
    for (int k = 0; k < taps; k++) {
#pragma unroll
      for (int c = 0; c < CHANNELS; c++) part[c] += weighted(weights[k * BLOCK], as_float(tap[k * channels + c]));
    }
  } else {
#pragma unroll 1
    for (int k = 0; k < taps; k++) {
      const SOURCE_TYPE* tap = row + within(left + k, w) * channels;
#pragma unroll
      for (int c = 0; c < CHANNELS; c++) part[c] += weighted(weights[k * BLOCK], as_float(tap[c]));
    }
  }
}

template <int CHANNELS>
inline void any_filter(const SOURCE_TYPE* source, TARGET_POINTER target, const long long* view, const ResampleAxis& down,
                       const ResampleAxis& across, FilterTables& tables) {
  const int h = int(view[1]), w = int(view[2]), channels = int(view[3]), h_out = int(view[4]), w_out = int(view[5]);
  const int columns = w_out * (channels / CHANNELS), strips = (h_out + TALL - 1) / TALL;
  const int groups = columns * GROUPS <= BLOCK ? GROUPS : columns < BLOCK ? BLOCK / columns : 1;
  const int tiles_across = (columns + BLOCK - 1) / BLOCK;
  const int every = int(view[0]) * strips, tiles = (every + groups - 1) / groups * tiles_across;
  float* weights = &tables.columns[0][threadIdx.x];
  __syncthreads();
  fill_table(down, tables.down);
  fill_table(across, tables.across);
  __syncthreads();
  const int span = int(ceilf(fabsf(down.scale) * (TALL - 1))) + down.taps + 1;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int first_strip = tile / tiles_across * groups;
    const int group = groups > 1 ? int(threadIdx.x) / columns : 0;
    const int column = tile % tiles_across * BLOCK + int(threadIdx.x) - group * columns;
    const int strip = first_strip + group;
    const bool busy = group < groups && column < columns && strip < every;
    const int plane = busy ? strip / strips : 0, y = busy ? (strip - plane * strips) * TALL : 0;
    const int x = busy ? column / (channels / CHANNELS) : 0, c0 = busy ? column % (channels / CHANNELS) * CHANNELS : 0;
    float at, total = 0.0f;
    const int left = int(first_tap(across, x, &at));
    float sums[TALL][CHANNELS];
#pragma unroll
    for (int j = 0; j < TALL; j++) {
#pragma unroll
      for (int c = 0; c < CHANNELS; c++) sums[j][c] = 0.0f;
    }
    const int begin = first_of_strip(down, y, h_out), end = last_of_strip(down, y, h_out);
    const SOURCE_TYPE* image = source + (long long)plane * h * w * channels + c0;
    for (int part = 0; part < across.taps; part += MOST_TAPS) {
      const int taps = across.taps - part < MOST_TAPS ? across.taps - part : MOST_TAPS;
#pragma unroll 1
      for (int k = 0; k < taps; k++) {
        const float weight = table_weight(across, tables.across, at + float(part + k) * across.step);
        weights[k * BLOCK] = weight;
        total += weight;
      }
      for (int portion = 0; portion < span; portion += PORTION) {
        __syncthreads();
        for (int g = 0; g < groups && first_strip + g < every; g++) {
          const int top = (first_strip + g) % strips * TALL;
          fill_weights(tables.weights[g], down, tables.down, h_out, top, first_of_strip(down, top, h_out) + portion);
        }
        __syncthreads();
        if (threadIdx.x < groups * TALL) {
          float sum = portion ? tables.totals[threadIdx.x / TALL][threadIdx.x % TALL] : 0.0f;
#pragma unroll 8
          for (int r = 0; r < PORTION; r++) sum += tables.weights[threadIdx.x / TALL][r].element[threadIdx.x % TALL];
          tables.totals[threadIdx.x / TALL][threadIdx.x % TALL] = sum;
        }
        const int rows = !busy ? 0 : end - begin - portion < PORTION ? end - begin - portion : PORTION;
#pragma unroll 1
        for (int r = 0; r < rows; r++) {
          float filtered[CHANNELS];
          filter_row<CHANNELS>(image + (long long)within(begin + portion + r, h) * (w * channels), left + part, w,
                               channels, taps, weights, filtered);
          const Pack<float, TALL> weight = tables.weights[group][r];
#pragma unroll
          for (int j = 0; j < TALL; j++) {
#pragma unroll
            for (int c = 0; c < CHANNELS; c++) sums[j][c] += weighted(weight.element[j], filtered[c]);
          }
        }
      }
    }
    const float norm = 1.0f / total;
    __syncthreads();
    TARGET_POINTER pixel = target + (((long long)plane * h_out + y) * w_out + x) * channels + c0;
#pragma unroll
    for (int j = 0; j < TALL; j++) {
      if (busy && y + j < h_out) {
        const float scale = norm / tables.totals[group][j];
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) pixel[(long long)j * w_out * channels + c] = stored(sums[j][c] * scale);
      }
    }
  }
}

#endif

template <int CHANNELS>
inline void nearest(const SOURCE_TYPE* source, TARGET_POINTER target, int h, int w, int channels, int out_line,
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
inline void some_rows(const SOURCE_TYPE* source, TARGET_POINTER target, int h, int w, int channels, int out_line,
                      const ResampleAxis& down, const ResampleAxis& across, int y, int count, int x) {
#ifndef FILTERS
  if (down.kind != FILTER_NN) {
    triangle_strip<CHANNELS>(source, target, h, w, channels, out_line, down, across, y, count, x);
    return;
  }
#endif
  nearest<CHANNELS>(source, target, h, w, channels, out_line, down, across, y, count, x);
}

// At most 80 registers: on an H200, 64 photographs to 224x224 take 92 us; without the bound 203 us, with 64 registers 110.
extern "C" __global__ void __launch_bounds__(256, 3) resample_plane(const Sample* samples, int count, Shared shared) {
#ifdef FILTERS
  __shared__ FilterTables tables;
#endif
  EACH_SAMPLE(s) {
    // 32-bit numbers: a division in 64 bits costs as much as a filter. Samples of 2**31 elements come as lines.
    const int h = int(s.view[1]), w = int(s.view[2]), channels = int(s.view[3]);
    const int h_out = int(s.view[4]), w_out = int(s.view[5]);
    const int p = shared.pair[0], q = shared.pair[1];
    const ResampleAxis down = resample_axis_of(s.start[p], s.end[p], h_out, s.kind[p], s.radius[p]);
    const ResampleAxis across = resample_axis_of(s.start[q], s.end[q], w_out, s.kind[q], s.radius[q]);
    const int step = channels == 3 || channels == 4 ? channels : 1;  // channels that one thread computes
    const unsigned columns = unsigned(w_out * (channels / step)), strips = (h_out + ROWS - 1) / ROWS;
    const unsigned total = unsigned(s.view[0]) * strips * columns;
    const bool nearest_pixel = down.kind == FILTER_NN && across.kind == FILTER_NN;
#ifdef FILTERS
    if (!nearest_pixel && total) {  // the same for the whole block
      if (step == 3) any_filter<3>(SOURCE, TARGET, s.view, down, across, tables);
      else if (step == 4) any_filter<4>(SOURCE, TARGET, s.view, down, across, tables);
      else any_filter<1>(SOURCE, TARGET, s.view, down, across, tables);
    }
    if (!nearest_pixel) continue;
#endif
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
      const unsigned line = i / columns, column = i - line * columns;
      const unsigned plane = line / strips;
      const int y = int(line - plane * strips) * ROWS, rows = h_out - y < ROWS ? h_out - y : ROWS;
      const int x = int(column) / (channels / step), c = int(column) % (channels / step) * step;
      const SOURCE_TYPE* source = SOURCE + (long long)plane * h * w * channels + c;
      TARGET_POINTER target = TARGET + (((long long)plane * h_out + y) * w_out + x) * channels + c;
      const int out_line = w_out * channels;
      if (step == 3) some_rows<3>(source, target, h, w, channels, out_line, down, across, y, rows, x);
      else if (step == 4) some_rows<4>(source, target, h, w, channels, out_line, down, across, y, rows, x);
      else some_rows<1>(source, target, h, w, channels, out_line, down, across, y, rows, x);
    }
  }
}

#else
#ifdef EXACT
// What a pass between two others leaves of bytes: whole numbers, as in torch.
inline TARGET_TYPE passed_on(float value) {
#ifdef IN_BYTES
  return fminf(fmaxf(floorf(value + 0.5f), 0.0f), 255.0f);
#else
  return stored(value);
#endif
}

KERNEL_NAME(resample_line)(const Sample* samples, int count, Shared shared) {
  EACH_SAMPLE(s) {
    const long long extent = s.line[1], inner = s.line[2], n_out = s.line[3];
    const int p = shared.axis;
    const ExactAxis axis = exact_axis_of(s.start[p], s.end[p], s.whole[p], s.kind[p], s.radius[p]);
    EACH_ITEM(i, s.items) {
      const long long c = i % inner, o = i / inner % n_out, outer = i / inner / n_out;
      const SOURCE_TYPE* source = SOURCE + outer * extent * inner + c;
      int taps;
      float at = 0.0f, sum = 0.0f, norm = 0.0f;
      const long long first = exact_first(axis, inside(o + s.skip[p], s.whole[p]), &taps, &at);
      if (axis.kind <= NN_CENTRE) {
        TARGET[i] = convert<TARGET_TYPE>(source[inside(axis.low + first, extent) * inner]);
        continue;
      }
      for (int k = 0; k < taps; k++) {
        const float weight = exact_weight(axis.kind, (at + float(k)) * (1.0f / axis.widened));
        const long long place = axis.low + inside(first + k, axis.extent);
        norm += weight;
        if (place >= 0 && place < extent) sum += weighted(weight, as_float(source[place * inner]));
      }
      TARGET[i] = passed_on(axis.kind < NARROW_TRIANGLE ? sum / norm : sum);
    }
  }
}
#else
KERNEL_NAME(resample_line)(const Sample* samples, int count, Shared shared) {
  __shared__ FilterStep table[FILTER_ENTRIES];
  EACH_SAMPLE(s) {
    const long long extent = s.line[1], inner = s.line[2], n_out = s.line[3];
    const int p = shared.axis;
    const ResampleAxis axis = resample_axis_of(s.start[p], s.end[p], n_out, s.kind[p], s.radius[p]);
    if (axis.last > 2) {  // the same for the whole block
      __syncthreads();
      fill_table(axis, table);
      __syncthreads();
    }
    EACH_ITEM(i, s.items) {
      const long long c = i % inner, o = i / inner % n_out, outer = i / inner / n_out;
      const SOURCE_TYPE* source = SOURCE + outer * extent * inner + c;
      float at, sum = 0.0f, norm = 0.0f;
      const long long first = first_tap(axis, o, &at);
      for (int k = 0; k < axis.taps; k++, at += axis.step) {
        const float weight = table_weight(axis, table, at);
        norm += weight;
        sum += weighted(weight, as_float(source[inside(first + k, extent) * inner]));
      }
      TARGET[i] = stored(sum / norm);
    }
  }
}
#endif
#endif

#endif
