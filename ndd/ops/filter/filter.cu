// One thread makes DOWN elements below each other, so that an element of the input is read once for up to DOWN sums.
// KERNEL_H and KERNEL_W are the extents of the filters if they have the same ones and small ones, else 0.
#include "border.cuh"
#include "scalar.cuh"

// As on the CPU: halves to even.
inline OUT rounded(float value) {
  if constexpr (limits<OUT>::is_integer)
    return convert<OUT>(rintf(value));
  else
    return convert<OUT>(value);
}

PER_ITEM(filter_rows) {
  const int depth = s.view[1], height = s.view[2], width = s.view[3], channels = s.view[4];
  const int layers = s.results[0], rows = s.results[1], columns = s.results[2] * channels;
  const int kd = AXES == 3 ? (int)s.in1_shape[0] : 1;
  const int kh = KERNEL_H ? KERNEL_H : (int)s.in1_shape[AXES - 2], kw = KERNEL_W ? KERNEL_W : (int)s.in1_shape[AXES - 1];
  const int groups = (rows + DOWN - 1) / DOWN;
  const long long line = (long long)width * channels;
#if FILLED
  const float fill = float(s.in2[0]);
#else
  const float fill = 0.0f;
#endif
  const long long above = i / columns, layer = above / groups;
  const int x = int(i - above * columns), y = int(above - layer * groups) * DOWN;
  const int pixel = x / channels, channel = x - pixel * channels, z = int(layer % layers);
  float sums[DOWN] = {};
  for (int kz = 0; kz < kd; kz++) {
    const int from = border_index(z - (int)s.origin[0] + kz, depth, shared.border);
    const IN* source = s.in0 + (layer / layers * depth + (from < 0 ? 0 : from)) * height * line + channel;
    const float* weights = s.in1 + (long long)kz * kh * kw;
#pragma unroll
    for (int kx = 0; kx < kw; kx++) {
      const int column = border_index(pixel - (int)s.origin[2] + kx, width, shared.border);
#pragma unroll
      for (int t = 0; t < DOWN + kh - 1; t++) {
        const int row = border_index(y - (int)s.origin[1] + t, height, shared.border);
        const bool outside = from < 0 || column < 0 || row < 0;
        const float value = outside ? fill : float(source[row * line + (long long)column * channels]);
#pragma unroll
        for (int j = 0; j < DOWN; j++)
          if (t - j >= 0 && t - j < kh) sums[j] += weights[(t - j) * kw + kx] * value;
      }
    }
  }
  OUT* target = s.out0 + (layer * rows + y) * columns + x;
#pragma unroll
  for (int j = 0; j < DOWN; j++)
    if (y + j < rows) target[(long long)j * columns] = rounded(sums[j]);
}
