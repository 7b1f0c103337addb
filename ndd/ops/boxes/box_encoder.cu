// Two kernels: the anchor that fits a box best, then the box that fits an anchor best. The overlap is worked out with the
// roundings of the CPU, in both: no fused multiply-add.
#include "block.cuh"

inline float overlap(const float* b, const float* a) {
  const float w = fminf(b[2], a[2]) - fmaxf(b[0], a[0]), h = fminf(b[3], a[3]) - fmaxf(b[1], a[1]);
  if (!(w > 0.0f && h > 0.0f)) return 0.0f;
  const float both = __fmul_rn(w, h);
  if (!(both > 0.0f)) return 0.0f;
  const float area = __fmul_rn(b[2] - b[0], b[3] - b[1]), other = __fmul_rn(a[2] - a[0], a[3] - a[1]);
  return __fdiv_rn(both, __fsub_rn(__fadd_rn(area, other), both));
}

// A block takes one box at a time; of equal anchors the last counts.
KERNEL_NAME(best_anchor)(const Sample* samples, int count, Shared shared) {
  EACH_SAMPLE(s) {
    const float* anchors = (const float*)s.anchors;
    for (long long box = blockIdx.x; box < s.in0_shape[0]; box += gridDim.x) {
      unsigned long long best = 0;  // bits of the overlap, in the order of floats from 0 on, and the anchor's number plus 1
      for (int a = threadIdx.x; a < shared.anchor_count; a += blockDim.x) {
        const unsigned int bits = __float_as_int(overlap(s.in0 + 4 * box, anchors + 4 * a));
        if (bits <= 0x7f800000u) best = max(best, (unsigned long long)bits << 32 | (a + 1));
      }
      best = largest_in_block(best);
      if (threadIdx.x == 0) ((int*)s.best)[box] = int(best) - 1;
    }
  }
}

PER_ITEM(box_encoder) {
  const float* a = (const float*)s.anchors + 4 * i;
  const int* best = (const int*)s.best;
  float most = -1.0f;
  long long match = -1;
  for (long long b = 0; b < s.in0_shape[0]; b++) {
    const float value = best[b] == i ? 2.0f : overlap(s.in0 + 4 * b, a);
    if (value >= most) {
      most = value;
      match = b;
    }
  }
  const bool matched = most > shared.criteria;
  s.out1[i] = matched ? s.in1[match] : 0;
  const float* box = matched ? s.in0 + 4 * match : a;
#pragma unroll
  for (int k = 0; k < 2; k++) {
    float centre = (box[k] + box[k + 2]) * 0.5f, side = box[k + 2] - box[k];
    if (shared.offset) {
      const float own = (a[k] + a[k + 2]) * 0.5f * shared.scale, unit = (a[k + 2] - a[k]) * shared.scale;
      centre = matched ? ((centre * shared.scale - own) / unit - shared.numbers[k]) * shared.numbers[k + 4] : 0;
      side = matched ? (logf(side * shared.scale / unit) - shared.numbers[k + 2]) * shared.numbers[k + 6] : 0;
    }
    s.out0[4 * i + k] = centre;
    s.out0[4 * i + k + 2] = side;
  }
}
