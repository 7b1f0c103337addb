"""Resamples an image with the nearest pixel, on one thread."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import empty, overlapping
from ndd._compiled.jit import kernel
from ndd._cpu.filter_taps import NN, NN_FUSED, cut_taps, exact_taps, fused_nearest_taps, nearest_taps, reach


@kernel
def nearest_plane(height, width, rows, columns, start, end):
    """The source row of each row of the result, and the source column of each column (`nearest_taps`)."""
    top, bottom = reach(height, start[0], end[0], NN, np.float32(0))
    left, right = reach(width, start[1], end[1], NN, np.float32(0))
    down, across = 4, 4.4  # as in `resample._least_cost`
    down_first = rows * (right - left) * down + rows * columns * across < (
        (bottom - top) * columns * across + rows * columns * down
    )
    y = nearest_taps(rows, height, start[0], end[0], 0 if down_first else top, 1)  # not True, a type of its own
    return y, nearest_taps(columns, width, start[1], end[1], left if down_first else 0, 0)


nearest_plane.fallback()


@kernel
def pick_planes(image, out, channels, y_first, x_first):
    """Copies the nearest pixels along both axes."""
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    offsets = empty(len(x_first), np.uint32)
    for x in range(len(x_first)):
        offsets[x] = x_first[x] * channels
    for p in range(len(image)):
        for y in range(len(y_first)):
            source, target = image[p, y_first[y]], out[p, y]
            if channels == 3:
                for x in range(len(offsets)):
                    a, b = np.uint64(offsets[x]), np.uint64(x) * three
                    red, green, blue = source[a], source[a + one], source[a + two]
                    target[b] = red
                    target[b + one] = green
                    target[b + two] = blue
            else:
                b = np.uint64(0)
                for x in range(len(offsets)):
                    for c in range(channels):
                        target[b] = source[np.uint64(offsets[x]) + np.uint64(c)]
                        b += one


@pick_planes.fallback
def _pick_by_numpy(image, out, channels, y_first, x_first):
    pixels = image.reshape(*image.shape[:2], -1, channels)
    out[...] = pixels[:, y_first][:, :, x_first].reshape(out.shape)


@kernel
def pick_rgb(image, out, y_first, x_first):
    """The same for RGB pixels in bytes, each moved as a word. Both images have at least 9 bytes."""
    flat, target = image.reshape(image.size), out.reshape(out.size)
    words, out_words = overlapping(flat, np.uint32), overlapping(target, np.uint32)
    count, step, last = len(x_first), image.shape[2], np.uint64(words.size - 1)
    offsets, three = empty(count, np.uint64), np.uint64(3)
    for x in range(count):
        offsets[x] = 3 * x_first[x]
    to = np.uint64(0)
    for p in range(len(image)):
        for y in range(len(y_first)):
            begin = np.uint64((p * image.shape[1] + y_first[y]) * step)
            for x in range(count - 1):  # the fourth byte belongs to the next pixel, which is written later
                at = begin + offsets[x]
                out_words[to] = words[at] if at <= last else words[last] >> np.uint32(8)
                to += three
            at = begin + offsets[count - 1]
            for k in range(np.uint64(3)):
                target[to + k] = flat[at + k]
            to += three


@pick_rgb.fallback
def _(image, out, y_first, x_first):
    _pick_by_numpy(image, out, 3, y_first, x_first)


@kernel
def pick_image(image, out, channels, start, end, kind, whole, skip, rgb):
    """Resamples each plane of `[planes, H, W * channels]` with the nearest pixel. `rgb` is None unless `pick_rgb` applies."""
    height, width = image.shape[1], image.shape[2] // channels
    rows, columns = out.shape[1], out.shape[2] // channels
    if kind[0] == NN_FUSED:
        y_first = fused_nearest_taps(rows, height, start[0], end[0])
        x_first = fused_nearest_taps(columns, width, start[1], end[1])
    elif kind[0] > NN_FUSED:
        y = exact_taps(whole[0], height, start[0], end[0], kind[0], np.float32(0.5))
        x = exact_taps(whole[1], width, start[1], end[1], kind[1], np.float32(0.5))
        y_first, x_first = cut_taps(y[0], y[1], skip[0], rows)[0], cut_taps(x[0], x[1], skip[1], columns)[0]
    else:
        y_first, x_first = nearest_plane(height, width, rows, columns, start, end)
    if rgb is None:
        pick_planes(image, out, channels, y_first, x_first)
    else:
        pick_rgb(image, out, y_first, x_first)


pick_image.fallback()
