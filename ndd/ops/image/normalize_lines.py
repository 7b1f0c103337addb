"""Normalises images on the CPU, line by line, for any order of axes in and out, with crop, mirror and padding.

The arrays are flat. The rows of `geometry` have a number for each of the axes F, D, H, W, C: size of the output, start of its
window in the input, extent of the input, steps in the input, steps in the output. Outside the input the output is `fill`, by
channel, and so are channels that the input lacks. `limits` are the lowest and highest integer of an integer output, else None;
`half` is True if the output holds float16 bits, False if bfloat16 bits, else None. numba compiles a kernel for each of these.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._cpu.conversion import element
from ndd._tensor.convert import convert_array


@kernel
def normalize(image, out, geometry, mirror, mean, gain, shift, fill, limits, half, by_pixel):
    """Normalises an image.

    Args:
        geometry: `[5, 5]`, see above. `mean` and `gain` are `[C]`.
        by_pixel: True if the channels of a pixel are adjacent in the input and in the output, else None.
    """
    if by_pixel is None:
        normalize_planes(image, out, geometry, mirror, mean, gain, shift, fill, limits, half)
    else:
        normalize_pixels(image, out, geometry, mirror, mean, gain, shift, fill, limits, half)


@kernel
def normalize_planes(source, out, geometry, mirror, mean, gain, shift, fill, limits, half):
    """Works channel by channel, for every layout; it is fast if a line of the output is contiguous."""
    size, start, extent, step_in, step_out = geometry[0], geometry[1], geometry[2], geometry[3], geometry[4]
    width, own = size[3], extent[4]
    first, last = max(0, -start[3]), min(width, extent[3] - start[3])
    n = max(0, last - first)
    left = width - last if mirror else first
    scratch = empty(n if mirror else 0, out.dtype)
    for f in range(size[0]):
        for d in range(size[1]):
            for h in range(size[2]):
                at_f, at_d, at_h = f + start[0], d + start[1], h + start[2]
                inside = n > 0 and 0 <= at_f < extent[0] and 0 <= at_d < extent[1] and 0 <= at_h < extent[2]
                begin = at_f * step_in[0] + at_d * step_in[1] + at_h * step_in[2] + (start[3] + first) * step_in[3]
                target = f * step_out[0] + d * step_out[1] + h * step_out[2]
                for c in range(size[4]):
                    spot, step = target + c * step_out[4], step_out[3]
                    count = n if inside and c < own else 0
                    _fill(out, spot, step, fill[c], 0, left if count else width)
                    if count:
                        _fill(out, spot, step, fill[c], left + n, width)
                        at = begin + c * step_in[4]
                        row = source[at : at + (n - 1) * step_in[3] + 1]
                        line = out[spot + left * step : spot + (left + n - 1) * step + 1]
                        if not mirror:
                            _channel(row, step_in[3], line, step, n, mean[c], gain[c], shift, limits, half)
                            continue
                        _channel(row, step_in[3], scratch, 1, n, mean[c], gain[c], shift, limits, half)
                        if step == 1:
                            _reversed(scratch, line)
                        else:
                            for x in range(n):
                                line[x * step] = scratch[n - 1 - x]


@kernel
def _fill(out, start, step, value, first, last):
    if step == 1:
        out[start + first : start + last] = value
    else:
        for x in range(first, last):
            out[start + x * step] = value


@kernel
def _channel(row, step, out, step_out, n, mean, gain, shift, limits, half):
    """Normalises one channel of a row. The compiler vectorises loops with constant steps."""
    if step_out != 1 or step not in (1, 3):
        for x in range(n):
            out[x * step_out] = element((np.float32(row[x * step]) - mean) * gain + shift, limits, half)
    elif step == 3:
        for x in range(n):
            out[x] = element((np.float32(row[3 * x]) - mean) * gain + shift, limits, half)
    else:
        for x in range(n):
            out[x] = element((np.float32(row[x]) - mean) * gain + shift, limits, half)


@kernel
def _reversed(line, out):
    n = np.uint64(out.size)  # unsigned, so that numba need not check for negative indices
    for x in range(n):
        out[x] = line[n - np.uint64(1) - x]


@kernel
def normalize_pixels(source, out, geometry, mirror, mean, gain, shift, fill, limits, half):
    """Works on all channels at once, if they are adjacent in the input and in the output."""
    size, start, extent, step_in, step_out = geometry[0], geometry[1], geometry[2], geometry[3], geometry[4]
    width, channels, own = size[3], size[4], extent[4]
    first, last = max(0, -start[3]), min(width, extent[3] - start[3])
    n = max(0, last - first)
    left = width - last if mirror else first
    means, gains = empty(n * own, np.float32), empty(n * own, np.float32)
    for x in range(n):
        for c in range(own):
            means[x * own + c], gains[x * own + c] = mean[c], gain[c]
    moved = mirror or own != channels
    scratch = empty(n * own if moved else 0, out.dtype)
    for f in range(size[0]):
        for d in range(size[1]):
            for h in range(size[2]):
                at_f, at_d, at_h = f + start[0], d + start[1], h + start[2]
                inside = n > 0 and 0 <= at_f < extent[0] and 0 <= at_d < extent[1] and 0 <= at_h < extent[2]
                begin = at_f * step_in[0] + at_d * step_in[1] + at_h * step_in[2] + (start[3] + first) * own
                target = f * step_out[0] + d * step_out[1] + h * step_out[2]
                line = out[target : target + width * channels]
                _fill_pixels(line, fill, channels, 0, left if inside else width)
                if inside:
                    _fill_pixels(line, fill, channels, left + n, width)
                    place = line[left * channels : (left + n) * channels]
                    values = scratch if moved else place
                    row = source[begin : begin + n * own]
                    for i in range(values.size):
                        values[i] = element((np.float32(row[i]) - means[i]) * gains[i] + shift, limits, half)
                    if moved:
                        _move_pixels(scratch, place, n, own, channels, mirror, fill)


@kernel
def _fill_pixels(line, fill, channels, first, last):
    for x in range(first, last):
        for c in range(channels):
            line[x * channels + c] = fill[c]


@kernel
def _move_pixels(values, out, n, own, channels, mirror, fill):
    if own == 3 and channels == 3:
        count, one, two, three = np.uint64(n), np.uint64(1), np.uint64(2), np.uint64(3)
        for x in range(count):
            s, t = three * (count - one - x), three * x
            out[t], out[t + one], out[t + two] = values[s], values[s + one], values[s + two]
    else:
        for x in range(n):
            s = own * (n - 1 - x if mirror else x)
            for c in range(channels):
                out[x * channels + c] = values[s + c] if c < own else fill[c]


normalize.urgency = 0.9  # before threads join loops: NumPy takes 0.3 s for 64 photographs


@normalize.fallback
def _(image, out, geometry, mirror, mean, gain, shift, fill, limits, half, by_pixel):
    size, start, extent, step_in, step_out = geometry
    target = as_strided(out, size, step_out * out.itemsize)
    target[...] = fill[: size[4]]
    start = np.array([*start[:4], 0])
    first, last = np.maximum(0, -start), np.minimum(size, extent - start)
    if (first >= last).any():
        return
    seen = as_strided(image[((first + start) * step_in).sum() :], last - first, step_in * image.itemsize)
    own = last[4]
    values = (seen.astype(np.float32) - mean[:own]) * gain[:own] + shift
    if half is not None:
        values = convert_array(values, "f32", "f16" if half else "bfloat16").view(np.uint16)
    elif limits is not None:
        values = values.clip(*limits)
        values = np.trunc(values + np.copysign(np.float32(0.49999997), values))
    target = target[:, :, :, ::-1] if mirror else target
    target[tuple([slice(*ends) for ends in zip(first, last, strict=True)])] = values
