// `sum_of_grey` adds up what contrast takes the mean of; `color_jitter` changes one pixel a thread. Sums and products round
// as on the CPU.
#include "scalar.cuh"
#include "torch_colors.cuh"

enum { BRIGHTNESS, CONTRAST, SATURATION, HUE, NONE };

inline float share(float value) { return fminf(fmaxf(value, 0.0f), 1.0f); }

inline void shift_hue(float* rgb, float shift, float bound) {
  const float scale = 1.0f / bound, back = bound > 1.0f ? bound + 0.999f : 1.0f;
  const float r = rgb[0] * scale, g = rgb[1] * scale, b = rgb[2] * scale;
  const float high = fmaxf(r, fmaxf(g, b)), low = fminf(r, fminf(g, b)), span = high - low;
  const float s = span / (span != 0.0f ? high : 1.0f), divisor = span != 0.0f ? span : 1.0f;
  const float rc = (high - r) / divisor, gc = (high - g) / divisor, bc = (high - b) / divisor;
  float h = high == r ? bc - gc : high == g ? 2.0f + rc - bc : 4.0f + gc - rc;
  h = h * (1.0f / 6.0f) + 1.0f;
  h = h - floorf(h) + shift;
  h = (h - floorf(h)) * 6.0f;
  const float sector = floorf(h), f = h - sector;
  const float q = share((1.0f - s * f) * high), t = share((1.0f - s + s * f) * high), p = share((1.0f - s) * high);
  float made[3];
  switch (int(sector)) {
    case 1: made[0] = q, made[1] = high, made[2] = p; break;
    case 2: made[0] = p, made[1] = high, made[2] = t; break;
    case 3: made[0] = p, made[1] = q, made[2] = high; break;
    case 4: made[0] = t, made[1] = p, made[2] = high; break;
    case 5: made[0] = high, made[1] = p, made[2] = q; break;
    default: made[0] = high, made[1] = t, made[2] = p;
  }
  for (int c = 0; c < 3; c++) rgb[c] = cut(made[c] * back, bound);
}

// One step for a pixel. `mean` is that of the grey of its frame.
inline void change(const Sample& s, int step, float* rgb, float mean, float bound) {
  if (step == NONE || (s.channels != 3 && step >= SATURATION)) return;
  if (step == HUE) return shift_hue(rgb, s.factors[HUE][0], bound);
  const float factor = s.factors[step][0], rest = s.factors[step][1];
  const float grey = step == BRIGHTNESS ? 0.0f : step == CONTRAST ? mean : grey_of(rgb, s.channels, bound);
  for (int c = 0; c < s.channels; c++) rgb[c] = blended(rgb[c], factor, grey, rest, bound);
}

// Where channel `c` of a pixel is.
inline long long place(const Sample& s, const Shared& shared, long long frame, long long pixel, int c) {
  return shared.planar ? (frame * s.channels + c) * s.pixels + pixel : (frame * s.pixels + pixel) * s.channels + c;
}

inline void load(const Sample& s, const Shared& shared, long long frame, long long pixel, float* rgb) {
  for (int c = 0; c < s.channels; c++) rgb[c] = float(number(s.in0[place(s, shared, frame, pixel, c)]));
}

PER_ITEM(sum_of_grey) {
  const long long each = (s.pixels + EACH - 1) / EACH, frame = i / each, first = (i - frame * each) * EACH;
  double total = 0.0;
  for (long long pixel = first; pixel < first + EACH && pixel < s.pixels; pixel++) {
    float rgb[3];
    load(s, shared, frame, pixel, rgb);
    for (int k = 0; k < 4 && s.steps[k] != CONTRAST; k++) change(s, s.steps[k], rgb, 0.0f, shared.bound);
    total += double(grey_of(rgb, s.channels, shared.bound));
  }
  atomicAdd((double*)s.sums + frame, total);
}

PER_ITEM(color_jitter) {
  const long long frame = i / s.pixels, pixel = i - frame * s.pixels;
  float rgb[3], mean = 0.0f;
  load(s, shared, frame, pixel, rgb);
  for (int k = 0; k < 4; k++) {
    if (s.steps[k] == CONTRAST) mean = float(((const double*)s.sums)[frame] / double(s.pixels));
    change(s, s.steps[k], rgb, mean, shared.bound);
  }
  for (int c = 0; c < s.channels; c++) s.out0[place(s, shared, frame, pixel, c)] = convert<OUT>(rgb[c]);
}
