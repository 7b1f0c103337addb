// Bytes replaced by other bytes: by a rule, or by a table made of the counts of an image.
#include "pack.cuh"
#include "scalar.cuh"

// f(byte) of COUNT bytes of a sample, in order.
template <class F>
inline void each_byte(const Sample& s, long long i, F f) {
  typedef Pack<unsigned char, COUNT> Vector;
  long long total = 1;
  for (int axis = 0; axis < int(sizeof(s.out0_shape) / sizeof(long long)); axis++) total *= s.out0_shape[axis];
  const long long first = i * COUNT;
  const int made = total - first < COUNT ? int(total - first) : COUNT;
  Vector values;
  if (made == COUNT && packs_at<COUNT>(s.in0 + first)) {
    values = *(const Vector*)(s.in0 + first);
  } else {
    for (int k = 0; k < made; k++) values.element[k] = s.in0[first + k];
  }
#pragma unroll
  for (int k = 0; k < COUNT; k++)
    if (k < made) values.element[k] = f(values.element[k]);
  store(s.out0 + first, values, made);
}

#ifdef TABLES
// An entry of the table of a channel, each from all counts of the channel.
PER_ITEM(stretch_table) {
  const unsigned int* counts = (const unsigned int*)s.counts + i / 256 * 256;
  int low = 255, high = 0;
  for (int v = 0; v < 256; v++) {
    if (!counts[v]) continue;
    low = v < low ? v : low;
    high = v;
  }
  const float scale = high > low ? 255.0f / float(high - low) : 1.0f;
  ((unsigned char*)s.tables)[i] = convert<unsigned char>(float(int(i % 256) - (high > low ? low : 0)) * scale);
}

PER_ITEM(contrast_table) {
  const float grey[3] = {0.299f, 0.587f, 0.114f};
  const unsigned int* counts = (const unsigned int*)s.counts;
  float center = 0.0f;
  for (int c = 0; c < 3; c++) {
    const unsigned int* own = counts + (s.channels > 1 ? c * 256 : 0);
    unsigned long long total = 0;
    for (int v = 0; v < 256; v++) total += (unsigned long long)v * own[v];
    center = __fadd_rn(center, __fmul_rn(float(double(total) / double(s.pixels)), grey[c]));
  }
  const float far = __fmul_rn(__fsub_rn(float(int(i % 256)), center), s.factor);
  ((unsigned char*)s.tables)[i] = convert<unsigned char>(__fadd_rn(center, far));
}

PER_ITEM(look_up) {
  const unsigned char* tables = (const unsigned char*)s.tables;
  unsigned int channel = (unsigned int)(i * COUNT % s.channels);
  each_byte(s, i, [&](unsigned char x) {
    const unsigned char found = tables[channel * 256 + x];
    channel = channel + 1 == s.channels ? 0 : channel + 1;
    return found;
  });
}
#else
PER_ITEM(change_tones) {
  each_byte(s, i, [&](unsigned char x) {
    const int sum = x + s.rule[1];
    return (unsigned char)((x < s.rule[0] ? (sum < 255 ? sum : 255) : x ^ s.rule[2]) & s.rule[3]);
  });
}
#endif
