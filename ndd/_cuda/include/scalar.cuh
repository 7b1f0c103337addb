// Element types and their conversion, for NVRTC and for a plain C++ compiler (the tests build kernels as C++).
//
//   convert<OUT>(value)     DALI's `cast`: floats round half away from zero to integers, everything saturates.
//   truncated<OUT>(value)   the same, but the fraction is dropped (crop, slice).
//   number(value)           half_t and bfloat16_t as float, any other type as it is: what to compute with.
//   limits<T>               low, high, is_float, is_signed, is_integer of an element type.
//
// half_t and bfloat16_t hold bits; they become float by themselves and are made by convert<half_t>(x).
// NaN converts as on the CPU (see ndd/_tensor/convert.py).
#ifndef NDD_SCALAR_CUH
#define NDD_SCALAR_CUH

#ifndef __CUDACC_RTC__
#include <cmath>
#include <cstring>
using std::copysign; using std::fabs; using std::fmax; using std::fmin; using std::trunc;
#endif

inline unsigned int float_bits(float value) {
#ifdef __CUDACC_RTC__
  return __float_as_uint(value);
#else
  unsigned int bits;
  std::memcpy(&bits, &value, 4);
  return bits;
#endif
}

inline float float_from_bits(unsigned int bits) {
#ifdef __CUDACC_RTC__
  return __uint_as_float(bits);
#else
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
#endif
}

inline float half_bits_to_float(unsigned short bits) {
#ifdef __CUDACC_RTC__
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
#else
  unsigned int sign = (bits & 0x8000u) << 16, body = bits & 0x7fffu;
  if (body >= 0x7c00u) return float_from_bits(sign | 0x7f800000u | ((body & 0x3ffu) << 13));
  if (body < 0x400u) return float_from_bits(sign | float_bits(float(body) * 5.9604644775390625e-8f));
  return float_from_bits(sign | ((body << 13) + 0x38000000u));
#endif
}

inline unsigned short float_to_half_bits(float value) {
#ifdef __CUDACC_RTC__
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#else
  unsigned int word = float_bits(value), sign = (word >> 16) & 0x8000u, body = word & 0x7fffffffu;
  if (body > 0x7f800000u) return (unsigned short)(sign | 0x7e00u);
  if (body >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);
  // Below the smallest normal number the addition of one half rounds at the right place.
  if (body < 0x38800000u) return (unsigned short)(sign | (float_bits(float_from_bits(body) + 0.5f) - 0x3f000000u));
  return (unsigned short)(sign | ((body - 0x38000000u + 0xfffu + ((body >> 13) & 1u)) >> 13));
#endif
}

struct half_t {
  unsigned short bits;
  operator float() const { return half_bits_to_float(bits); }
};

struct bfloat16_t {
  unsigned short bits;
  operator float() const { return float_from_bits((unsigned int)bits << 16); }
};

inline half_t make_half(float value) {
  half_t result;
  result.bits = float_to_half_bits(value);
  return result;
}

inline bfloat16_t make_bfloat16(float value) {
  bfloat16_t result;
  unsigned int word = float_bits(value);
  result.bits = (word & 0x7fffffffu) > 0x7f800000u ? 0x7fffu
                                                   : (unsigned short)((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  return result;
}

template <class T>
struct limits;

#define NDD_INTEGER(T, LOW, HIGH, SIGNED, NAN_VALUE)                                              \
  template <>                                                                                     \
  struct limits<T> {                                                                              \
    static constexpr bool is_float = false, is_integer = true, is_bool = false, is_signed = SIGNED; \
    static constexpr T low = LOW, high = HIGH, of_nan = NAN_VALUE;                                \
  };
NDD_INTEGER(unsigned char, 0, 255, false, 0)
NDD_INTEGER(signed char, -128, 127, true, 0)
NDD_INTEGER(unsigned short, 0, 65535, false, 0)
NDD_INTEGER(short, -32768, 32767, true, 0)
NDD_INTEGER(unsigned int, 0, 4294967295u, false, 0)
NDD_INTEGER(int, -2147483647 - 1, 2147483647, true, -2147483647 - 1)
NDD_INTEGER(unsigned long long, 0, 18446744073709551615ull, false, 9223372036854775808ull)
NDD_INTEGER(long long, -9223372036854775807ll - 1, 9223372036854775807ll, true, -9223372036854775807ll - 1)
#undef NDD_INTEGER

#define NDD_FLOAT(T)                                                                              \
  template <>                                                                                     \
  struct limits<T> {                                                                              \
    static constexpr bool is_float = true, is_integer = false, is_bool = false, is_signed = true; \
  };
NDD_FLOAT(float)
NDD_FLOAT(double)
NDD_FLOAT(half_t)
NDD_FLOAT(bfloat16_t)
#undef NDD_FLOAT

template <>
struct limits<bool> {
  static constexpr bool is_float = false, is_integer = false, is_bool = true, is_signed = false;
};

template <class T>
inline T number(T value) {
  return value;
}
inline float number(half_t value) { return value; }
inline float number(bfloat16_t value) { return value; }

inline float drop_fraction(float value) { return truncf(value); }
inline double drop_fraction(double value) { return trunc(value); }
// The number just below one half: adding it and truncating rounds half away from zero; 0.5 would round 0.49999997 up.
inline float round_half_away(float value) { return truncf(value + copysignf(0.49999997f, value)); }
inline double round_half_away(double value) { return trunc(value + copysign(0.49999999999999994, value)); }

// A float without a fraction to an integer type.
template <class OUT, class F>
inline OUT saturated(F value) {
  if constexpr (sizeof(OUT) <= 2) {
    F clamped = value < F(limits<OUT>::low) ? F(limits<OUT>::low) : value;
    clamped = clamped > F(limits<OUT>::high) ? F(limits<OUT>::high) : clamped;
    return value != value ? OUT(0) : OUT(int(clamped));
  } else {
    const F above = F(limits<OUT>::high / 2 + 1) * F(2);
    if (value >= above) return limits<OUT>::high;
    if (value <= F(limits<OUT>::low)) return limits<OUT>::low;
    return value != value ? limits<OUT>::of_nan : OUT(value);
  }
}

template <class OUT, class IN>
inline OUT saturated_integer(IN value) {
  if constexpr (limits<IN>::is_signed) {
    if (value < 0) {
      if constexpr (limits<OUT>::is_signed)
        return (long long)value < (long long)limits<OUT>::low ? limits<OUT>::low : OUT(value);
      else
        return OUT(0);
    }
  }
  return (unsigned long long)value > (unsigned long long)limits<OUT>::high ? limits<OUT>::high : OUT(value);
}

template <class A, class B>
struct same_type {
  static constexpr bool value = false;
};
template <class A>
struct same_type<A, A> {
  static constexpr bool value = true;
};

template <class OUT, bool ROUND, class IN>
inline OUT converted(IN input) {
  auto value = number(input);
  using V = decltype(value);
  if constexpr (same_type<OUT, IN>::value) {
    return input;
  } else if constexpr (same_type<OUT, half_t>::value) {
    return make_half(float(value));
  } else if constexpr (same_type<OUT, bfloat16_t>::value) {
    return make_bfloat16(float(value));
  } else if constexpr (limits<OUT>::is_float || limits<V>::is_bool) {
    return OUT(value);
  } else if constexpr (limits<OUT>::is_bool) {
    if constexpr (limits<V>::is_float)
      return !(fabs(value) < V(ROUND ? 0.5 : 1.0));
    else
      return value != V(0);
  } else if constexpr (limits<V>::is_float) {
    return saturated<OUT>(ROUND ? round_half_away(value) : drop_fraction(value));
  } else {
    return saturated_integer<OUT>(value);
  }
}

template <class OUT, class IN>
inline OUT convert(IN value) {
  return converted<OUT, true>(value);
}

template <class OUT, class IN>
inline OUT truncated(IN value) {
  return converted<OUT, false>(value);
}

#endif
