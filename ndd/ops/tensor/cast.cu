// Conversion of the element type. VECTOR elements a thread, read and written together where the addresses allow it.
#include "pack.cuh"
#include "scalar.cuh"

KERNEL_NAME(cast)(const Sample* samples, int count, Shared shared) {
  EACH_SAMPLE(s) {
    const long long groups = packs_at<VECTOR>(s.in0) && packs_at<VECTOR>(s.out0) ? s.total / VECTOR : 0;
    EACH_ITEM(g, groups) {
      const Pack<IN0, VECTOR> group = ((const Pack<IN0, VECTOR>*)s.in0)[g];
      Pack<OUT0, VECTOR> result;
#pragma unroll
      for (int v = 0; v < VECTOR; v++) result.element[v] = convert<OUT0>(group.element[v]);
      ((Pack<OUT0, VECTOR>*)s.out0)[g] = result;
    }
    const long long rest = groups * VECTOR;
    EACH_ITEM(i, s.total - rest) s.out0[rest + i] = convert<OUT0>(s.in0[rest + i]);
  }
}
