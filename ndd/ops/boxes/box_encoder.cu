// Two kernels: the anchor that fits a box best, then the box that fits an anchor best. The overlap is worked out with the
// roundings of the CPU, in both: no fused multiply-add.
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
  __shared__ float most[256];
  __shared__ int where[256];
  EACH_SAMPLE(s) {
    const float* anchors = (const float*)s.anchors;
    for (long long box = blockIdx.x; box < s.in0_shape[0]; box += gridDim.x) {
      float best = 0.0f;
      int at = -1;
      for (int a = threadIdx.x; a < shared.anchor_count; a += blockDim.x) {
        const float found = overlap(s.in0 + 4 * box, anchors + 4 * a);
        if (found >= best) {
          best = found;
          at = a;
        }
      }
      most[threadIdx.x] = best;
      where[threadIdx.x] = at;
      __syncthreads();
      for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
          const int other = threadIdx.x + half;
          if (most[other] > most[threadIdx.x] ||
              (most[other] == most[threadIdx.x] && where[other] > where[threadIdx.x])) {
            most[threadIdx.x] = most[other];
            where[threadIdx.x] = where[other];
          }
        }
        __syncthreads();
      }
      if (threadIdx.x == 0) ((int*)s.best)[box] = where[0];
      __syncthreads();
    }
  }
}

PER_ITEM(box_encoder) {
  const float* a = (const float*)s.anchors + 4 * i;
  const int* best = (const int*)s.best;
  float most = -1.0f;
  long long found = -1;
  for (long long b = 0; b < s.in0_shape[0]; b++) {
    const float value = best[b] == i ? 2.0f : overlap(s.in0 + 4 * b, a);
    if (value >= most) {
      most = value;
      found = b;
    }
  }
  const float w = a[2] - a[0], h = a[3] - a[1], x = (a[0] + a[2]) * 0.5f, y = (a[1] + a[3]) * 0.5f;
  float* out = s.out0 + 4 * i;
  if (!(most > shared.criteria)) {
    s.out1[i] = 0;
    out[0] = shared.offset ? 0.0f : x;
    out[1] = shared.offset ? 0.0f : y;
    out[2] = shared.offset ? 0.0f : w;
    out[3] = shared.offset ? 0.0f : h;
    return;
  }
  s.out1[i] = s.in1[found];
  const float* b = s.in0 + 4 * found;
  float bx = (b[0] + b[2]) * 0.5f, by = (b[1] + b[3]) * 0.5f, bw = b[2] - b[0], bh = b[3] - b[1];
  if (shared.offset) {
    const float k = shared.scale;
    bx = ((bx * k - x * k) / (w * k) - shared.numbers[0]) * shared.numbers[4];
    by = ((by * k - y * k) / (h * k) - shared.numbers[1]) * shared.numbers[5];
    bw = (logf(bw * k / (w * k)) - shared.numbers[2]) * shared.numbers[6];
    bh = (logf(bh * k / (h * k)) - shared.numbers[3]) * shared.numbers[7];
  }
  out[0] = bx;
  out[1] = by;
  out[2] = bw;
  out[3] = bh;
}
