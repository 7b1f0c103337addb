// One thread an element: a word, or two if the parameters are double, becomes a number of the range.
#include "philox.cuh"

inline float affine(Words& words, float start, float scale, float last) {
  return fminf(fmaf(float(words.next()), scale, start), last);
}
inline double affine(Words& words, double start, double scale, double last) {
  return fmin(fma(double(words.next64()), scale, start), last);
}

PER_ITEM(uniform) {
  Words words(s.stream, i);
  s.out0[i] = convert<OUT0>(affine(words, s.affine[0], s.affine[1], s.affine[2]));
}
