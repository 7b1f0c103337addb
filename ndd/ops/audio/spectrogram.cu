// Windows of signals, row after row, and the power of their transforms, which are the rows then.

// rows[t * nfft + j] = signal[first + t * step + j] * window[j]; zeros behind the window.
PER_ITEM(cut_windows) {
  const long long t = quotient(i, shared.nfft);
  const int j = int(i - t * shared.nfft);
  float value = 0;
  if (j < shared.length) {
    long long at = shared.first + t * shared.step + j;
#if REFLECT
    if (at < 0 || at >= s.n) {
      const long long period = s.n > 1 ? 2 * (s.n - 1) : 1;
      at %= period;
      if (at < 0) at += period;
      if (at >= s.n) at = period - at;
    }
#endif
    if (at >= 0 && at < s.n) value = s.in0[at] * ((const float*)s.window)[j];
  }
  ((float*)s.rows)[i] = value;
}

inline float power_of(const float* pair) {
  const float power = pair[0] * pair[0] + pair[1] * pair[1];
#if ROOT
  return sqrtf(power);
#else
  return power;
#endif
}

#if TRANSPOSED
// Tiles of 32 windows and 32 frequencies by way of shared memory: reads and writes are both in runs.
KERNEL_NAME(power)(const Sample* samples, int count, Shared shared) {
  __shared__ float tile[32][33];
  const int x = threadIdx.x % 32, y = threadIdx.x / 32;
  const long long across = (shared.bins + 31) / 32;
  EACH_SAMPLE(s) {
    const float* spectra = (const float*)s.rows;
    const long long tiles = across * ((s.windows + 31) / 32);
    for (long long number = blockIdx.x; number < tiles; number += gridDim.x) {
      const long long f0 = number % across * 32, t0 = number / across * 32;
      for (int row = y; row < 32; row += 8)
        if (t0 + row < s.windows && f0 + x < shared.bins)
          tile[row][x] = power_of(spectra + 2 * ((t0 + row) * shared.bins + f0 + x));
      __syncthreads();
      for (int row = y; row < 32; row += 8)
        if (f0 + row < shared.bins && t0 + x < s.windows) s.out0[(f0 + row) * s.windows + t0 + x] = tile[x][row];
      __syncthreads();
    }
  }
}
#else
PER_ITEM(power) { s.out0[i] = power_of((const float*)s.rows + 2 * i); }
#endif
