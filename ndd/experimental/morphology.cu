// The largest (LARGEST) or smallest number of a window about each pixel. A thread makes four pixels below each other:
// each row of the input that they share is reduced along x once.
#include "border.cuh"

#ifndef SCRATCH
#define SOURCE s.in0
#define TARGET s.out0
#else
#define SOURCE ((const IN*)s.source)
#define TARGET ((IN*)s.target)
#endif

// NOTHING: of a window that lies outside the image, with a constant border.
#ifdef LARGEST
#define NOTHING (limits<IN>::is_float ? -3.402823466e38f : 0)
inline IN better(IN a, IN b) { return a < b ? b : a; }
#else
#define NOTHING (limits<IN>::is_float ? 3.402823466e38f : sizeof(IN) == 1 ? 255 : 65535)
inline IN better(IN a, IN b) { return b < a ? b : a; }
#endif

// The best of the window's part in row `row`; false if none of it lies inside.
inline bool row_best(const IN* row, int width, long long channels, int first, int last, int border, IN* best) {
  bool any = false;
  if (first >= 0 && last < width) {
    *best = row[first * channels];
    for (int x = first + 1; x <= last; x++) *best = better(*best, row[x * channels]);
    return true;
  }
  for (int x = first; x <= last; x++) {
    const int at = border_index(x, width, border);
    if (at < 0) continue;
    const IN value = row[at * channels];
    *best = any ? better(*best, value) : value;
    any = true;
  }
  return any;
}

extern "C" __global__ void morphology(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    const long long planes = s.view[0], channels = s.view[3];
    const int height = (int)s.view[1], width = (int)s.view[2];
    const long long line = width * channels, strips = (height + 3) / 4, total = planes * strips * line;
    const int rows = (int)s.window[0], columns = (int)s.window[1], above = (int)s.window[2], left = (int)s.window[3];
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < total;
         i += (long long)gridDim.x * blockDim.x) {
      const long long strip = i / line, e = i - strip * line, plane = strip / strips;
      const int y = (int)(strip - plane * strips) * 4, x = (int)(e / channels);
      const IN* source = SOURCE + plane * height * line + (e - x * channels);
      const int made = height - y < 4 ? height - y : 4;
      IN best[4];
      bool any[4] = {false, false, false, false};
      for (int r = 0; r < rows + made - 1; r++) {
        const int from = border_index(y - above + r, height, shared.border);
        IN value;
        if (from < 0 || !row_best(source + from * line, width, channels, x - left, x - left + columns - 1,
                                  shared.border, &value))
          continue;
#pragma unroll
        for (int q = 0; q < 4; q++) {
          if (r < q || r >= q + rows) continue;
          best[q] = any[q] ? better(best[q], value) : value;
          any[q] = true;
        }
      }
      IN* target = TARGET + (plane * height + y) * line + e;
#pragma unroll
      for (int q = 0; q < 4; q++)
        if (q < made) target[q * line] = any[q] ? best[q] : static_cast<IN>(NOTHING);
    }
  }
}
