#if ROWS
// Rows of `s.rows` numbers that lie side by side, a warp for each: mean and variance in double, from the differences to
// the first number, which do not cancel; then the values.
KERNEL_NAME(normalize_rows)(const Sample* samples, int count, Shared shared) {
  EACH_SAMPLE(s) EACH_ITEM(i, s.items) {
    const long long first = i / 32 * s.rows;
    const int lane = int(i % 32), rows = int(s.rows);
    if (!rows) continue;
    const double pivot = double(s.in0[first]);
    double total = 0, squares = 0;
    for (int r = lane; r < rows; r += 32) {
      const double away = double(s.in0[first + r]) - pivot;
      total += away;
      squares += away * away;
    }
    for (int other = 16; other > 0; other /= 2) {
      total += __shfl_xor_sync(0xffffffff, total, other);
      squares += __shfl_xor_sync(0xffffffff, squares, other);
    }
    const float mean = float(pivot + total / rows);
    const double rounding = pivot + total / rows - mean;
    squares += rows * rounding * rounding - total * total / rows;
    const double variance = (rows > shared.ddof && squares > 0 ? squares / (rows - shared.ddof) : 0.0) + shared.epsilon;
    const float gain = variance > 0 ? float(shared.scale / sqrt(variance)) : 0.0f;
    for (int r = lane; r < rows; r += 32)
      s.out0[first + r] = convert<OUT0>((float(s.in0[first + r]) - mean) * gain + shared.shift);
  }
}
#else
// Values to normalized values; INDEX is the type that element numbers fit.
PER_ITEM(normalize) {
  INDEX rest = (INDEX)i;
  long long of_mean = 0, of_gain = 0;
  for (int d = int(sizeof(s.out0_shape) / sizeof(long long)) - 1; d >= 0; d--) {
    const INDEX extent = (INDEX)s.out0_shape[d], whole = rest / extent, coordinate = rest - whole * extent;
    rest = whole;
    of_mean += coordinate * s.mean_steps[d];
    of_gain += coordinate * s.gain_steps[d];
  }
  s.out0[i] = convert<OUT0>((float(s.in0[i]) - ((float*)s.mean)[of_mean]) * ((float*)s.gain)[of_gain] + shared.move);
}
#endif
