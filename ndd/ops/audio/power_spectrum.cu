// Lines along an axis, gathered to rows, and the power of the rows' transforms, put back. These are the rows then.

// rows[(o * inner + k) * n + j] = in[o, j, k], 0 behind its end.
PER_ITEM(gather) {
  const long long j = i % shared.n, row = i / shared.n, k = row % s.inner, o = row / s.inner;
  ((float*)s.rows)[i] = j < s.extent ? s.in0[(o * s.extent + j) * s.inner + k] : 0.0f;
}

PER_ITEM(power) {
  const long long k = i % s.inner, f = i / s.inner % shared.bins, o = i / s.inner / shared.bins;
  const float* pair = (const float*)s.rows + 2 * ((o * s.inner + k) * shared.bins + f);
  const float power = pair[0] * pair[0] + pair[1] * pair[1];
#if ROOT
  s.out0[i] = sqrtf(power);
#else
  s.out0[i] = power;
#endif
}
