"""Histograms of each channel's bytes, and lookup tables for each channel.

Plain loops compile in half the time of array expressions.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel


@kernel
def count_plane(x, runs):
    """Counts bytes, 8 at a time, in four sets of counters, so that a repeated value need not wait for its own counter."""
    a, b, c, d = runs[0], runs[1], runs[2], runs[3]
    head = min(-x.ctypes.data % 8, x.size)
    words = x[head : head + (x.size - head) // 8 * 8].view(np.uint64)
    byte = np.uint64(255)
    for i in range(words.size):
        word = words[i]
        a[word & byte] += 1
        b[word >> np.uint64(8) & byte] += 1
        c[word >> np.uint64(16) & byte] += 1
        d[word >> np.uint64(24) & byte] += 1
        a[word >> np.uint64(32) & byte] += 1
        b[word >> np.uint64(40) & byte] += 1
        c[word >> np.uint64(48) & byte] += 1
        d[word >> np.uint64(56)] += 1
    for i in range(head):
        a[x[i]] += 1
    for i in range(head + 8 * words.size, x.size):
        a[x[i]] += 1
    for v in range(256):
        a[v] += b[v] + c[v] + d[v]


@kernel
def count_pixels(x, runs):
    """Two sets of counters for each channel."""
    pixels, channels = x.shape
    start = 0
    if channels == 3:
        for i in range(0, pixels - 1, 2):
            for c in range(3):
                runs[c, x[i, c]] += 1
                runs[3 + c, x[i + 1, c]] += 1
        start = pixels // 2 * 2
    for i in range(start, pixels):
        for c in range(channels):
            runs[c, x[i, c]] += 1
    for c in range(channels):
        for v in range(256):
            runs[c, v] += runs[channels + c, v]


@kernel
def look_up(x, y, tables):
    pixels, channels = x.shape
    if channels == 3:
        for i in range(pixels):
            for c in range(3):
                y[i, c] = tables[c, x[i, c]]
    else:
        for c in range(channels):
            table = tables[c]
            for i in range(pixels):
                y[i, c] = table[x[i, c]]


@kernel
def change_tones(x, out, threshold, shift, flip, mask):
    """`(x + shift if x < threshold else x ^ flip) & mask` of every byte x; sums saturate."""
    threshold, shift, flip, mask = np.int16(threshold), np.int16(shift), np.uint8(flip), np.uint8(mask)
    for i in range(x.size):
        v = np.int16(x[i])
        out[i] = (np.uint8(min(v + shift, 255)) if v < threshold else x[i] ^ flip) & mask


@kernel
def _ends_of(counts):
    """The darkest and the brightest value that occurs; 0 and 0 if there are not two."""
    low, high = 255, 0
    for v in range(256):
        if counts[v]:
            low, high = min(low, v), max(high, v)
    return (low, high) if high > low else (0, 0)


@kernel
def stretch_channels(x, out, runs, tables):
    """Stretches each channel of an image [pixels, channels]: the darkest value becomes 0, the brightest 255."""
    count_pixels(x, runs)
    for c in range(x.shape[1]):
        low, high = _ends_of(runs[c])
        scale = np.float32(255) / np.float32(high - low) if high > low else np.float32(1)
        for v in range(256):
            tables[c, v] = to_byte(np.float32(v - low) * scale)
    look_up(x, out, tables)


@kernel
def stretch_down(x, out, runs, tables):
    """Does the same as torchvision: rounded down, with the reciprocal of a scale."""
    count_pixels(x, runs)
    for c in range(x.shape[1]):
        low, high = _ends_of(runs[c])
        scale = np.float32(high - low) * np.float32(1 / 255) if high > low else np.float32(1)
        for v in range(256):
            tables[c, v] = np.uint8(min(max(np.float32(v - low) / scale, np.float32(0)), np.float32(255)))
    look_up(x, out, tables)


@kernel
def scale_contrast(x, out, runs, tables, weights, factor):
    """Multiplies the distances of an image [pixels, channels] from its mean grey by `factor`."""
    count_pixels(x, runs)
    center = np.float32(0)
    for c in range(weights.size):
        channel = c if x.shape[1] > 1 else 0
        total = np.int64(0)
        for v in range(256):
            total += np.int64(v) * runs[channel, v]
        center += np.float32(np.float64(total) / x.shape[0]) * weights[c]
    for v in range(256):
        value = to_byte(center + (np.float32(v) - center) * factor)
        for c in range(x.shape[1]):
            tables[c, v] = value
    look_up(x, out, tables)


@kernel(inline="always")
def to_byte(value):
    """Converts a float32 to uint8: halves are rounded away from zero, and saturate."""
    return np.uint8(min(max(np.float64(value), 0.0), 255.0) + 0.5)
