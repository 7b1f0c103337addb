// One thread an element; its pixel's word decides. The extents are [outer, channels, inner].
#include "philox.cuh"

extern "C" __global__ void salt_and_pepper(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    const long long channels = s.extents[1], inner = s.extents[2], total = s.extents[0] * channels * inner;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < total;
         i += (long long)gridDim.x * blockDim.x) {
      Words words(s.stream, i / (channels * inner) * inner + i % inner);
      const unsigned long long word = words.next();
      s.out0[i] = word < s.salted[0] ? s.salt[0] : word < s.changed[0] ? s.pepper[0] : s.in0[i];
    }
  }
}
