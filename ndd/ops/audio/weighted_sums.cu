// out[o, m, i] = sum of weights[m, k] * in[o, k, i], first[m] <= k < last[m].
PER_ITEM(weighted_sums) {
  const long long rows_in = s.in0_shape[shared.axis], rows_out = s.out0_shape[shared.axis];
  const long long row = quotient(i, s.inner), inside = i - row * s.inner;
  const long long outer = quotient(row, rows_out), m = row - outer * rows_out;
  const long long* table = (const long long*)s.table;  // first, last, where the row's weights begin; then all weights
  const long long first = table[m], last = table[rows_out + m];
  const float* weights = (const float*)(table + 3 * rows_out) + table[2 * rows_out + m];
  const float* x = s.in0 + (outer * rows_in + first) * s.inner + inside;
  float total = 0;
#pragma unroll 4
  for (long long k = first; k < last; k++, x += s.inner) total += *weights++ * *x;
  s.out0[i] = total;
}
