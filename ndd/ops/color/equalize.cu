// Counts of the values of every channel, then the values looked up in a table made from them. A block takes a run of
// pixels of each plane of a sample, at most CHANNELS channels at a time.
#include "scalar.cuh"

#define CHANNELS 4
#define COPIES 4  // of the counters of a block, so that its warps do not wait for each other
#define BLOCK 256

// The pixels of a plane that a block looks at, and the channels, from `first` on.
struct Part {
  long long plane, first, begin, end;
  int width;
};

inline long long jobs_of(const Sample& s) { return s.planes * ((s.channels + CHANNELS - 1) / CHANNELS); }

inline Part part_of(const Sample& s, long long job) {
  Part p;
  // Only one of the two is above 1: planes of one channel, or groups of channels of one plane.
  p.plane = s.planes > 1 ? job : 0;
  p.first = s.planes > 1 ? 0 : job * CHANNELS;
  const long long each = (s.pixels + gridDim.x - 1) / gridDim.x;
  p.begin = blockIdx.x * each < s.pixels ? blockIdx.x * each : s.pixels;
  p.end = p.begin + each < s.pixels ? p.begin + each : s.pixels;
  p.width = int(s.channels - p.first < CHANNELS ? s.channels - p.first : CHANNELS);
  return p;
}

// f(byte, channel) for the numbers of a block that this thread takes; `at` is the first number of the plane.
template <class F>
inline void each_number(const Sample& s, const Part& p, long long at, F f) {
  if (p.width < s.channels) {
    for (long long i = p.begin + threadIdx.x; i < p.end; i += BLOCK)
      for (int c = 0; c < p.width; c++) f(at + i * s.channels + c, c);
    return;
  }
  // All channels: eight numbers in a row for each thread, wherever in a pixel that begins.
  const long long last = p.end * p.width;
  for (long long i = p.begin * p.width + 8 * threadIdx.x; i < last; i += 8 * BLOCK) {
    int c = int(i % p.width);
    for (int k = 0; k < 8 && i + k < last; k++) {
      f(at + i + k, c);
      c = c + 1 == p.width ? 0 : c + 1;
    }
  }
}

KERNEL_NAME(count)(const Sample* samples, int count, Shared shared) {
  __shared__ unsigned int found[COPIES][CHANNELS][256];
  unsigned int* flat = &found[0][0][0];
  EACH_SAMPLE(s) {
    for (long long job = 0; job < jobs_of(s); job++) {
      const Part p = part_of(s, job);
      if (p.begin == p.end) continue;
      for (int k = threadIdx.x; k < COPIES * CHANNELS * 256; k += BLOCK) flat[k] = 0;
      __syncthreads();
      const int copy = threadIdx.x / 32 % COPIES;
      each_number(s, p, p.plane * s.pixels + p.first,
                  [&](long long at, int c) { atomicAdd(&found[copy][c][s.in0[at]], 1u); });
      __syncthreads();
      unsigned int* counts = (unsigned int*)s.counts + (p.plane * s.channels + p.first) * 256;
      for (int k = threadIdx.x; k < p.width * 256; k += BLOCK) {
        unsigned int total = 0;
        for (int copies = 0; copies < COPIES; copies++) total += flat[copies * CHANNELS * 256 + k];
        if (total) atomicAdd(&counts[k], total);
      }
      __syncthreads();
    }
  }
}

KERNEL_NAME(equalize)(const Sample* samples, int count, Shared shared) {
  __shared__ unsigned int sums[CHANNELS][256];
  __shared__ unsigned char table[CHANNELS][256];
  __shared__ unsigned int least[CHANNELS];
  const int v = threadIdx.x;
  EACH_SAMPLE(s) {
    for (long long job = 0; job < jobs_of(s); job++) {
      const Part p = part_of(s, job);
      if (p.begin == p.end) continue;
      const unsigned int* counts = (const unsigned int*)s.counts + (p.plane * s.channels + p.first) * 256;
      for (int c = 0; c < p.width; c++) sums[c][v] = counts[c * 256 + v];
      __syncthreads();
      // Running sums by doubling.
      for (int step = 1; step < 256; step *= 2) {
        unsigned int before[CHANNELS];
        for (int c = 0; c < p.width; c++) before[c] = v >= step ? sums[c][v - step] : 0u;
        __syncthreads();
        for (int c = 0; c < p.width; c++) sums[c][v] += before[c];
        __syncthreads();
      }
#ifdef PILLOW  // `least` is the step: what is less than the brightest value, by 255
      for (int c = 0; c < p.width; c++)
        if (sums[c][v] == sums[c][255] && (v == 0 || sums[c][v - 1] != sums[c][v]))
          least[c] = (v ? sums[c][v - 1] : 0u) / 255u;
#else
      for (int c = 0; c < p.width; c++)
        if (sums[c][v] && (v == 0 || !sums[c][v - 1])) least[c] = sums[c][v];
#endif
      __syncthreads();
      for (int c = 0; c < p.width; c++) {
#ifdef PILLOW
        const unsigned int step = least[c], under = v ? sums[c][v - 1] : 0u;
        const unsigned int level = step ? (under + step / 2) / step : v;
        table[c][v] = (unsigned char)(level < 255u ? level : 255u);
#else
        const unsigned int pixels = (unsigned int)s.pixels, above = pixels - least[c];
        const float scale = 255.0f / float(above);
        const unsigned int below = sums[c][v] > least[c] ? sums[c][v] - least[c] : 0u;
        table[c][v] = above ? (unsigned char)rintf(float(below) * scale) : (unsigned char)v;
#endif
      }
      __syncthreads();
      each_number(s, p, p.plane * s.pixels + p.first, [&](long long at, int c) { s.out0[at] = table[c][s.in0[at]]; });
      __syncthreads();
    }
  }
}
