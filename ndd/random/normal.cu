// One thread an element: in float, or in double if the parameters are.
#include "draws.cuh"

inline float scaled(Words& words, float mean, float stddev) {
  return float(fma(double(draw_normal(words)), double(stddev), double(mean)));
}
inline double scaled(Words& words, double mean, double stddev) { return fma(draw_normal64(words), stddev, mean); }

PER_ITEM(normal) {
  Words words(s.stream, i);
  s.out0[i] = convert<OUT0>(scaled(words, s.mean, s.stddev));
}
