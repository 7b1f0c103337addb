// Sums of separable terms (gaussian_blur, laplacian), reflected at the borders without the outermost element.
//
// TILED: one launch. A block makes ROWS x WIDTH numbers of a plane (WIDTH less what is not a multiple of 4 pixels): down
// the columns from memory, 8 rows a thread, into shared memory; then along the rows, 4 pixels a thread.
// Else: one launch for each axis. The input goes to one field of floats for each term, these to the next; the last launch
// adds them up.
#include "border.cuh"
#include "scalar.cuh"

#define REFLECT_101 3

#ifdef TILED
#define DOWN 8
#define ALONG 4

KERNEL_NAME(separable_tiles)(const Sample* samples, int count, Shared shared) {
  __shared__ float field[TERMS][ROWS][COLUMNS];
  constexpr int REACH = WINDOW / 2;
  EACH_SAMPLE(s) {
    if (!s.items) continue;
    const int height = s.view[2], channels = CHANNELS ? CHANNELS : s.view[4];
    const int line = s.view[3] * channels, pixels = WIDTH / channels / 4 * 4, width = pixels * channels;
    const int halo = REACH * channels, columns = width + 2 * halo;
    const int across = (s.view[3] + pixels - 1) / pixels, down = (height + ROWS - 1) / ROWS;
    for (long long tile = blockIdx.x; tile < s.items / blockDim.x; tile += gridDim.x) {
      const long long above = tile / across, plane = above / down * height * line;
      const int x0 = int(tile % across) * width, y0 = int(above % down) * ROWS;
      const IN* source = s.in0 + plane;
      for (int item = threadIdx.x; item < columns * (ROWS / DOWN); item += blockDim.x) {
        const int group = item / columns, column = item - group * columns, y = y0 + group * DOWN;
        if (y >= height) break;
        int x = x0 + column - halo;
        if (x < 0 || x >= line) {
          const int pixel = (x + halo) / channels - REACH;
          x = border_index(pixel, (int)s.view[3], REFLECT_101) * channels + (x - pixel * channels);
        }
        const bool inside = y >= REACH && y + DOWN + REACH <= height;
        float sums[TERMS][DOWN] = {};
#pragma unroll
        for (int t = 0; t < DOWN + WINDOW - 1; t++) {
          const int row = inside ? y + t - REACH : border_index(y + t - REACH, height, REFLECT_101);
          const float value = float(source[(long long)row * line + x]);
#pragma unroll
          for (int term = 0; term < TERMS; term++)
#pragma unroll
            for (int i = 0; i < DOWN; i++)
              if (t - i >= 0 && t - i < WINDOW) sums[term][i] += s.taps[term][1][t - i] * value;
        }
#pragma unroll
        for (int term = 0; term < TERMS; term++)
#pragma unroll
          for (int i = 0; i < DOWN; i++) field[term][group * DOWN + i][column] = sums[term][i];
      }
      __syncthreads();
      const int items = width / ALONG;
      for (int item = threadIdx.x; item < items * ROWS; item += blockDim.x) {
        const int row = item / items, rest = item - row * items;
        const int x = rest / channels * (ALONG * channels) + rest % channels;
        if (y0 + row >= height) break;
        float totals[ALONG] = {};
#pragma unroll
        for (int term = 0; term < TERMS; term++) {
          float sums[ALONG] = {};
#pragma unroll
          for (int t = 0; t < ALONG + WINDOW - 1; t++) {
            const float value = field[term][row][x + t * channels];
#pragma unroll
            for (int i = 0; i < ALONG; i++)
              if (t - i >= 0 && t - i < WINDOW) sums[i] += s.taps[term][2][t - i] * value;
          }
#pragma unroll
          for (int i = 0; i < ALONG; i++) totals[i] += s.scales[term] * sums[i];
        }
        OUT* target = s.out0 + plane + (long long)(y0 + row) * line + x0;
#pragma unroll
        for (int i = 0; i < ALONG; i++)
          if (x0 + x + i * channels < line) target[x + i * channels] = convert<OUT>(totals[i]);
      }
      __syncthreads();
    }
  }
}
#else
PER_ITEM(separable_pass) {
  long long inner = 1;
  for (int axis = AXIS + 2; axis < 5; axis++) inner *= s.view[axis];
  const int extent = s.view[AXIS + 1];
  const int at = int(i / inner % extent);
  const long long begin = i - at * inner;
  float sum = 0;
  for (int term = 0; term < TERMS; term++) {
#if FIRST
    const IN* source = s.in0 + begin;
#else
    const float* source = (const float*)s.source + term * s.items + begin;
#endif
    const float* taps = (const float*)s.taps + (term * 3 + AXIS) * WINDOW + WINDOW / 2;
    const int reach = int(s.windows[term][AXIS][2] / 2);
    float part = 0;
    if (at >= reach && at + reach < extent) {
      for (int k = -reach; k <= reach; k++) part += taps[k] * float(source[(at + k) * inner]);
    } else {
      for (int k = -reach; k <= reach; k++) part += taps[k] * float(source[border_index(at + k, extent, REFLECT_101) * inner]);
    }
#if LAST
    sum += s.scales[term] * part;
#else
    ((float*)s.target)[term * s.items + i] = part;
#endif
  }
#if LAST
  s.out0[i] = convert<OUT>(sum);
#endif
}
#endif
