// Colours as torchvision changes them: each step is cut to the range from 0 to `bound`, and to whole numbers where that is
// above 1. Sums and products round as on the CPU, see ndd/ops/color/color_jitter.py.
#ifndef NDD_TORCH_COLORS_CUH
#define NDD_TORCH_COLORS_CUH

inline float whole(float value, float bound) { return bound > 1.0f ? floorf(value) : value; }
inline float cut(float value, float bound) { return whole(fminf(fmaxf(value, 0.0f), bound), bound); }

inline float grey_of(const float* rgb, long long channels, float bound) {
  return channels == 3 ? whole(fmaf(0.114f, rgb[2], fmaf(0.587f, rgb[1], __fmul_rn(0.2989f, rgb[0]))), bound) : rgb[0];
}

// `value` times a factor, and the rest of `grey`.
inline float blended(float value, float factor, float grey, float rest, float bound) {
  return cut(fmaf(rest, grey, __fmul_rn(value, factor)), bound);
}

#endif
