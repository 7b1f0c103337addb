// Each pixel of the output from where two maps say. A thread makes one pixel.

// As `_inside` on the CPU; false for NaN.
inline bool is_inside(float u, int n) { return u >= -0.5f && u < float(n); }

inline int clamped(int i, int n) { return i < 0 ? 0 : i < n ? i : n - 1; }

// The cubic through the pixels -1, 0, 1 and 2.
inline void cubic_weights(float t, float* weights) {
  weights[0] = t * (1.0f - t) * (t - 2.0f) * 0.16666667f;
  weights[1] = (t + 1.0f) * (1.0f - t) * (2.0f - t) * 0.5f;
  weights[2] = (t + 1.0f) * t * (2.0f - t) * 0.5f;
  weights[3] = (t + 1.0f) * t * (t - 1.0f) * 0.16666667f;
}

inline void nearest(const IN* image, OUT* target, int h, int w, int channels, float u, float v) {
  const IN* pixel = image + ((long long)clamped((int)floorf(v + 0.5f), h) * w + clamped((int)floorf(u + 0.5f), w)) * channels;
  for (int c = 0; c < channels; c++) target[c] = pixel[c];
}

inline void linear(const IN* image, OUT* target, int h, int w, int channels, float u, float v) {
  const int left = (int)floorf(u), top = (int)floorf(v);
  const float fx = u - left, fy = v - top;
  const IN* above = image + (long long)clamped(top, h) * w * channels;
  const IN* below = image + (long long)clamped(top + 1, h) * w * channels;
  const int before = clamped(left, w) * channels, behind = clamped(left + 1, w) * channels;
#pragma unroll 4
  for (int c = 0; c < channels; c++) {
    const float a = above[before + c], b = above[behind + c], p = below[before + c], q = below[behind + c];
    const float first = a + (b - a) * fx, second = p + (q - p) * fx;
    target[c] = convert<OUT>(first + (second - first) * fy);
  }
}

inline void cubic(const IN* image, OUT* target, int h, int w, int channels, float u, float v) {
  u = fmaxf(u, 0.0f);
  v = fmaxf(v, 0.0f);
  const int left = (int)floorf(u), top = (int)floorf(v);
  float across[4], down[4];
  cubic_weights(u - left, across);
  cubic_weights(v - top, down);
  for (int c = 0; c < channels; c++) {
    float total = 0.0f;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const IN* row = image + (long long)clamped(top + j - 1, h) * w * channels + c;
      float part = 0.0f;
#pragma unroll
      for (int i = 0; i < 4; i++) part += across[i] * float(row[clamped(left + i - 1, w) * channels]);
      total += down[j] * part;
    }
    target[c] = convert<OUT>(total);
  }
}

PER_ITEM(remap) {
  const int h = (int)s.in0_shape[0], w = (int)s.in0_shape[1], channels = (int)s.out0_shape[2];
  const float u = s.in1[i] - shared.shift, v = s.in2[i] - shared.shift;
  OUT* target = s.out0 + i * channels;
  if (!is_inside(u, w) || !is_inside(v, h))
    for (int c = 0; c < channels; c++) target[c] = static_cast<OUT>(0);
  else if (shared.interp == 0)
    nearest(s.in0, target, h, w, channels, u, v);
  else if (shared.interp == 1)
    linear(s.in0, target, h, w, channels, u, v);
  else
    cubic(s.in0, target, h, w, channels, u, v);
}
