// out[o, m, i] = sum of weights[m, k] * in[o, k, i], first[m] <= k < last[m].
PER_ITEM(weighted_sums) {
  const long long inside = i % s.inner, m = i / s.inner % s.rows_out, outer = i / s.inner / s.rows_out;
  const long long first = ((const long long*)s.first)[m], last = ((const long long*)s.last)[m];
  const float* weights = (const float*)s.weights + ((const long long*)s.start)[m];
  const float* x = s.in0 + (outer * s.rows_in + first) * s.inner + inside;
  float total = 0;
#pragma unroll 4
  for (long long k = first; k < last; k++, x += s.inner) total += *weights++ * *x;
  s.out0[i] = total;
}
