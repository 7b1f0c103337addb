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
