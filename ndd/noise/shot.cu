// A block of threads takes TILE elements at a time into shared memory: most are counted at once, the others are listed
// and counted exactly, so that few warps wait for the long way.
#include "poisson.cuh"

// By the inverse, as DALI does: where a mean is nearly whole, its last bit decides what is counted.
inline float mean_of(IN0 value, float factor) { return fmaxf(float(value) * (1.0f / factor), 0.0f); }

struct Tile {
  LogFactorials factorials;
  OUT0 value[TILE];  // before, then after
  unsigned short listed[TILE];
  int listed_count;

  void list(int element) { listed[atomicAdd(&listed_count, 1)] = (unsigned short)element; }
};

// The lanes of a warp make a block of words in each turn, every lane for the element that it is at.
inline void count_small(Tile& tile, int size, const unsigned long long* stream, long long base, float factor) {
  SmallCount small;
  bool busy = false;
  int element = 0, next = threadIdx.x;
  while (true) {
    while (!busy && next < size) {
      element = next;
      next += blockDim.x;
      const float mean = mean_of(tile.value[element], factor);
      if (mean == 0.0f || !(mean < 2147483646.0f)) {
        tile.value[element] = convert<OUT0>(mean * factor);
      } else if (mean >= 12.0f) {
        tile.list(element);
      } else {
        small = SmallCount(stream, base + element, mean);
        busy = true;
      }
    }
    // Together: lanes that go on would otherwise run ahead of those that take their next element.
    if (!__any_sync(~0u, busy)) break;
    if (busy) {
      const SmallCount::Found found = small.step(stream[0]);
      busy = found == SmallCount::GOES_ON;
      if (found == SmallCount::COUNTED) tile.value[element] = convert<OUT0>(float(small.count) * factor);
      if (found == SmallCount::UNSURE) tile.list(element);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256, 3) shot(const Sample* samples, int count, Shared shared) {
  __shared__ Tile tile;
  bool filled = false;
  EACH_SAMPLE(s) {
    const unsigned long long stream[4] = {s.stream[0], s.stream[1], s.stream[2], s.stream[3]};
    const float factor = s.factor;
    const IN0* input = s.in0;
    OUT0* output = s.out0;
    for (long long base = blockIdx.x * (long long)TILE; base < s.size; base += gridDim.x * (long long)TILE) {
      const int size = s.size - base < TILE ? int(s.size - base) : TILE;
      __syncthreads();
      if (threadIdx.x == 0) tile.listed_count = 0;
#pragma unroll 8
      for (int i = threadIdx.x; i < size; i += blockDim.x) tile.value[i] = input[base + i];
      __syncthreads();
      if (factor != 0.0f) count_small(tile, size, stream, base, factor);
      __syncthreads();
      const int listed = tile.listed_count;
      if (listed && !filled) {
        tile.factorials.fill();
        filled = true;
        __syncthreads();
      }
      for (int i = threadIdx.x; i < listed; i += blockDim.x) {
        const int e = tile.listed[i];
        const double counted = exact_count(stream, base + e, mean_of(tile.value[e], factor), tile.factorials);
        tile.value[e] = convert<OUT0>(float(counted) * factor);
      }
      __syncthreads();
#pragma unroll 8
      for (int i = threadIdx.x; i < size; i += blockDim.x) output[base + i] = factor != 0.0f ? tile.value[i] : (OUT0)0;
    }
  }
}
