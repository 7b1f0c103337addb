// Elementwise operations on one to three operands, by DALI's rules (see ndd/ops/tensor/elementwise_kernels.py).
//
// Macros: OP the operation and its ARITY; COMPUTE the type that operands are brought to; OPERAND0(i) .. OPERAND2(i)
// the operands at element i: p0[i] .. p2[i] for an input, a field of Shared for a constant; INPUTS how many are inputs
// and INDEX0 .. INDEX2 their numbers; BROADCAST 1 if some input is stretched, and
// INDEX the type that element numbers fit then; EXACT 1 to compare u64 with a signed type;
// PACK how many elements a thread takes when nothing is stretched.
#include "pack.cuh"
#include "scalar.cuh"

#ifndef __CUDACC_RTC__
using std::acos; using std::acosh; using std::asin; using std::asinh; using std::atan; using std::atan2; using std::atanh;
using std::cbrt; using std::ceil; using std::cos; using std::cosh; using std::exp; using std::floor; using std::fmod;
using std::log; using std::log10; using std::log2; using std::pow; using std::sin; using std::sinh; using std::sqrt;
using std::tan; using std::tanh;
#endif

namespace operation {  // some of these names are functions of C as well

template <class T> struct unsigned_of { using type = T; };
template <> struct unsigned_of<int> { using type = unsigned int; };
template <> struct unsigned_of<long long> { using type = unsigned long long; };
template <> struct unsigned_of<signed char> { using type = unsigned int; };
template <> struct unsigned_of<short> { using type = unsigned int; };
template <> struct unsigned_of<unsigned short> { using type = unsigned int; };
template <> struct unsigned_of<unsigned char> { using type = unsigned int; };
template <class T> using wrapping = typename unsigned_of<T>::type;

template <class T> T add(T a, T b) { return T(wrapping<T>(a) + wrapping<T>(b)); }
template <class T> T sub(T a, T b) { return T(wrapping<T>(a) - wrapping<T>(b)); }
template <class T> T mul(T a, T b) { return T(wrapping<T>(a) * wrapping<T>(b)); }
template <> inline bool mul(bool a, bool b) { return a && b; }
template <class T> T fdiv(T a, T b) { return a / b; }
// A zero divisor gives 0: raising an error would make every division wait for the GPU.
template <class T> T div(T a, T b) {
  if constexpr (limits<T>::is_float) return a / b;
  else return b == T(0) ? T(0) : (limits<T>::is_signed && b == T(-1)) ? T(wrapping<T>(0) - wrapping<T>(a)) : T(a / b);
}
template <class T> T mod(T a, T b) {
  if constexpr (limits<T>::is_float) return fmod(a, b);
  else return b == T(0) || (limits<T>::is_signed && b == T(-1)) ? T(0) : T(a % b);
}
template <class T> T power(T base, T exponent) {
  if constexpr (limits<T>::is_float) {
    return pow(base, exponent);
  } else {
    if (limits<T>::is_signed && exponent < T(0)) return T(0);
    wrapping<T> result = 1, factor = wrapping<T>(base);
    for (unsigned long long left = (unsigned long long)exponent; left; left >>= 1) {
      if (left & 1) result *= factor;
      factor *= factor;
    }
    return T(result);
  }
}
template <class T> T fpower(T a, T b) { return pow(a, b); }
template <class T> T angle(T a, T b) { return atan2(a, b); }
template <class T> T minimum(T a, T b) { return a < b ? a : b; }
template <class T> T maximum(T a, T b) { return a > b ? a : b; }
template <class T> T clamp(T value, T low, T high) {
  T raised = value < low ? low : value;
  return raised > high ? high : raised;
}
template <class T> T bitand_(T a, T b) { return T(a & b); }
template <class T> T bitor_(T a, T b) { return T(a | b); }
template <class T> T bitxor_(T a, T b) { return T(a ^ b); }
// The count is taken modulo the width, of at least 32 bits, as a CPU does.
template <class T> T lshift(T a, T count) {
  return T(wrapping<T>(a) << (int(count) & (sizeof(T) == 8 ? 63 : 31)));
}
template <> inline bool lshift(bool a, bool) { return a; }
template <class T> T rshift(T a, T count) { return T(a >> (int(count) & (sizeof(T) == 8 ? 63 : 31))); }
template <> inline bool rshift(bool a, bool count) { return a && !count; }
template <class T> bool eq(T a, T b) { return a == b; }
template <class T> bool neq(T a, T b) { return a != b; }
template <class T> bool lt(T a, T b) { return a < b; }
template <class T> bool leq(T a, T b) { return a <= b; }
template <class T> bool gt(T a, T b) { return a > b; }
template <class T> bool geq(T a, T b) { return a >= b; }
template <class T> T minus(T a) { return T(wrapping<T>(0) - wrapping<T>(a)); }
template <> inline float minus(float a) { return -a; }
template <> inline double minus(double a) { return -a; }
template <class T> T plus(T a) { return a; }
template <class T> T bitnot(T a) { return T(~a); }
template <> inline bool bitnot(bool a) { return !a; }
template <class T> T absolute(T a) {
  if constexpr (limits<T>::is_float) return fabs(a);
  else return limits<T>::is_signed && a < T(0) ? minus(a) : a;
}
template <class T> T magnitude(T a) { return fabs(a); }
template <class T> T root(T a) { return sqrt(a); }
template <class T> T rroot(T a) { return T(1) / sqrt(a); }
template <class T> T cuberoot(T a) { return cbrt(a); }
template <class T> T exponential(T a) { return exp(a); }
template <class T> T logarithm(T a) { return log(a); }
template <class T> T logarithm2(T a) { return log2(a); }
template <class T> T logarithm10(T a) { return log10(a); }
template <class T> T sine(T a) { return sin(a); }
template <class T> T cosine(T a) { return cos(a); }
template <class T> T tangent(T a) { return tan(a); }
template <class T> T arcsine(T a) { return asin(a); }
template <class T> T arccosine(T a) { return acos(a); }
template <class T> T arctangent(T a) { return atan(a); }
template <class T> T hsine(T a) { return sinh(a); }
template <class T> T hcosine(T a) { return cosh(a); }
template <class T> T htangent(T a) { return tanh(a); }
template <class T> T hareasine(T a) { return asinh(a); }
template <class T> T hareacosine(T a) { return acosh(a); }
template <class T> T hareatangent(T a) { return atanh(a); }
template <class T> T down(T a) { return floor(a); }
template <class T> T up(T a) { return ceil(a); }

}  // namespace operation

#if EXACT
// u64 with a signed type: a negative number is below every unsigned one.
template <class A, class B> bool compare(A a, B b) {
  if constexpr (limits<A>::is_signed) {
    if (a < 0) return OP((unsigned long long)0, (unsigned long long)1);
  } else {
    if (b < 0) return OP((unsigned long long)1, (unsigned long long)0);
  }
  return OP((unsigned long long)a, (unsigned long long)b);
}
#define APPLY(i, j, k) compare(OPERAND0(i), OPERAND1(j))
#elif ARITY == 1
#define APPLY(i, j, k) OP((COMPUTE)(OPERAND0(i)))
#elif ARITY == 2
#define APPLY(i, j, k) OP((COMPUTE)(OPERAND0(i)), (COMPUTE)(OPERAND1(j)))
#else
#define APPLY(i, j, k) OP((COMPUTE)(OPERAND0(i)), (COMPUTE)(OPERAND1(j)), (COMPUTE)(OPERAND2(k)))
#endif

#define AXES int(sizeof(Sample::out0_shape) / sizeof(long long))

#define READ_GROUP(k)                                                                        \
  const Pack<IN##k, PACK> group##k = ((const Pack<IN##k, PACK>*)s.in##k)[g];             \
  const IN##k* p##k = group##k.element;

KERNEL_NAME(elementwise)(const Sample* samples, int count, Shared shared) {
  EACH_SAMPLE(s) {
    const IN0* p0 = s.in0;
    bool aligned = packs_at<PACK>(s.out0) && packs_at<PACK>(s.in0);
#if INPUTS > 1
    const IN1* p1 = s.in1;
    aligned = aligned && packs_at<PACK>(s.in1);
#endif
#if INPUTS > 2
    const IN2* p2 = s.in2;
    aligned = aligned && packs_at<PACK>(s.in2);
#endif
#if BROADCAST
    EACH_ITEM(i, s.items) {
      INDEX rest = (INDEX)i;
      long long at[3] = {0, 0, 0};
      for (int d = AXES - 1; d >= 0; d--) {
        const INDEX extent = (INDEX)s.out0_shape[d], whole = rest / extent, coordinate = rest - whole * extent;
        rest = whole;
        for (int k = 0; k < INPUTS; k++) at[k] += coordinate * s.strides[k * AXES + d];
      }
      s.out0[i] = (OUT0)(APPLY(at[INDEX0], at[INDEX1], at[INDEX2]));
    }
#else
    const long long groups = aligned ? s.items / PACK : 0;
    EACH_ITEM(g, groups) {
      READ_GROUP(0)
#if INPUTS > 1
      READ_GROUP(1)
#endif
#if INPUTS > 2
      READ_GROUP(2)
#endif
      Pack<OUT0, PACK> result;
#pragma unroll
      for (int v = 0; v < PACK; v++) result.element[v] = (OUT0)(APPLY(v, v, v));
      ((Pack<OUT0, PACK>*)s.out0)[g] = result;
    }
    EACH_ITEM(k, s.items - groups * PACK) {
      const long long i = groups * PACK + k;
      s.out0[i] = (OUT0)(APPLY(i, i, i));
    }
#endif
  }
}
