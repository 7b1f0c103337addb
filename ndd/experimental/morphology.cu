// The largest (LARGEST) or smallest number of a window about each pixel. A thread makes STRIP pixels below each other:
// each row of the input that they share is reduced along x once.
#include "border.cuh"

// NOTHING: of a window that lies outside the image, with a constant border.
#if LARGEST
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

PER_ITEM(morphology) {
  const long long channels = s.view[3];
  const int height = (int)s.view[1], width = (int)s.view[2];
  const long long line = width * channels, strips = (height + STRIP - 1) / STRIP;
  const int rows = (int)s.window[0], columns = (int)s.window[1], above = (int)s.window[2], left = (int)s.window[3];
  const long long strip = i / line, e = i - strip * line, plane = strip / strips;
  const int y = (int)(strip - plane * strips) * STRIP, x = (int)(e / channels);
  const IN* source = (const IN*)s.source + plane * height * line + (e - x * channels);
  const int made = height - y < STRIP ? height - y : STRIP;
  IN best[STRIP];
  bool any[STRIP] = {};
  for (int r = 0; r < rows + made - 1; r++) {
    const int from = border_index(y - above + r, height, shared.border);
    IN value;
    if (from < 0 || !row_best(source + from * line, width, channels, x - left, x - left + columns - 1, shared.border,
                              &value))
      continue;
#pragma unroll
    for (int q = 0; q < STRIP; q++) {
      if (r < q || r >= q + rows) continue;
      best[q] = any[q] ? better(best[q], value) : value;
      any[q] = true;
    }
  }
  IN* target = (IN*)s.target + (plane * height + y) * line + e;
#pragma unroll
  for (int q = 0; q < STRIP; q++)
    if (q < made) target[q * line] = any[q] ? best[q] : static_cast<IN>(NOTHING);
}
