// JPEG there and back without the entropy coding, in libjpeg's integer arithmetic: colours, 4:2:0 chroma, 8x8 cosine
// transforms with rounding between their two passes, quantisation, and the inverse of each.
//
// A block of threads works on a tile of pixels in shared memory. Chroma is interpolated across the edges of 8x8
// blocks, so a tile also transforms the chroma blocks around it: that is cheaper than a second kernel.

const int Y_ROWS = TILE_H / 8, Y_COLUMNS = TILE_W / 8, Y_BLOCKS = Y_ROWS * Y_COLUMNS;
const int C_ROWS = TILE_H / 16 + 2, C_COLUMNS = TILE_W / 16 + 2, C_BLOCKS = C_ROWS * C_COLUMNS;
const int BLOCKS = Y_BLOCKS + 2 * C_BLOCKS;

// The tables of the JPEG standard (annex K), row by row.
__constant__ const unsigned char QUANTA[2][64] = {
    {16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56,
     14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92,
     49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99},
    {17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99,
     47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
     99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99}};

// Cosines in 1/8192.
const int C_0_298 = 2446, C_0_390 = 3196, C_0_541 = 4433, C_0_765 = 6270, C_0_899 = 7373, C_1_175 = 9633,
          C_1_501 = 12299, C_1_847 = 15137, C_1_961 = 16069, C_2_053 = 16819, C_2_562 = 20995, C_3_072 = 25172;

__device__ inline int rounded(int value, int bits) { return (value + (1 << (bits - 1))) >> bits; }
__device__ inline int limited(int value, int low, int high) { return min(max(value, low), high); }

// The rotations that the odd half of the transform and of its inverse share: z[0..3] in place.
__device__ inline void rotate_odd(int* z) {
  const int far = -C_0_899 * (z[0] + z[3]), near = -C_2_562 * (z[1] + z[2]);
  const int sum = C_1_175 * (z[0] + z[1] + z[2] + z[3]);
  const int even = sum - C_1_961 * (z[0] + z[2]), odd = sum - C_0_390 * (z[1] + z[3]);
  z[0] = C_0_298 * z[0] + far + even;
  z[1] = C_2_053 * z[1] + near + odd;
  z[2] = C_3_072 * z[2] + near + even;
  z[3] = C_1_501 * z[3] + far + odd;
}

// Eight samples to eight frequencies. First pass: `up` extra bits; second: they are rounded off again.
__device__ inline void forward(int* v, bool second) {
  const int a = v[0] + v[7], b = v[1] + v[6], c = v[2] + v[5], d = v[3] + v[4];
  int z[4] = {v[3] - v[4], v[2] - v[5], v[1] - v[6], v[0] - v[7]};
  const int bits = second ? 15 : 11, p = a + d, q = b + c, r = a - d, s = b - c;
  const int turned = C_0_541 * (r + s);
  v[0] = second ? rounded(p + q, 2) : (p + q) * 4;
  v[4] = second ? rounded(p - q, 2) : (p - q) * 4;
  v[2] = rounded(turned + C_0_765 * r, bits);
  v[6] = rounded(turned - C_1_847 * s, bits);
  rotate_odd(z);
  v[7] = rounded(z[0], bits);
  v[5] = rounded(z[1], bits);
  v[3] = rounded(z[2], bits);
  v[1] = rounded(z[3], bits);
}

// Eight frequencies to eight samples; `bits` as the two passes of `forward` and the scale of 8 have it.
__device__ inline void backward(int* v, int bits) {
  const int turned = C_0_541 * (v[2] + v[6]);
  const int r = turned + C_0_765 * v[2], s = turned - C_1_847 * v[6];
  const int p = (v[0] + v[4]) * 8192, q = (v[0] - v[4]) * 8192;
  int z[4] = {v[7], v[5], v[3], v[1]};
  rotate_odd(z);
  const int even[4] = {p + r, q + s, q - s, p - r};
  for (int k = 0; k < 4; k++) {
    v[k] = rounded(even[k] + z[3 - k], bits);
    v[7 - k] = rounded(even[k] - z[3 - k], bits);
  }
}

// A column of a block: to frequencies, to multiples of the quanta, and half of the way back.
__device__ inline void quantise_column(short* block, int column, const unsigned char* quanta) {
  int v[8];
  for (int k = 0; k < 8; k++) v[k] = block[8 * k + column];
  forward(v, true);
  for (int k = 0; k < 8; k++) {
    const int quantum = quanta[8 * k + column];
    const int steps = (unsigned(abs(v[k])) + 4 * quantum) / unsigned(8 * quantum);
    v[k] = (v[k] < 0 ? -steps : steps) * quantum;
  }
  backward(v, 11);
  for (int k = 0; k < 8; k++) block[8 * k + column] = limited(v[k], -32768, 32767);
}

__device__ inline void transform_row(short* row, bool back) {
  int v[8];
  for (int k = 0; k < 8; k++) v[k] = row[k];
  if (back) {
    backward(v, 18);
    for (int k = 0; k < 8; k++) row[k] = limited(v[k] + 128, 0, 255);
  } else {
    forward(v, false);
    for (int k = 0; k < 8; k++) row[k] = v[k];
  }
}

// Where sample (y, x) of a plane lies that is cut into blocks, `columns` of them in a row.
__device__ inline int place(int y, int x, int columns) {
  return ((y >> 3) * columns + (x >> 3)) * 64 + (y & 7) * 8 + (x & 7);
}

struct Colour {
  int y, cb, cr;
};

__device__ inline Colour colour_of(const unsigned char* p) {
  const int r = p[0], g = p[1], b = p[2], middle = (128 << 16) + 32767;
  return {(19595 * r + 38470 * g + 7471 * b + 32768) >> 16, (-11059 * r - 21709 * g + 32768 * b + middle) >> 16,
          (32768 * r - 27439 * g - 5329 * b + middle) >> 16};
}

struct Tile {
  const unsigned char* in;
  unsigned char* out;
  int height, width, top, left;  // of the image, and where the tile begins
  short* luma;
  short* chroma[2];
};

// Four pixels to four luma samples and one of each chroma. Beyond the edges libjpeg repeats pixels to the right and
// sampled rows below.
__device__ inline void load(const Tile& t, int i) {
  const int j = i / (C_COLUMNS * 8), k = i % (C_COLUMNS * 8);
  const int cy = t.top / 2 - 8 + j, cx = t.left / 2 - 8 + k;
  if (cy < 0 || cx < 0) return;
  const int rows = (t.height + 1) / 2;
  const int y0 = 2 * min(cy, rows - 1), y1 = min(y0 + 1, t.height - 1);
  const int x0 = min(2 * cx, t.width - 1), x1 = min(2 * cx + 1, t.width - 1);
  const unsigned char *upper = t.in + 3ll * y0 * t.width, *lower = t.in + 3ll * y1 * t.width;
  const Colour a = colour_of(upper + 3 * x0), b = colour_of(upper + 3 * x1);
  const Colour c = colour_of(lower + 3 * x0), d = colour_of(lower + 3 * x1);
  const int bias = 1 + (cx & 1), at = place(j, k, C_COLUMNS);
  t.chroma[0][at] = ((a.cb + b.cb + c.cb + d.cb + bias) >> 2) - 128;
  t.chroma[1][at] = ((a.cr + b.cr + c.cr + d.cr + bias) >> 2) - 128;
  const int y = 2 * (j - 8), x = 2 * (k - 8);
  if (y < 0 || y >= TILE_H || x < 0 || x >= TILE_W) return;
  const bool below = cy >= rows;
  t.luma[place(y, x, Y_COLUMNS)] = (below ? c.y : a.y) - 128;
  t.luma[place(y, x + 1, Y_COLUMNS)] = (below ? d.y : b.y) - 128;
  t.luma[place(y + 1, x, Y_COLUMNS)] = c.y - 128;
  t.luma[place(y + 1, x + 1, Y_COLUMNS)] = d.y - 128;
}

// Chroma at pixel (y, x) of the image: 9 3 3 1 sixteenths of the four samples around, rounded up and down by turns.
__device__ inline int chroma_at(const Tile& t, const short* plane, int y, int x) {
  const int rows = (t.height + 1) / 2, columns = (t.width + 1) / 2;
  const int cy = y / 2, cx = x / 2, up = 8 - t.top / 2, left = 8 - t.left / 2;
  if (columns <= 2) return plane[place(cy + up, cx + left, C_COLUMNS)];
  const int oy = limited(cy + 2 * (y & 1) - 1, 0, rows - 1) + up, ox = limited(cx + 2 * (x & 1) - 1, 0, columns - 1) + left;
  const int near = 3 * plane[place(cy + up, cx + left, C_COLUMNS)] + plane[place(oy, cx + left, C_COLUMNS)];
  const int far = 3 * plane[place(cy + up, ox, C_COLUMNS)] + plane[place(oy, ox, C_COLUMNS)];
  return (3 * near + far + 8 - (x & 1)) >> 4;
}

__device__ inline void write(const Tile& t, int i) {
  const int j = i / TILE_W, k = i % TILE_W, y = t.top + j, x = t.left + k;
  if (y >= t.height || x >= t.width) return;
  const int luma = t.luma[place(j, k, Y_COLUMNS)];
  const int cb = chroma_at(t, t.chroma[0], y, x) - 128, cr = chroma_at(t, t.chroma[1], y, x) - 128;
  unsigned char* p = t.out + (y * (long long)t.width + x) * 3;
  p[0] = limited(luma + ((91881 * cr + 32768) >> 16), 0, 255);
  p[1] = limited(luma + ((-22554 * cb - 46802 * cr + 32768) >> 16), 0, 255);
  p[2] = limited(luma + ((116130 * cb + 32768) >> 16), 0, 255);
}

KERNEL_NAME(jpeg_compression_distortion)(const Sample* samples, int count, Shared shared) {
  __shared__ short blocks[BLOCKS * 64];
  __shared__ unsigned char quanta[128];
  EACH_SAMPLE(s) {
    Tile t = {s.in0, s.out0, int(s.out0_shape[0]), int(s.out0_shape[1]), 0, 0,
              blocks, {blocks + Y_BLOCKS * 64, blocks + (Y_BLOCKS + C_BLOCKS) * 64}};
    const int across = (t.width + TILE_W - 1) / TILE_W, tiles = int(s.items / blockDim.x);
    for (int i = threadIdx.x; i < 128; i += blockDim.x)
      quanta[i] = limited((QUANTA[i / 64][i % 64] * s.percent + 50) / 100, 1, 255);
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      t.top = tile / across * TILE_H;
      t.left = tile % across * TILE_W;
      for (int i = threadIdx.x; i < C_BLOCKS * 64; i += blockDim.x) load(t, i);
      __syncthreads();
      for (int i = threadIdx.x; i < BLOCKS * 8; i += blockDim.x) transform_row(blocks + 8 * i, false);
      __syncthreads();
      for (int i = threadIdx.x; i < BLOCKS * 8; i += blockDim.x)
        quantise_column(blocks + i / 8 * 64, i % 8, quanta + (i / 8 < Y_BLOCKS ? 0 : 64));
      __syncthreads();
      for (int i = threadIdx.x; i < BLOCKS * 8; i += blockDim.x) transform_row(blocks + 8 * i, true);
      __syncthreads();
      for (int i = threadIdx.x; i < TILE_H * TILE_W; i += blockDim.x) write(t, i);
      __syncthreads();
    }
  }
}
