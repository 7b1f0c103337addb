// Conversion of the element type. PACK elements a thread, read and written together where the addresses allow it.
#include "pack.cuh"
#include "scalar.cuh"

KERNEL_NAME(cast)(const Sample* samples, int count, Shared shared) {
  EACH_SAMPLE(s) {
    const long long groups = packs_at<PACK>(s.in0) && packs_at<PACK>(s.out0) ? s.items / PACK : 0;
    EACH_ITEM(g, groups) {
      const Pack<IN0, PACK> group = ((const Pack<IN0, PACK>*)s.in0)[g];
      Pack<OUT0, PACK> result;
#pragma unroll
      for (int v = 0; v < PACK; v++) result.element[v] = convert<OUT0>(group.element[v]);
      ((Pack<OUT0, PACK>*)s.out0)[g] = result;
    }
    const long long rest = groups * PACK;
    EACH_ITEM(i, s.items - rest) s.out0[rest + i] = convert<OUT0>(s.in0[rest + i]);
  }
}
