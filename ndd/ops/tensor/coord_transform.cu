// out = matrix @ point + offset; a thread for each coordinate of the output.
extern "C" __global__ void coord_transform(const Sample* samples, int count, Shared shared) {
  const int rows = sizeof(samples->offset) / sizeof(float);
  const int columns = sizeof(samples->matrix) / sizeof(samples->offset);
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    long long total = 1;
    for (int d = 0; d < int(sizeof(s.out0_shape) / sizeof(long long)); d++) total *= s.out0_shape[d];
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < total;
         i += (long long)gridDim.x * blockDim.x) {
      const long long point = i / rows;
      const int row = int(i - point * rows);
      const IN0* in = s.in0 + point * columns;
      float sum = 0;
      for (int c = 0; c < columns; c++) sum += s.matrix[row][c] * float(in[c]);
      s.out0[i] = convert<OUT0>(sum + s.offset[row]);
    }
  }
}
