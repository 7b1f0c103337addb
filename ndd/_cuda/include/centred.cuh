// Where torch's `grid_sample` reads, see `centred_points` of ndd/ops/image/warp_kernels.py: the same numbers, rounded as often,
// in the same order. With PERSPECTIVE the matrix has a row more, of what both are divided by.
#ifndef NDD_CENTRED_CUH
#define NDD_CENTRED_CUH

#include "warp.cuh"

struct Centred {
  inline float sum(const float* m, float u, float v) const {
    return __fadd_rn(__fmaf_rn(v, m[1], __fmul_rn(u, m[0])), m[2]);
  }
  inline float at(const Sample& s, int axis, float u, float v) const {
    float share = sum(s.matrix[axis], u, v);
#ifdef PERSPECTIVE
    share = __fadd_rn(__fdiv_rn(share, sum(s.matrix[4], u, v)), -1.0f);
#endif
    const float place = __fadd_rn(__fmul_rn(__fadd_rn(share, 1.0f), s.matrix[3][axis]), -0.5f);
    return __fadd_rn(s.matrix[2][2] != 0 ? rintf(place) : place, 0.5f);
  }
  inline void operator()(const Sample& s, int x, int y, float* sx, float* sy) const {
    const float u = s.matrix[2][0] + x, v = s.matrix[2][1] + y;
    *sx = at(s, 0, u, v);
    *sy = at(s, 1, u, v);
  }
};

#endif
