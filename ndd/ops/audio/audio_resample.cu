// A windowed sinc, see ndd/_cpu/windowed_sinc.py. A block of threads makes the BLOCK outputs that follow one exact position.
#include "scalar.cuh"

KERNEL_NAME(audio_resample)(const Sample* samples, int count, Shared shared) {
  __shared__ float fractions[BLOCK];
  EACH_SAMPLE(s) {
    const long long n = s.in0_shape[0], total = s.out0_shape[0], blocks = (total + BLOCK - 1) / BLOCK;
    for (long long number = blockIdx.x; number < blocks * s.channels; number += gridDim.x) {
      const long long block = number % blocks * BLOCK, channel = number / blocks;
      const double position = block * s.step, whole = floor(position);
      if (threadIdx.x == 0) {  // float32 sums one after the other, as on the CPU
        float fraction = float(position - whole);
        for (int k = 0; k < BLOCK; k++) {
          fractions[k] = fraction;
          fraction += float(s.step);
        }
      }
      __syncthreads();
      const long long o = block + threadIdx.x;
      if (o < total) {
        const float fraction = fractions[threadIdx.x];
        const int steps = int(fraction), width = 2 * shared.lobes;
        const float there = fraction - float(steps), half = shared.coarse / 2;
        float scaled = there * PHASES;
        const int q = int(scaled);
        const long long first = (long long)whole + steps - (shared.lobes - 1);
        const int low = first < 0 ? int(-first) : 0, high = n - first < width ? int(n - first) : width;
        const float t = fabsf(float(low + 1 - shared.lobes) - there);
        const float finer = low == 0 ? half : t > 0 ? ldexpf(1.0f, ilogbf(t) - 18) : 0.0f;
        if (finer > 0) scaled = rintf(scaled / finer) * finer;
        const float p = rintf(scaled / half) * half - float(q);
        const float r = rintf(scaled / shared.coarse) * shared.coarse - float(q);
        const float2* taps = (const float2*)s.taps + q;
        float sum = 0;
        for (int k = low; k < high; k++) {
          const float2 tap = taps[k * PHASES];  // and how much it changes to the next phase
          sum += ((float(s.in0[(first + k) * s.channels + channel]) - shared.before) * shared.times + shared.after) *
                 (tap.x + (k < shared.split ? p : r) * tap.y);
        }
        if constexpr (limits<OUT0>::is_float)
          s.out0[o * s.channels + channel] = sum;
        else
          s.out0[o * s.channels + channel] = saturated<OUT0>(rintf(sum));
      }
      __syncthreads();
    }
  }
}
