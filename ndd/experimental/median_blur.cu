// The median of a window about each pixel; beyond the border lies the nearest pixel. A thread makes STRIP pixels below
// each other. 3x3 and 5x5 are sorting networks in registers; other windows are counted through, once for each bit.

inline void exchange(IN* a, IN* b) {
  const IN x = *a, y = *b;
  *a = y < x ? y : x;
  *b = y < x ? x : y;
}

inline int clamped(int i, int n) { return i < 0 ? 0 : i < n ? i : n - 1; }

// The channel of one image plane that a thread works on.
struct Line {
  const IN* first;
  int height, width;
  long long step, line;
  inline IN at(int y, int x) const { return first[clamped(y, height) * line + clamped(x, width) * step]; }
};

inline void row_of_three(const Line& from, int y, int x, IN* v) {
  v[0] = from.at(y, x - 1), v[1] = from.at(y, x), v[2] = from.at(y, x + 1);
  exchange(v, v + 1), exchange(v + 1, v + 2), exchange(v, v + 1);
}

// Of three sorted rows: the median of the largest smallest, the middle middle and the smallest largest number.
inline IN median_of_rows(const IN* a, const IN* b, const IN* c) {
  IN low = a[0] < b[0] ? b[0] : a[0], high = a[2] < b[2] ? a[2] : b[2];
  low = low < c[0] ? c[0] : low;
  high = high < c[2] ? high : c[2];
  IN v[3] = {a[1], b[1], c[1]};
  exchange(v, v + 1), exchange(v + 1, v + 2), exchange(v, v + 1);
  IN w[3] = {low, v[1], high};
  exchange(w, w + 1), exchange(w + 1, w + 2), exchange(w, w + 1);
  return w[1];
}

// Smallest to the front, largest to the back: neither is the median of numbers of which at least half are here.
template <int N>
inline void extremes_out(IN* v) {
#pragma unroll
  for (int i = 0; i < N / 2; i++) exchange(v + i, v + N - 1 - i);
#pragma unroll
  for (int i = 1; i < (N + 1) / 2; i++) exchange(v, v + i);
#pragma unroll
  for (int i = N / 2; i < N - 1; i++) exchange(v + i, v + N - 1);
}

template <int N>
inline void next_of_five(const Line& from, int y, int x, IN* v) {
  extremes_out<N>(v);
  if constexpr (N > 3) {
    constexpr int number = 28 - N;
    v[0] = from.at(y + number / 5 - 2, x + number % 5 - 2);
    next_of_five<N - 1>(from, y, x, v);
  }
}

inline IN median_of_five(const Line& from, int y, int x) {
  IN v[14];
#pragma unroll
  for (int i = 0; i < 14; i++) v[i] = from.at(y + i / 5 - 2, x + i % 5 - 2);
  next_of_five<14>(from, y, x, v);
  return v[1];
}

// Numbers as unsigned integers of the same order.
inline unsigned int key_of(IN value) {
  if constexpr (limits<IN>::is_float) {
    const unsigned int bits = float_bits(value);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  } else {
    return value;
  }
}

inline IN of_key(unsigned int key) {
  if constexpr (limits<IN>::is_float)
    return float_from_bits(key & 0x80000000u ? key & 0x7fffffffu : ~key);
  else
    return static_cast<IN>(key);
}

inline IN median_of_window(const Line& from, int y, int x, int rows, int columns) {
  const int below = rows * columns / 2;
  unsigned int found = 0;
  for (int bit = 8 * (int)sizeof(IN) - 1; bit >= 0; bit--) {
    const unsigned int highest = found | ((1u << bit) - 1);
    int count = 0;
    for (int j = -(rows / 2); j <= rows / 2; j++)
      for (int i = -(columns / 2); i <= columns / 2; i++) count += key_of(from.at(y + j, x + i)) <= highest;
    if (count <= below) found |= 1u << bit;
  }
  return of_key(found);
}

inline void strip_of_threes(const Line& from, int y, int x, int made, IN* target) {
  IN rows[STRIP + 2][3];
#pragma unroll
  for (int r = 0; r < STRIP + 2; r++) row_of_three(from, y + r - 1, x, rows[r]);
#pragma unroll
  for (int q = 0; q < STRIP; q++)
    if (q < made) target[q * from.line] = median_of_rows(rows[q], rows[q + 1], rows[q + 2]);
}

PER_ITEM(median_blur) {
  const long long channels = s.view[3];
  const int height = (int)s.view[1], width = (int)s.view[2], rows = (int)s.window[0], columns = (int)s.window[1];
  const long long line = width * channels, strips = (height + STRIP - 1) / STRIP;
  const long long strip = i / line, e = i - strip * line, plane = strip / strips;
  const int y = (int)(strip - plane * strips) * STRIP, x = (int)(e / channels);
  const Line from = {s.in0 + plane * height * line + (e - x * channels), height, width, channels, line};
  const int made = height - y < STRIP ? height - y : STRIP;
  IN* target = s.out0 + (plane * height + y) * line + e;
  if (rows == 3 && columns == 3) {
    strip_of_threes(from, y, x, made, target);
    return;
  }
  for (int q = 0; q < made; q++)
    target[q * line] = rows == 5 && columns == 5 ? median_of_five(from, y + q, x)
                                                 : median_of_window(from, y + q, x, rows, columns);
}
