// Which pixel stands for one beyond the border of an image; the numbers of the modes are those of ndd/_cpu/sampling.py.
#ifndef NDD_BORDER_CUH
#define NDD_BORDER_CUH

// The pixel that stands for pixel `i` of a line of `n`; -1: none, the border is constant.
inline int border_index(int i, int n, int border) {
  if (i >= 0 && i < n) return i;
  if (border == 0 || n <= 0) return -1;
  if (border == 1) return i < 0 ? 0 : n - 1;
  if (border == 3 && n == 1) return 0;
  const int period = border == 4 ? n : border == 2 ? 2 * n : 2 * n - 2;
  i %= period;
  if (i < 0) i += period;
  if (i < n) return i;
  return border == 2 ? 2 * n - 1 - i : 2 * n - 2 - i;
}

#endif
