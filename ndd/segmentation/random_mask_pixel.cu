// Chunks of a mask are counted, a thread each; then the threads of a block add them up and find the pixel that was drawn.
#include "philox.cuh"
#include "scalar.cuh"

inline bool is_foreground(IN0 pixel, float threshold) { return double(number(pixel)) > double(threshold); }
inline bool is_foreground(IN0 pixel, long long value) { return number(pixel) == value; }

PER_ITEM(count_foreground) {
  if (!s.foreground) return;
  const long long end = (i + 1) * CHUNK < s.size ? (i + 1) * CHUNK : s.size;
  int found = 0;
  for (long long p = i * CHUNK; p < end; p++) found += is_foreground(s.in0[p], s.against);
  ((int*)s.counts)[i] = found;
}

KERNEL_NAME(random_mask_pixel)(const Sample* samples, int count, Shared shared) {
  __shared__ unsigned long long sums[256];
  EACH_SAMPLE(s) {
    const int* counts = (const int*)s.counts;
    const long long each = (s.chunks + blockDim.x - 1) / blockDim.x;
    if (s.foreground) {
      unsigned long long sum = 0;
      const long long first = threadIdx.x * each, end = first + each < s.chunks ? first + each : s.chunks;
      for (long long c = first; c < end; c++) sum += counts[c];
      sums[threadIdx.x] = sum;
    } else {
      sums[threadIdx.x] = 0;
    }
    __syncthreads();
    if (threadIdx.x == 0 && blockIdx.x == 0) {
      unsigned long long total = 0;
      for (int t = 0; t < blockDim.x; t++) total += sums[t];
      Words words(s.stream, 0);
      if (total == 0) {
        for (int k = 0; k < AXES; k++) s.out0[k] = words.below(s.in0_shape[k]);
      } else {
        unsigned long long left = words.below(total);
        int t = 0;
        while (left >= sums[t]) left -= sums[t++];
        long long c = t * each;
        while (left >= (unsigned long long)counts[c]) left -= counts[c++];
        long long p = c * CHUNK;
        while (true) {
          if (is_foreground(s.in0[p], s.against) && left-- == 0) break;
          p++;
        }
        for (int k = AXES - 1; k >= 0; k--) {
          s.out0[k] = p % s.in0_shape[k];
          p /= s.in0_shape[k];
        }
      }
    }
    __syncthreads();
  }
}
