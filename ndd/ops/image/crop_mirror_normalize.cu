// One thread GROUP pixels of the output, all their channels. The rows of `geometry` are about the axes F, D, H, W, C:
// size of the output, start of the window, extent of the input, steps in the input, steps in the output (as in
// normalize_lines.py).
#include "pack.cuh"
#include "scalar.cuh"

struct Places {  // where GROUP neighbours in a row come from and go to
  long long from, to;
  int first, last;  // those between come from inside the input
  int made;
};

inline OUT normalized(const Sample& s, const Shared& shared, long long from, int c) {
  return convert<OUT>(((float)s.in0[from] - s.mean[c]) * s.gain[c] + shared.shift);
}

// Pixels whose ALL channels lie next to each other in the output: GROUP of them are ALL packs of GROUP elements.
template <int OWN, int ALL>
inline void interleaved(const Sample& s, const Shared& shared, const Places& p) {
  const long long channel_in = s.geometry[3][4], step_in = s.mirror ? -s.geometry[3][3] : s.geometry[3][3];
  Pack<OUT, GROUP> packs[ALL];
#pragma unroll
  for (int k = 0; k < GROUP; k++)
#pragma unroll
    for (int c = 0; c < ALL; c++)
      packs[(k * ALL + c) / GROUP].element[(k * ALL + c) % GROUP] =
          c < OWN && k >= p.first && k < p.last ? normalized(s, shared, p.from + k * step_in + c * channel_in, c)
                                                : convert<OUT>(shared.fill[c]);
  const int made = p.made * ALL;
#pragma unroll
  for (int j = 0; j < ALL; j++)
    if (made > j * GROUP) store(s.out0 + p.to + j * GROUP, packs[j], min(GROUP, made - j * GROUP));
}

template <int CHANNELS>
inline void pixels(const Sample& s, const Shared& shared, const Places& p) {
  const int own = CHANNELS ? CHANNELS : (int)s.geometry[2][4], all = (int)s.geometry[0][4];
  const long long channel_in = s.geometry[3][4], channel_out = s.geometry[4][4];
  const long long step_in = s.mirror ? -s.geometry[3][3] : s.geometry[3][3], step_out = s.geometry[4][3];
  if (step_out == 1) {
    for (int c = 0; c < all; c++) {
      Pack<OUT, GROUP> pack;
#pragma unroll
      for (int k = 0; k < GROUP; k++)
        pack.element[k] = c < own && k >= p.first && k < p.last
                              ? normalized(s, shared, p.from + k * step_in + c * channel_in, c)
                              : convert<OUT>(shared.fill[c]);
      store(s.out0 + p.to + c * channel_out, pack, p.made);
    }
    return;
  }
  if (channel_out == 1 && step_out == all) {
    if (CHANNELS == 3 && all == 3) return interleaved<3, 3>(s, shared, p);
    if (CHANNELS == 3 && all == 4) return interleaved<3, 4>(s, shared, p);
    if (CHANNELS == 0 && own == 4) return interleaved<4, 4>(s, shared, p);
  }
  for (int k = 0; k < p.made; k++)
    for (int c = 0; c < all; c++)
      s.out0[p.to + k * step_out + c * channel_out] =
          c < own && k >= p.first && k < p.last ? normalized(s, shared, p.from + k * step_in + c * channel_in, c)
                                                : convert<OUT>(shared.fill[c]);
}

PER_ITEM(crop_mirror_normalize) {
  const int width = (int)s.geometry[0][3];
  const unsigned int in_row = (width + GROUP - 1) / GROUP;  // each row is made of whole groups
  unsigned long long rest = quotient(i, in_row);
  unsigned int at[4];
  at[3] = GROUP * (unsigned int)(i - rest * in_row);
#pragma unroll
  for (int axis = 2; axis > 0; axis--) {
    const unsigned int size = (unsigned int)s.geometry[0][axis];
    const unsigned long long above = rest < size ? 0 : quotient(rest, size);
    at[axis] = (unsigned int)(rest - above * size);
    rest = above;
  }
  at[0] = (unsigned int)rest;
  Places p = {0, 0, 0, 0, min(GROUP, width - (int)at[3])};
  bool inside = true;
#pragma unroll
  for (int axis = 0; axis < 3; axis++) {
    const long long source = at[axis] + s.geometry[1][axis];
    inside = inside && source >= 0 && source < s.geometry[2][axis];
    p.from += source * s.geometry[3][axis];
    p.to += at[axis] * s.geometry[4][axis];
  }
  const long long source = (s.mirror ? width - 1 - (int)at[3] : (int)at[3]) + s.geometry[1][3];
  p.from += source * s.geometry[3][3];
  p.to += at[3] * s.geometry[4][3];
  if (inside) {
    // The neighbours k lie at source + k, or source - k in a mirror.
    const long long extent = s.geometry[2][3];
    const long long first = s.mirror ? source - extent + 1 : -source, last = s.mirror ? source + 1 : extent - source;
    p.first = (int)(first < 0 ? 0 : first > GROUP ? GROUP : first);
    p.last = (int)(last < 0 ? 0 : last > p.made ? p.made : last);
  }
  if (s.geometry[2][4] == 3) pixels<3>(s, shared, p);
  else if (s.geometry[2][4] == 1) pixels<1>(s, shared, p);
  else pixels<0>(s, shared, p);
}
