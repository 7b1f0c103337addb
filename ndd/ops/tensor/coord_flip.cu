// A coordinate is multiplied by 1 or -1 and shifted.
PER_ITEM(coord_flip) {
  const long long column = i % s.out0_shape[1];
  s.out0[i] = s.in0[i] * s.factor[column] + s.offset[column];
}
