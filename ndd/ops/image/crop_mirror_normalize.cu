// One thread a pixel of the output, all its channels. The rows of `geometry` are about the axes F, D, H, W, C: size of
// the output, start of the window, extent of the input, steps in the input, steps in the output (as in _cpu/lines.py).
#include "scalar.cuh"

template <int CHANNELS>
inline void pixel(const Sample& s, const Shared& shared, long long from, long long to, bool inside) {
  const int channels = CHANNELS ? CHANNELS : (int)s.geometry[2][4];
  const long long step_in = s.geometry[3][4], step_out = s.geometry[4][4];
#pragma unroll
  for (int c = 0; c < channels; c++)
    s.out0[to + c * step_out] =
        inside ? convert<OUT>(((float)s.in0[from + c * step_in] - s.mean[c]) * s.gain[c] + shared.shift)
               : convert<OUT>(shared.fill[c]);
  for (int c = channels; c < (int)s.geometry[0][4]; c++) s.out0[to + c * step_out] = convert<OUT>(shared.fill[c]);
}

extern "C" __global__ void crop_mirror_normalize(const Sample* samples, int count, Shared shared) {
  for (int n = blockIdx.y; n < count; n += gridDim.y) {
    const Sample& s = samples[n];
    const long long step = (long long)gridDim.x * blockDim.x;
    const unsigned int size[4] = {(unsigned)s.geometry[0][0], (unsigned)s.geometry[0][1], (unsigned)s.geometry[0][2],
                                  (unsigned)s.geometry[0][3]};
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < s.pixels; i += step) {
      unsigned long long rest = i;
      unsigned int at[4];
#pragma unroll
      for (int axis = 3; axis > 0; axis--) {
        if (rest < size[axis]) {
          at[axis] = (unsigned)rest;
          rest = 0;
        } else if (rest <= 0xffffffffull) {
          const unsigned int quotient = (unsigned)rest / size[axis];
          at[axis] = (unsigned)rest - quotient * size[axis];
          rest = quotient;
        } else {
          at[axis] = (unsigned)(rest % size[axis]);
          rest /= size[axis];
        }
      }
      at[0] = (unsigned)rest;
      long long from = 0, to = 0;
      bool inside = true;
#pragma unroll
      for (int axis = 0; axis < 4; axis++) {
        const unsigned int place = axis == 3 && s.mirror ? size[3] - 1 - at[3] : at[axis];
        const long long source = place + s.geometry[1][axis];
        inside = inside && source >= 0 && source < s.geometry[2][axis];
        from += source * s.geometry[3][axis];
        to += at[axis] * s.geometry[4][axis];
      }
      if (s.geometry[2][4] == 3) pixel<3>(s, shared, from, to, inside);
      else if (s.geometry[2][4] == 1) pixel<1>(s, shared, from, to, inside);
      else pixel<0>(s, shared, from, to, inside);
    }
  }
}
