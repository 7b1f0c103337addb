// Random numbers of the usual distributions, from the words of one element: the formulas of ndd/_cpu/draws.py.
#ifndef NDD_DRAWS_CUH
#define NDD_DRAWS_CUH

#include "philox.cuh"

// Standard normal, float: Box-Muller. Logarithm and cosine are series in double, rounded once, as on the CPU.
inline float draw_normal(Words& words) {
  const double u = double(float(words.next())) * 2.3283064365386963e-10;
  double value = u > 1.1641532182693481e-10 ? u : 1.1641532182693481e-10;
  int exponent = 0;
  value = frexp(value, &exponent);  // in [1/2, 1)
  if (value < 0.70710678118654757) {
    value *= 2.0;
    exponent--;
  }
  const double ratio = (value - 1.0) / (value + 1.0), s = ratio * ratio;
  double series = s / 15.0 + 1.0 / 13.0;
  series = series * s + 1.0 / 11.0;
  series = series * s + 1.0 / 9.0;
  series = series * s + 1.0 / 7.0;
  series = series * s + 1.0 / 5.0;
  series = series * s + 1.0 / 3.0;
  series = series * s + 1.0;
  const float logarithm = float(exponent * 0.6931471805599453 + 2.0 * ratio * series);
  const double angle = 6.2831855f * (float(words.next()) * 2.3283064365386963e-10f);
  // cos(a) = sin(|a - pi| - pi / 2)
  const double x = fabs(angle - 3.141592653589793) - 1.5707963267948966, q = x * x;
  double sine = q / -342.0 + 1.0;
  sine = sine * q / -272.0 + 1.0;
  sine = sine * q / -210.0 + 1.0;
  sine = sine * q / -156.0 + 1.0;
  sine = sine * q / -110.0 + 1.0;
  sine = sine * q / -72.0 + 1.0;
  sine = sine * q / -42.0 + 1.0;
  sine = sine * q / -20.0 + 1.0;
  sine = (sine * q / -6.0 + 1.0) * x;
  return sqrtf(-2.0f * logarithm) * float(sine);
}

// Standard normal, double: Box-Muller from two 64-bit words.
inline double draw_normal64(Words& words) {
  double u = double(words.next64()) * 5.421010862427522e-20;
  u = u > 2.7105054312137611e-20 ? u : 2.7105054312137611e-20;
  const double v = double(words.next64()) * 5.421010862427522e-20;
  return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

// Beta: X / (X + Y) of two gamma variates, in the type T. A sample is made in order: the second normal of a pair of
// the polar method serves later.
template <class T>
struct Beta {
  T alpha, beta;
  T spare[2] = {0, 0};
  bool kept[2] = {false, false};

  Beta(T first, T second) : alpha(first), beta(second) {}

  static T canonical(Words& words) { return sizeof(T) == 8 ? T(words.canonical64()) : T(words.canonical()); }

  T polar(Words& words, int which) {
    if (kept[which]) {
      kept[which] = false;
      return spare[which];
    }
    T x, y, square;
    do {
      x = T(2) * canonical(words) - T(1);
      y = T(2) * canonical(words) - T(1);
      square = x * x + y * y;
    } while (square > T(1) || square == T(0));
    const T scale = sqrt(-T(2) * log(square) / square);
    spare[which] = x * scale;
    kept[which] = true;
    return y * scale;
  }

  T gamma(Words& words, int which, T shape) {
    const T raised = shape < T(1) ? shape + T(1) : shape;
    const T shift = raised - T(1.0 / 3.0), slope = T(1) / sqrt(T(9) * shift);
    T v;
    while (true) {
      const T z = polar(words, which);
      v = T(1) + slope * z;
      if (v <= T(0)) continue;
      v = v * v * v;
      const T u = canonical(words);
      if (u <= T(1) - T(0.0331) * z * z * z * z) break;
      if (log(u) <= T(0.5) * z * z + shift * (T(1) - v + log(v))) break;
    }
    if (shape == raised) return shift * v;
    T u = canonical(words);
    while (u == T(0)) u = canonical(words);
    return pow(u, T(1) / shape) * shift * v;
  }

  T draw(Words& words) {
    if (alpha >= T(1) || beta >= T(1)) {
      const T x = gamma(words, 0, alpha);
      return x / (x + gamma(words, 1, beta));
    }
    T x = log(gamma(words, 0, alpha + T(1)));
    T y = log(gamma(words, 1, beta + T(1)));
    x += log(T(1) - canonical(words)) / alpha;
    y += log(T(1) - canonical(words)) / beta;
    const T most = x > y ? x : y;
    x = exp(x - most);
    y = exp(y - most);
    return x / (x + y);
  }
};

#endif
