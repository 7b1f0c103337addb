// One augmentation for each sample, each of its own kind. `tables` makes the tables of kinds that look bytes up, of the
// sample's numbers or of the counts of its values; `augment` makes the pixels.
#define CENTRED_ROW(s, i) (s.numbers + 3 * (i))
#include "pack.cuh"
#include "scalar.cuh"
#include "torch_colors.cuh"
#include "warp.cuh"
#include "centred.cuh"

// An entry of the table of a channel, each from all counts of the channel.
inline unsigned char equalized(const unsigned int* counts, unsigned int pixels, int value) {
  unsigned int least = 0, total = 0;
  for (int v = 0; v <= value || !least; v++) {
    if (!least) least = counts[v];
    if (v <= value) total += counts[v];
  }
  const unsigned int above = pixels - least;
  if (!above) return (unsigned char)value;
  return (unsigned char)rintf(float(total > least ? total - least : 0u) * (255.0f / float(above)));
}

inline unsigned char flattened(const unsigned int* counts, int value) {
  unsigned int below = 0, total = 0, brightest = 0;
  for (int v = 0; v < 256; v++) {
    if (v == value) below = total;
    if (counts[v]) brightest = counts[v];
    total += counts[v];
  }
  const unsigned int step = (total - brightest) / 255u, level = step ? (below + step / 2) / step : value;
  return (unsigned char)(level < 255u ? level : 255u);
}

inline unsigned char stretched(const unsigned int* counts, int value, bool down) {
  int low = 255, high = 0;
  for (int v = 0; v < 256; v++) {
    if (!counts[v]) continue;
    low = v < low ? v : low;
    high = v;
  }
  if (high <= low) return (unsigned char)value;
  if (down) return (unsigned char)cut(__fdiv_rn(float(value - low), __fmul_rn(float(high - low), 1.0f / 255.0f)), 255.0f);
  return convert<unsigned char>(float(value - low) * (255.0f / float(high - low)));
}

inline unsigned char contrasted(const Sample& s, int value) {
  const float grey[3] = {0.299f, 0.587f, 0.114f};
  float center = 0.0f;
  for (int c = 0; c < 3; c++) {
    const unsigned int* counts = (const unsigned int*)s.counts + (s.channels > 1 ? c * 256 : 0);
    unsigned long long total = 0;
    for (int v = 0; v < 256; v++) total += (unsigned long long)v * counts[v];
    center = __fadd_rn(center, __fmul_rn(float(double(total) / double(s.pixels)), grey[c]));
  }
  const float far = __fmul_rn(__fsub_rn(float(value), center), s.numbers[0]);
  return convert<unsigned char>(__fadd_rn(center, far));
}

inline unsigned char changed(const Sample& s, int value) {
  const int sum = value + int(s.numbers[1]);
  return (unsigned char)((value < int(s.numbers[0]) ? (sum < 255 ? sum : 255) : value ^ int(s.numbers[2])) &
                         int(s.numbers[3]));
}

PER_ITEM(add_grey) {
  const long long first = i * EACH;
  unsigned long long total = 0;
  for (long long pixel = first; pixel < first + EACH && pixel < s.grey; pixel++) {
    float rgb[3];
    for (int c = 0; c < s.channels; c++) rgb[c] = float(s.in0[pixel * s.channels + c]);
    total += (unsigned long long)grey_of(rgb, s.channels, 255.0f);
  }
  atomicAdd((unsigned long long*)s.sums, total);
}

inline unsigned char levelled(const Sample& s, int value) {
  const float mean = float(double(*(const unsigned long long*)s.sums) / double(s.grey));
  return (unsigned char)blended(float(value), s.numbers[0], mean, s.numbers[1], 255.0f);
}

PER_ITEM(tables) {
  const int value = int(i % 256);
  const unsigned int* counts = (const unsigned int*)s.counts + i / 256 * 256;
  unsigned char* entry = (unsigned char*)s.tables + i;
  switch (s.kind) {
    case TONES: *entry = changed(s, value); break;
    case SCALED: *entry = convert<unsigned char>(s.numbers[0] * float(value)); break;
    case CONTRAST: *entry = contrasted(s, value); break;
    case STRETCHED: *entry = stretched(counts, value, false); break;
    case SPREAD: *entry = stretched(counts, value, true); break;
    case FLATTENED: *entry = flattened(counts, value); break;
    case BRIGHTENED: *entry = (unsigned char)cut(__fmul_rn(s.numbers[0], float(value)), 255.0f); break;
    case LEVELLED: *entry = levelled(s, value); break;
    case EQUALIZED: *entry = equalized(counts, (unsigned int)s.pixels, value); break;
  }
}

// Bytes in runs of COUNT, looked up if the sample has tables.
inline void look_up(const Sample& s) {
  const unsigned char* tables = (const unsigned char*)s.tables;
  const long long total = s.out0_shape[0] * s.out0_shape[1] * s.out0_shape[2];
  EACH_ITEM(i, (total + COUNT - 1) / COUNT) {
    const long long first = i * COUNT;
    const int made = total - first < COUNT ? int(total - first) : COUNT;
    Pack<unsigned char, COUNT> values = load<COUNT>(s.in0 + first, made);
    if (s.kind != SAME) {
      unsigned int channel = (unsigned int)(first % s.channels);
#pragma unroll
      for (int k = 0; k < COUNT; k++)
        if (k < made) {
          values.element[k] = tables[channel * 256 + values.element[k]];
          channel = channel + 1 == s.channels ? 0 : channel + 1;
        }
    }
    store(s.out0 + first, values, made);
  }
}

inline void mix(const Sample& s) {
  EACH_ITEM(i, s.out0_shape[0] * s.out0_shape[1]) {
    const unsigned char* pixel = s.in0 + 3 * i;
    const float r = pixel[0], g = pixel[1], b = pixel[2];
#pragma unroll
    for (int c = 0; c < 3; c++)
      s.out0[3 * i + c] = convert<OUT>(s.numbers[3 * c] * r + s.numbers[3 * c + 1] * g + s.numbers[3 * c + 2] * b);
  }
}

inline void saturate(const Sample& s) {
  EACH_ITEM(i, s.out0_shape[0] * s.out0_shape[1]) {
    float rgb[3];
    for (int c = 0; c < s.channels; c++) rgb[c] = float(s.in0[i * s.channels + c]);
    const float grey = grey_of(rgb, s.channels, 255.0f);
    for (int c = 0; c < s.channels; c++)
      s.out0[i * s.channels + c] =
          s.channels == 3 ? (OUT)blended(rgb[c], s.numbers[0], grey, s.numbers[1], 255.0f) : (OUT)rgb[c];
  }
}

inline void sharpen(const Sample& s) {
  const int height = (int)s.in0_shape[0], width = (int)s.in0_shape[1], channels = (int)s.in0_shape[2];
  const unsigned int line = (unsigned int)width * channels;
  EACH_ITEM(i, s.out0_shape[0] * line) {
    const int y = int(quotient(i, line)), x = int(i - (long long)y * line) / channels;
    const int own = s.in0[i];
    if (y == 0 || y == height - 1 || x == 0 || x == width - 1) {
      s.out0[i] = (OUT)own;
      continue;
    }
    int total = 4 * own;
#pragma unroll
    for (int row = -1; row < 2; row++)
#pragma unroll
      for (int column = -1; column < 2; column++) total += s.in0[i + (long long)row * line + column * channels];
    const float away = float((2 * total + 13) / 26 - own);
    s.out0[i] = (OUT)fminf(fmaxf(fmaf(s.numbers[1], away, float(own)), 0.0f), 255.0f);
  }
}

inline void filter(const Sample& s) {
  const int height = (int)s.in0_shape[0], width = (int)s.in0_shape[1], channels = (int)s.in0_shape[2];
  const unsigned int line = (unsigned int)width * channels;
  EACH_ITEM(i, s.out0_shape[0] * line) {
    const int y = int(quotient(i, line)), at = int(i - (long long)y * line), x = at / channels, c = at - x * channels;
    float sum = 0.0f;
#pragma unroll
    for (int column = 0; column < 3; column++) {
      const unsigned char* source = s.in0 + border_index(x + column - 1, width, 3) * channels + c;
#pragma unroll
      for (int row = 0; row < 3; row++)
        sum += s.numbers[3 * row + column] * float(source[(long long)border_index(y + row - 1, height, 3) * line]);
    }
    s.out0[i] = convert<OUT>(rintf(sum));
  }
}

struct Affine {
  inline void operator()(const Sample& s, int x, int y, float* sx, float* sy) const {
    const float u = x + 0.5f, v = y + 0.5f;
    *sx = s.numbers[0] * u + s.numbers[1] * v + s.numbers[2];
    *sy = s.numbers[3] * u + s.numbers[4] * v + s.numbers[5];
  }
};

KERNEL_NAME(augment)(const Sample* samples, int count, Shared shared) {
  EACH_SAMPLE(s) {
    switch (s.kind) {
      case WARPED: warp_sample(s, view_of(s), shared, Affine()); break;
      case CENTRED: warp_sample(s, view_of(s), shared, Centred()); break;
      case MIXED: mix(s); break;
      case SATURATED: saturate(s); break;
      case SHARPENED: sharpen(s); break;
      case FILTERED: filter(s); break;
      default: look_up(s);
    }
  }
}
