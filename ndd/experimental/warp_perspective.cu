// A pixel is read at matrix @ (x, y, 1), divided by its third component, from the middle of the first pixel, as OpenCV
// does it: `steps` is 0, or (linear only) how many places between two pixels it can be read at. Where CENTRED is defined, as
// torch does it.
#ifdef CENTRED
#include "centred.cuh"

KERNEL_NAME(warp_perspective)(const Sample* samples, int count, Shared shared) {
  warp_samples(samples, count, shared, Centred());
}
#else
#define HALVES_TO_EVEN
#define WARP_VIEW
#include "warp.cuh"

struct Point {
  double x, y;
};

inline Point source_of(const Sample& s, int x, int y) {
  const double w = s.matrix[2][0] * x + s.matrix[2][1] * y + s.matrix[2][2];
  return {(s.matrix[0][0] * x + s.matrix[0][1] * y + s.matrix[0][2]) / w,
          (s.matrix[1][0] * x + s.matrix[1][1] * y + s.matrix[1][2]) / w};
}

struct Perspective {
  inline void operator()(const Sample& s, int x, int y, float* sx, float* sy) const {
    const Point p = source_of(s, x, y);
    *sx = float(p.x + 0.5);
    *sy = float(p.y + 0.5);
  }
};

inline double limited(double at, double low, double high) { return !(at > low) ? low : at < high ? at : high; }

// The first tap and the weights of the taps (1, 2 or 4) along an axis of `n` pixels. The limits are OpenCV's.
inline int weighted_taps(double at, int n, const Shared& shared, int steps, float* weight) {
  if (shared.nearest) {
    weight[0] = 1.0f;
    return (int)limited(rint(at), -2e9, 2e9);
  }
  if (!shared.cubic) {
    at = limited(rint(at * steps) / steps, -32768, 32767);
    const double first = floor(at);
    weight[1] = float(at - first);
    weight[0] = 1.0f - weight[1];
    return (int)first;
  }
  const double longest = n > 16 ? n : 16;
  at = limited(at, -longest, 2 * longest);
  const double first = floor(at);
  const float x = float(at - first);
  const float a = -0.75f;
  weight[0] = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a;
  weight[1] = ((a + 2) * x - (a + 3)) * x * x + 1;
  weight[2] = ((a + 2) * (1 - x) - (a + 3)) * (1 - x) * (1 - x) + 1;
  weight[3] = 1.0f - weight[0] - weight[1] - weight[2];
  return (int)first - 1;
}

inline void stepped_pixel(const Sample& s, const Shared& shared, const View& v, int steps, int x, int y) {
  const int h = v.h, w = v.w, channels = v.channels;
  const long long step = shared.planar ? 1 : channels, plane = shared.planar ? (long long)h * w : 1;
  const long long plane_out = shared.planar ? (long long)v.h_out * v.w_out : 1;
  OUT* target = s.out0 + ((long long)y * v.w_out + x) * step;
  const Point p = source_of(s, x, y);
  const int taps = shared.nearest ? 1 : shared.cubic ? 4 : 2;
  float across[4], down[4];
  const int left = weighted_taps(p.x, w, shared, steps, across), top = weighted_taps(p.y, h, shared, steps, down);
  for (int c = 0; c < channels; c++) {
    float total = 0.0f;
    for (int j = 0; j < taps; j++) {
      const int row = border_index(top + j, h, shared.border);
      for (int i = 0; i < taps; i++) {
        const int column = border_index(left + i, w, shared.border);
        float value = shared.fill[shared.fills > 1 ? c : 0];
        if (row >= 0 && column >= 0) value = s.in0[((long long)row * w + column) * step + c * plane];
        total += value * (down[j] * across[i]);
      }
    }
    target[c * plane_out] = stored_number(total);
  }
}

struct SteppedPixel {
  const Shared& shared;
  inline void operator()(const Sample& s, const View& v, int x, int y) const {
    stepped_pixel(s, shared, v, shared.planar || v.channels != 2 ? shared.steps : 32, x, y);
  }
};

KERNEL_NAME(warp_perspective)(const Sample* samples, int count, Shared shared) {
  const SteppedPixel pixel = {shared};
  EACH_SAMPLE(s) {
    const View v = view_of(s);
    if (shared.steps || shared.nearest || shared.cubic || (!shared.planar && v.channels == 2))
      each_pixel(s, v, pixel);
    else
      warp_sample(s, v, shared, Perspective());
  }
}
#endif
