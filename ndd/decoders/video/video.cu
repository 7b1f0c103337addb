// Decoded pictures to RGB (or Y, Cb and Cr), upright: a thread for each pixel of a batch. A chroma sample stands in the
// middle of four pixels and is linear between them, as in ndd/decoders/video/yuv.py.

struct Chroma {
  float u, v;
};

// 16 times what a pixel's chroma is off the middle, for one column of chroma samples: 3/4 of the near row, 1/4 of the far.
template <typename T>
static inline Chroma between_rows(const T* near, const T* far, int column, float scale) {
  const float u = 3.0f * (near[2 * column] * scale) + far[2 * column] * scale;
  const float v = 3.0f * (near[2 * column + 1] * scale) + far[2 * column + 1] * scale;
  return {u - 512.0f, v - 512.0f};
}

static inline unsigned char as_byte(float value) { return (unsigned char)fminf(fmaxf(value, 0.0f), 255.0f); }

template <typename T>
static inline void convert(const T* picture, int height, int width, int y, int x, float scale, const float* factors,
                           bool ycbcr, unsigned char* out) {
  const int row = width + width % 2, rows = height + height % 2, columns = row / 2;
  const T* chroma = picture + (long long)rows * row;
  const int near = y >> 1, far = min(max(y & 1 ? near + 1 : near - 1, 0), rows / 2 - 1);
  const int column = x >> 1, beside = min(max(x & 1 ? column + 1 : column - 1, 0), columns - 1);
  const T *one = chroma + (long long)near * row, *two = chroma + (long long)far * row;
  const Chroma here = between_rows(one, two, column, scale), there = between_rows(one, two, beside, scale);
  const float u = 3.0f * here.u + there.u, v = 3.0f * here.v + there.v;
  const float luma = picture[(long long)y * row + x] * scale;
  if (ycbcr) {
    out[0] = as_byte(luma + 0.5f);
    out[1] = as_byte(u / 16.0f + 128.5f);
    out[2] = as_byte(v / 16.0f + 128.5f);
    return;
  }
  const float base = luma * factors[1] + factors[0];
  out[0] = as_byte(base + factors[2] * v);
  out[1] = as_byte(base + factors[3] * u + factors[4] * v);
  out[2] = as_byte(base + factors[5] * u);
}

PER_ITEM(video) {
  const int height = s.out0_shape[1], width = s.out0_shape[2];
  const long long frame = quotient(i, height * width);
  const int pixel = i - frame * height * width;
  const long long* place = (const long long*)s.pictures + 2 * (s.first + frame);
  unsigned char* out = s.out0 + 3 * i;
  const int kind = place[1];
  if (kind == FILL) {
    for (int c = 0; c < 3; c++) out[c] = shared.fill[c];
    return;
  }
  if (kind == RGB) {
    for (int c = 0; c < 3; c++) out[c] = ((const unsigned char*)place[0])[3 * pixel + c];
    return;
  }
  // Where the pixel is in a picture that is turned counterclockwise `turns` times to become this one.
  const int turned_y = pixel / width, turned_x = pixel - turned_y * width;
  const int stored_height = s.turns % 2 ? width : height, stored_width = s.turns % 2 ? height : width;
  int y = turned_y, x = turned_x;
  if (s.turns == 1) y = turned_x, x = stored_width - 1 - turned_y;
  if (s.turns == 2) y = stored_height - 1 - turned_y, x = stored_width - 1 - turned_x;
  if (s.turns == 3) y = stored_height - 1 - turned_x, x = turned_y;
  if (kind == NV12)
    convert((const unsigned char*)place[0], stored_height, stored_width, y, x, 1.0f, s.factors, shared.ycbcr, out);
  else  // bits above the lowest ones of 16
    convert((const unsigned short*)place[0], stored_height, stored_width, y, x, 1.0f / 256.0f, s.factors, shared.ycbcr, out);
}
