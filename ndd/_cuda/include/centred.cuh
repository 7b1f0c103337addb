// Where torch's `grid_sample` reads, see `centred_points` of ndd/ops/image/warp_kernels.py: the same numbers, rounded as often,
// in the same order. With PERSPECTIVE the matrix has a row more, of what both are divided by. Rows are those of the sample's
// `matrix`, or what CENTRED_ROW says.
#ifndef NDD_CENTRED_CUH
#define NDD_CENTRED_CUH

#include "warp.cuh"

#ifndef CENTRED_ROW
#define CENTRED_ROW(s, i) s.matrix[i]
#endif

struct Centred {
  inline float sum(const float* m, float u, float v, bool rounded) const {
    const float across = __fmul_rn(u, m[0]);
    return __fadd_rn(rounded ? __fadd_rn(__fmul_rn(v, m[1]), across) : __fmaf_rn(v, m[1], across), m[2]);
  }
  inline float at(const Sample& s, int axis, float u, float v) const {
    const bool rounded = CENTRED_ROW(s, 3)[2] != 0;
    float share = sum(CENTRED_ROW(s, axis), u, v, rounded);
#ifdef PERSPECTIVE
    share = __fadd_rn(__fdiv_rn(share, sum(CENTRED_ROW(s, 4), u, v, rounded)), -1.0f);
#endif
    const float place = __fadd_rn(__fmul_rn(__fadd_rn(share, 1.0f), CENTRED_ROW(s, 3)[axis]), -0.5f);
    return __fadd_rn(CENTRED_ROW(s, 2)[2] != 0 ? rintf(place) : place, 0.5f);
  }
  inline void operator()(const Sample& s, int x, int y, float* sx, float* sy) const {
    const float u = CENTRED_ROW(s, 2)[0] + x, v = CENTRED_ROW(s, 2)[1] + y;
    *sx = at(s, 0, u, v);
    *sy = at(s, 1, u, v);
  }
};

#endif
