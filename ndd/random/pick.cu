// One thread an element of the result: the item that its draw chooses, uniformly or by cumulative probabilities,
// or that was chosen before.
#include "philox.cuh"

extern "C" __global__ void pick(const Sample* samples, int count, Shared shared) {
  const OUT0* items = (const OUT0*)shared.items;
  const double* cumulative = (const double*)shared.cumulative;
  const long long* chosen = (const long long*)shared.chosen;
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    long long total = 1;
    for (long long extent : s.out0_shape) total *= extent;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < total;
         i += (long long)gridDim.x * blockDim.x) {
      const long long draw = i / shared.item;
      Words words(s.stream, draw);
      long long index;
      if (chosen) {
        index = chosen[s.start + draw];
      } else if (cumulative) {
        const double word = double(words.next64()) * 5.421010862427522e-20;
        long long low = 0, high = (long long)s.limit - 1;
        while (low < high) {
          const long long middle = (low + high) >> 1;
          if (cumulative[s.weights + middle] < word)
            low = middle + 1;
          else
            high = middle;
        }
        index = low;
      } else {
        index = (long long)words.below(s.limit);
      }
      s.out0[i] = items ? items[(s.offset + index) * shared.item + i % shared.item] : convert<OUT0>(index);
    }
  }
}
