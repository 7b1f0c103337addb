"""torchvision's sharpness: moves pixels away from the mean of their neighbourhood."""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel


@kernel
def sharpen(image, out, rest):
    """Moves each byte of [H, W, C] by the share `rest` towards the mean of 3 x 3, in which the centre counts five times. The
    border does not change."""
    height, width, channels = image.shape
    for y in range(height):
        if y == 0 or y == height - 1:
            for x in range(width):
                for c in range(channels):
                    out[y, x, c] = image[y, x, c]
            continue
        line, step = width * channels, channels
        above, middle, below = image[y - 1].reshape(line), image[y].reshape(line), image[y + 1].reshape(line)
        row = out[y].reshape(line)
        for i in range(min(step, line)):
            row[i], row[line - 1 - i] = middle[i], middle[line - 1 - i]
        for i in range(step, line - step):
            total = np.int32(above[i - step]) + np.int32(above[i]) + np.int32(above[i + step])
            total += np.int32(below[i - step]) + np.int32(below[i]) + np.int32(below[i + step])
            total += np.int32(middle[i - step]) + np.int32(5) * np.int32(middle[i]) + np.int32(middle[i + step])
            away = np.float32((2 * total + 13) // 26 - np.int32(middle[i]))
            value = np.float32(np.float64(rest) * np.float64(away) + np.float64(middle[i]))
            row[i] = np.uint8(min(max(value, np.float32(0)), np.float32(255)))
