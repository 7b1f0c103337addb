// Bayer mosaics to colours: a thread for each pixel. Pixels of the border take the place of the next one inside.
//
// A row has green pixels and pixels of one other colour: `across` is the number of that colour in RGB, 0 or 2.
struct Cell {
  const IN0* p;
  int step;
  int across;
  bool green;

  __device__ int operator()(int dy, int dx) const { return p[dy * (long long)step + dx]; }
  __device__ int sides() const { return (*this)(0, -1) + (*this)(0, 1); }
  __device__ int ends() const { return (*this)(-1, 0) + (*this)(1, 0); }
  __device__ int corners() const { return (*this)(-1, -1) + (*this)(-1, 1) + (*this)(1, -1) + (*this)(1, 1); }
};

__device__ inline Cell cell_at(const Sample& s, int y, int x) {
  const int width = int(s.in0_shape[1]);
  // Odd rows hold blue if it is in the first row of the tile, which begins at row 1.
  const bool blue_row = ((y + 1) & 1) == (s.blue >> 1), blue_column = ((x + 1) & 1) == (s.blue & 1);
  return {s.in0 + y * (long long)width + x, width, blue_row ? 2 : 0, blue_row != blue_column};
}

// The colour of the row's other pixels, green, and the colour of the next rows, in the order red, green, blue.
__device__ inline void sort_colours(int across, int own, int green, int next, int* rgb) {
  rgb[0] = across ? next : own;
  rgb[1] = green;
  rgb[2] = across ? own : next;
}

__device__ inline int inside(int i, int extent) { return min(max(i, 1), extent - 2); }

template <class Pixel>
__device__ inline void colour_pixel(const Sample& s, long long i) {
  const int height = int(s.out0_shape[0]), width = int(s.out0_shape[1]), channels = int(s.out0_shape[2]);
  int made[3] = {};
  const int y = int(i / width), x = int(i - y * (long long)width);
  if (height > 2 && width > 2) Pixel::at(s, y, x, height, width, made);
  for (int k = 0; k < 3; k++)
    if (k < channels) s.out0[channels * i + k] = (OUT0)made[k];
}

struct Bilinear {
  static __device__ void at(const Sample& s, int y, int x, int height, int width, int* rgb) {
    const Cell c = cell_at(s, inside(y, height), inside(x, width));
    sort_colours(c.across, c.green ? (c.sides() + 1) >> 1 : c(0, 0), c.green ? c(0, 0) : (c.sides() + c.ends() + 2) >> 2,
                 c.green ? (c.ends() + 1) >> 1 : (c.corners() + 2) >> 2, rgb);
  }
};

struct EdgeAware {
  static __device__ void at(const Sample& s, int y, int x, int height, int width, int* rgb) {
    const Cell c = cell_at(s, inside(y, height), inside(x, width));
    const bool upright = abs(c(0, -1) - c(0, 1)) > abs(c(1, 0) - c(-1, 0));
    sort_colours(c.across, c.green ? (c.sides() + 1) / 2 : c(0, 0),
                 c.green ? c(0, 0) : ((upright ? c.ends() : c.sides()) + 1) / 2,
                 c.green ? (c.ends() + 1) / 2 : (c.corners() + 2) / 4, rgb);
  }
};

struct Gray {
  static __device__ void at(const Sample& s, int y, int x, int height, int width, int* made) {
    const Cell c = cell_at(s, inside(y, height), inside(x, width));
    // 0.299, 0.587 and 0.114 in 1/16384.
    const unsigned across = c.across ? 1868 : 4899, down = c.across ? 4899 : 1868, green = 9617;
    if (c.green)
      made[0] = (c.sides() * across + c.ends() * down + c(0, 0) * (2 * green) + (1u << 14)) >> 15;
    else
      made[0] = (c.corners() * down + (c.sides() + c.ends()) * green + c(0, 0) * (4 * across) + (1u << 15)) >> 16;
  }
};

// A cell with the two rows and columns around it; beyond the border are those on this side of it (OpenCV's
// BORDER_REFLECT_101). All loops over it are unrolled, so that it stays in registers.
struct Window {
  int around[5][5];
  int across;
  bool green;

  __device__ int operator()(int dy, int dx) const { return around[dy + 2][dx + 2]; }
};

__device__ inline int mirrored(int i, int extent) {
  i = abs(i);
  return i < extent ? i : 2 * extent - 2 - i;
}

__device__ inline Window window_at(const Sample& s, int y, int x, int height, int width) {
  const Cell c = cell_at(s, y, x);
  Window w;
  w.across = c.across, w.green = c.green;
#pragma unroll
  for (int k = 0; k < 25; k++)
    w.around[k / 5][k % 5] = c(mirrored(y + k / 5 - 2, height) - y, mirrored(x + k % 5 - 2, width) - x);
  return w;
}

// How much the picture changes around (dy, dx): along the axes, along the diagonals, and along these with the pixels
// beside them.
__device__ inline int change_down(const Window& c, int dy, int dx) {
  return abs(c(dy - 1, dx - 1) - c(dy + 1, dx - 1)) + 2 * abs(c(dy - 1, dx) - c(dy + 1, dx)) +
         abs(c(dy - 1, dx + 1) - c(dy + 1, dx + 1));
}
__device__ inline int change_across(const Window& c, int dy, int dx) {
  return abs(c(dy - 1, dx - 1) - c(dy - 1, dx + 1)) + 2 * abs(c(dy, dx - 1) - c(dy, dx + 1)) +
         abs(c(dy + 1, dx - 1) - c(dy + 1, dx + 1));
}
__device__ inline int change_rising(const Window& c, int dy, int dx) {
  return 2 * abs(c(dy - 1, dx + 1) - c(dy + 1, dx - 1));
}
__device__ inline int change_falling(const Window& c, int dy, int dx) {
  return 2 * abs(c(dy - 1, dx - 1) - c(dy + 1, dx + 1));
}
__device__ inline int wide_rising(const Window& c, int dy, int dx) {
  return change_rising(c, dy, dx) + abs(c(dy - 1, dx) - c(dy, dx - 1)) + abs(c(dy + 1, dx) - c(dy, dx + 1));
}
__device__ inline int wide_falling(const Window& c, int dy, int dx) {
  return change_falling(c, dy, dx) + abs(c(dy - 1, dx) - c(dy, dx + 1)) + abs(c(dy + 1, dx) - c(dy, dx - 1));
}

// The changes towards N, S, W, E and towards NE, SW, NW, SE.
__device__ inline void changes(const Window& c, int* g) {
  const int down = change_down(c, 0, 0), across = change_across(c, 0, 0);
  g[0] = change_down(c, -1, 0) + down;
  g[1] = down + change_down(c, 1, 0);
  g[2] = change_across(c, 0, -1) + across;
  g[3] = across + change_across(c, 0, 1);
  if (!c.green) {
    const int rising = wide_rising(c, 0, 0), falling = wide_falling(c, 0, 0);
    g[4] = wide_rising(c, -1, 1) + rising;
    g[5] = rising + wide_rising(c, 1, -1);
    g[6] = wide_falling(c, -1, -1) + falling;
    g[7] = falling + wide_falling(c, 1, 1);
    return;
  }
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const int dy = k & 1 ? 1 : -1, dx = k == 0 || k == 3 ? 1 : -1;
    g[4 + k] = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const int py = j & 1 ? dy : 0, px = j & 2 ? dx : 0;
      g[4 + k] += k < 2 ? change_rising(c, py, px) : change_falling(c, py, px);
    }
  }
}

// What lies in direction `k`: twice the mean of the cell's own colour, of the one `second` (green, or the other colour
// of the row) and of the one of the next rows.
struct Means {
  int own, second, third;
};

__device__ inline Means means(const Window& c, int k) {
  const int self = c(0, 0);
  if (k < 2) {
    const int d = k ? 1 : -1;
    if (!c.green) return {c(2 * d, 0) + self, 2 * c(d, 0), c(d, -1) + c(d, 1)};
    return {c(2 * d, 0) + self, c(2 * d, -1) + c(2 * d, 1), 2 * c(d, 0)};
  }
  if (k < 4) {
    const int d = k == 3 ? 1 : -1;
    if (!c.green) return {c(0, 2 * d) + self, 2 * c(0, d), c(-1, d) + c(1, d)};
    return {c(0, 2 * d) + self, 2 * c(0, d), c(-1, 2 * d) + c(1, 2 * d)};
  }
  const int dy = k & 1 ? 1 : -1, dx = k == 4 || k == 7 ? 1 : -1;
  if (c.green) return {2 * c(dy, dx), c(2 * dy, dx) + c(0, dx), c(dy, 0) + c(dy, 2 * dx)};
  const int green = (c(dy - 1, dx) + c(dy + 1, dx) + c(dy, dx - 1) + c(dy, dx + 1)) >> 1;
  return {c(2 * dy, 2 * dx) + self, green, 2 * c(dy, dx)};
}

struct Gradients {
  static __device__ void at(const Sample& s, int y, int x, int height, int width, int* rgb) {
    if (height < 8 || width < 8) return Bilinear::at(s, y, x, height, width, rgb);
    const Window c = window_at(s, y, x, height, width);
    int g[8];
    changes(c, g);
    int least = g[0], most = g[0];
#pragma unroll
    for (int k = 1; k < 8; k++) {
      least = min(least, g[k]);
      most = max(most, g[k]);
    }
    const int bound = least + max(most / 2, 1);
    Means sum = {0, 0, 0};
    int count = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) {
      if (g[k] >= bound) continue;
      const Means m = means(c, k);
      sum.own += m.own;
      sum.second += m.second;
      sum.third += m.third;
      count++;
    }
    const int self = c(0, 0);
    const float half = 0.5f / float(count);
    const int second = min(max(self + __float2int_rn(float(sum.second - sum.own) * half), 0), 255);
    const int third = min(max(self + __float2int_rn(float(sum.third - sum.own) * half), 0), 255);
    sort_colours(c.across, c.green ? second : self, c.green ? self : second, third, rgb);
  }
};

PER_ITEM(bilinear) { colour_pixel<Bilinear>(s, i); }

PER_ITEM(edge_aware) { colour_pixel<EdgeAware>(s, i); }

PER_ITEM(gray) { colour_pixel<Gray>(s, i); }

PER_ITEM(gradients) { colour_pixel<Gradients>(s, i); }
