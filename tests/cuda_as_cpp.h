// CUDA's built-ins for a plain C++ compiler: the tests build kernels as C++ and run their threads one after the other.
#pragma once
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmath>  // and no containers: they double the time in which a kernel is built

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __shared__ static  // the threads of a block share it; blocks run one after the other
#define __align__(n) alignas(n)

struct Index3 {
  unsigned int x, y, z;
};
static Index3 threadIdx, blockIdx, blockDim = {1, 1, 1}, gridDim = {1, 1, 1};
static const int warpSize = 32;

// ---- cooperating threads: each is a fiber; a barrier hands over to the others

namespace fibers {
enum Wait { READY, AT_BLOCK, AT_WARP, ENDED };
struct Fiber {
  ucontext_t context;
  Index3 index;
  Wait wait;
};
static Fiber all[1024];
static unsigned count;
static char* stacks;
static ucontext_t scheduler;
static unsigned current;
static void (*body)();
static const size_t STACK = 1 << 16;
static unsigned long long exchange[1024];
static int votes[1024];

static void enter() {
  body();
  all[current].wait = ENDED;
  swapcontext(&all[current].context, &scheduler);
}

static void pause(Wait wait) {
  all[current].wait = wait;
  swapcontext(&all[current].context, &scheduler);
}

// Frees the threads `first` to `last` if none of them is still on its way to this barrier.
static bool released(size_t first, size_t last, Wait barrier) {
  bool any = false;
  for (size_t i = first; i < last; i++) {
    if (all[i].wait == barrier) any = true;
    else if (all[i].wait != ENDED) return false;
  }
  for (size_t i = first; any && i < last; i++)
    if (all[i].wait == barrier) all[i].wait = READY;
  return any;
}

// Runs one block; false if its threads wait for one another for ever.
static bool run(unsigned threads, void (*function)()) {
  if (!stacks) stacks = (char*)malloc(1024 * STACK);
  count = threads;
  body = function;
  for (unsigned t = 0; t < threads; t++) {
    Fiber& f = all[t];
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = &stacks[t * STACK];
    f.context.uc_stack.ss_size = STACK;
    f.context.uc_link = &scheduler;
    f.index = {t, 0, 0};
    f.wait = READY;
    makecontext(&f.context, enter, 0);
  }
  while (true) {
    bool moved = false, left = false;
    for (unsigned t = 0; t < threads; t++) {
      if (all[t].wait == READY) {
        current = t;
        threadIdx = all[t].index;
        swapcontext(&scheduler, &all[t].context);
        moved = true;
      }
      left = left || all[t].wait != ENDED;
    }
    if (!left) return true;
    moved = released(0, threads, AT_BLOCK) || moved;
    for (unsigned w = 0; w < threads; w += 32) moved = released(w, w + 32 < threads ? w + 32 : threads, AT_WARP) || moved;
    if (!moved) return false;
  }
}

template <class T>
static T from_lane(T value, int lane) {
  static_assert(sizeof(T) <= 8, "a shuffle takes at most 8 bytes");
  const unsigned me = current, home = me & ~31u;
  memcpy(&exchange[me], &value, sizeof(T));
  pause(AT_WARP);
  T found = value;
  if (lane >= 0 && lane < 32 && home + lane < count) memcpy(&found, &exchange[home + lane], sizeof(T));
  pause(AT_WARP);
  return found;
}
}  // namespace fibers

inline void __syncthreads() { fibers::pause(fibers::AT_BLOCK); }
inline void __syncwarp(unsigned = ~0u) { fibers::pause(fibers::AT_WARP); }
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class T>
inline T __shfl_sync(unsigned, T value, int lane, int width = 32) {
  const int me = fibers::current & 31;
  return fibers::from_lane(value, (me & ~(width - 1)) + (lane & (width - 1)));
}
template <class T>
inline T __shfl_down_sync(unsigned, T value, unsigned delta, int width = 32) {
  const int me = fibers::current & 31, lane = me + int(delta);
  return fibers::from_lane(value, (lane & ~(width - 1)) == (me & ~(width - 1)) ? lane : me);
}
template <class T>
inline T __shfl_up_sync(unsigned, T value, unsigned delta, int width = 32) {
  const int me = fibers::current & 31, lane = me - int(delta);
  return fibers::from_lane(value, lane >= (me & ~(width - 1)) ? lane : me);
}
template <class T>
inline T __shfl_xor_sync(unsigned, T value, int mask, int width = 32) {
  (void)width;
  return fibers::from_lane(value, (int(fibers::current) & 31) ^ mask);
}
inline unsigned __ballot_sync(unsigned, int predicate) {
  const unsigned me = fibers::current, home = me & ~31u;
  fibers::votes[me] = predicate != 0;
  fibers::pause(fibers::AT_WARP);
  unsigned found = 0;
  for (unsigned i = 0; i < 32 && home + i < fibers::count; i++)
    if (fibers::all[home + i].wait != fibers::ENDED && fibers::votes[home + i]) found |= 1u << i;
  fibers::pause(fibers::AT_WARP);
  return found;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline unsigned __activemask() { return ~0u; }
inline int __syncthreads_or(int predicate) {
  fibers::votes[fibers::current] = predicate != 0;
  fibers::pause(fibers::AT_BLOCK);
  int found = 0;
  for (size_t i = 0; i < fibers::count; i++) found |= fibers::votes[i];
  fibers::pause(fibers::AT_BLOCK);
  return found;
}

// ---- atomics: one thread runs at a time

template <class T, class V>
inline T atomicAdd(T* p, V v) { T old = *p; *p = T(old + T(v)); return old; }
template <class T, class V>
inline T atomicSub(T* p, V v) { T old = *p; *p = T(old - T(v)); return old; }
template <class T, class V>
inline T atomicMax(T* p, V v) { T old = *p; if (T(v) > old) *p = T(v); return old; }
template <class T, class V>
inline T atomicMin(T* p, V v) { T old = *p; if (T(v) < old) *p = T(v); return old; }
template <class T, class V>
inline T atomicAnd(T* p, V v) { T old = *p; *p = old & T(v); return old; }
template <class T, class V>
inline T atomicOr(T* p, V v) { T old = *p; *p = old | T(v); return old; }
template <class T, class V>
inline T atomicXor(T* p, V v) { T old = *p; *p = old ^ T(v); return old; }
template <class T, class V>
inline T atomicExch(T* p, V v) { T old = *p; *p = T(v); return old; }
template <class T, class C, class V>
inline T atomicCAS(T* p, C expected, V v) { T old = *p; if (old == T(expected)) *p = T(v); return old; }

// ---- arithmetic

#define NDD_PAIR(T)                                   \
  inline T min(T a, T b) { return b < a ? b : a; }    \
  inline T max(T a, T b) { return a < b ? b : a; }
NDD_PAIR(int)
NDD_PAIR(unsigned int)
NDD_PAIR(long)
NDD_PAIR(unsigned long)
NDD_PAIR(long long)
NDD_PAIR(unsigned long long)
#undef NDD_PAIR
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin(double(a), b); }
inline double max(float a, double b) { return fmax(double(a), b); }
inline double min(double a, float b) { return fmin(a, double(b)); }
inline double max(double a, float b) { return fmax(a, double(b)); }
inline unsigned min(int a, unsigned b) { return min(unsigned(a), b); }
inline unsigned max(int a, unsigned b) { return max(unsigned(a), b); }
inline unsigned min(unsigned a, int b) { return min(a, unsigned(b)); }
inline unsigned max(unsigned a, int b) { return max(a, unsigned(b)); }

using std::isfinite;
using std::isinf;
using std::isnan;

template <class A, class B>
inline B reinterpreted(A a) {
  static_assert(sizeof(A) == sizeof(B), "");
  B b;
  memcpy(&b, &a, sizeof(A));
  return b;
}
inline int __float_as_int(float v) { return reinterpreted<float, int>(v); }
inline unsigned __float_as_uint(float v) { return reinterpreted<float, unsigned>(v); }
inline float __int_as_float(int v) { return reinterpreted<int, float>(v); }
inline float __uint_as_float(unsigned v) { return reinterpreted<unsigned, float>(v); }
inline long long __double_as_longlong(double v) { return reinterpreted<double, long long>(v); }
inline double __longlong_as_double(long long v) { return reinterpreted<long long, double>(v); }

inline int __float2int_rn(float v) { return int(nearbyintf(v)); }
inline int __float2int_rd(float v) { return int(floorf(v)); }
inline int __float2int_ru(float v) { return int(ceilf(v)); }
inline int __float2int_rz(float v) { return int(v); }
inline unsigned __float2uint_rn(float v) { return unsigned(nearbyintf(v)); }
inline float __int2float_rn(int v) { return float(v); }
inline double __int2double_rn(int v) { return double(v); }
inline float __double2float_rn(double v) { return float(v); }
inline float __fadd_rn(float a, float b) { volatile float r = a + b; return r; }
inline float __fsub_rn(float a, float b) { volatile float r = a - b; return r; }
inline float __fmul_rn(float a, float b) { volatile float r = a * b; return r; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline double __dadd_rn(double a, double b) { volatile double r = a + b; return r; }
inline double __dsub_rn(double a, double b) { volatile double r = a - b; return r; }
inline double __dmul_rn(double a, double b) { volatile double r = a * b; return r; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline double __dsqrt_rn(double a) { return sqrt(a); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float v) { return expf(v); }
inline float __logf(float v) { return logf(v); }
inline float __log2f(float v) { return log2f(v); }
inline float __log10f(float v) { return log10f(v); }
inline float __powf(float a, float b) { return powf(a, b); }
inline float __sinf(float v) { return sinf(v); }
inline float __cosf(float v) { return cosf(v); }
inline float __saturatef(float v) { return v > 0.0f ? (v < 1.0f ? v : 1.0f) : 0.0f; }
inline float rsqrtf(float v) { return 1.0f / sqrtf(v); }
inline double rsqrt(double v) { return 1.0 / sqrt(v); }
inline float exp10f(float v, int = 0) { return powf(10.0f, v); }
inline float sinpif(float v) { return float(sin(3.14159265358979323846 * v)); }
inline float cospif(float v) { return float(cos(3.14159265358979323846 * v)); }
inline double sinpi(double v) { return sin(3.14159265358979323846 * v); }
inline double cospi(double v) { return cos(3.14159265358979323846 * v); }
inline float normcdff(float v) { return 0.5f * erfcf(-v * 0.70710678f); }

inline int __clz(int v) { return v ? __builtin_clz(unsigned(v)) : 32; }
inline int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned(((unsigned long long)a * b) >> 32); }
inline int __mulhi(int a, int b) { return int(((long long)a * b) >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
template <class T>
inline T __ldg(const T* p) { return *p; }
template <class T>
inline T __ldcs(const T* p) { return *p; }
template <class T, class V>
inline void __stcs(T* p, V v) { *p = T(v); }

#define NDD_VECTOR(T, N)                                                                                       \
  struct alignas(2 * sizeof(T)) N##2 { T x, y; };                                                              \
  struct N##3 { T x, y, z; };                                                                                  \
  struct alignas(sizeof(T) >= 8 ? 16 : 4 * sizeof(T)) N##4 { T x, y, z, w; };                                  \
  inline N##2 make_##N##2(T x, T y) { return {x, y}; }                                                         \
  inline N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; }                                                 \
  inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
NDD_VECTOR(unsigned char, uchar)
NDD_VECTOR(signed char, char)
NDD_VECTOR(unsigned short, ushort)
NDD_VECTOR(short, short)
NDD_VECTOR(unsigned int, uint)
NDD_VECTOR(int, int)
NDD_VECTOR(long long, longlong)
NDD_VECTOR(unsigned long long, ulonglong)
NDD_VECTOR(float, float)
NDD_VECTOR(double, double)
#undef NDD_VECTOR
