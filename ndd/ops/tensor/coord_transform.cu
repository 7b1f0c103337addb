// out = matrix @ point + offset; a thread for each coordinate of the output.
PER_ITEM(coord_transform) {
  const int rows = sizeof(s.offset) / sizeof(float), columns = sizeof(s.matrix) / sizeof(s.offset);
  const long long point = i / rows;
  const int row = int(i - point * rows);
  const IN0* in = s.in0 + point * columns;
  float sum = 0;
  for (int c = 0; c < columns; c++) sum += s.matrix[row][c] * float(in[c]);
  s.out0[i] = convert<OUT0>(sum + s.offset[row]);
}
