"""Converts sRGB to CIE L*a*b* and back in 8 bits, as `cv2.cvtColor` does: with integers and tables, equal on every machine.

L is 0 to 255 for 0 to 100; a and b have 128 added. To Lab: `linear` removes the gamma (8 * 255 is white), `to_xyz`
(12 fraction bits, the white point divided out) gives X, Y and Z, and `root` (15 bits) their cube roots. Back: `lightness`
holds for every L the cube root of Y and, times 2^15, Y itself (14 bits each); `to_rgb` (12 bits) and `gamma` end at a byte.
On the CPU, `xy` and `z` hold what each byte of red, green and blue adds to X, Y and Z: these need no multiplications.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from ndd._compiled.intrinsics import each, empty
from ndd._compiled.jit import kernel

_ONE = 1 << 14
_CHUNK = 1024  # pixels at a time, so that the intermediate results of two loops stay in the cache
_WHITE = np.array([0.950456, 1.0, 1.088754])
_XYZ = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
_RGB = np.array([[3.240479, -1.53715, -0.498535], [-0.969256, 1.875991, 0.041556], [0.055648, -0.204043, 1.057311]])


class LabTables(NamedTuple):
    """int32 arrays, flat; see above. `xy` is uint64, Y in the upper half, and so is `z`."""

    linear: np.ndarray
    root: np.ndarray
    lightness: np.ndarray
    gamma: np.ndarray
    to_xyz: np.ndarray
    to_rgb: np.ndarray
    xy: np.ndarray
    z: np.ndarray


@functools.cache
def lab_tables() -> LabTables:
    """Made at the first use, in less than a millisecond."""
    c = np.arange(256) / 255
    linear = 255 * 8 * np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    x = np.arange(3072) / (255 * 8)
    root = np.rint(32768 * np.where(x < 0.008856, x * 7.787 + 16 / 116, np.cbrt(x)))
    # OpenCV's roots are 32-bit floats: these two, close to a half, are rounded to its other side.
    root[49] -= 1
    root[628] += 1
    level = np.arange(256) * 100 / 255
    root_of_y = np.where(level <= 8, 7.787 * level / 903.3 + 16 / 116, (level + 16) / 116)
    y = np.where(level <= 8, level / 903.3, root_of_y**3)
    lightness = np.rint(_ONE * root_of_y) + 32768 * np.rint(_ONE * y)
    k = np.arange(4096) / 4096
    gamma = 255 * np.where(k <= 0.0031308, k * 12.92, 1.055 * k ** (1 / 2.4) - 0.055)
    tables = [linear, root, lightness, gamma, 4096 * _XYZ / _WHITE[:, None], 4096 * _RGB * _WHITE]
    flat: list[np.ndarray] = [np.rint(t).astype(np.int32).reshape(-1) for t in tables]
    parts = flat[4].reshape(3, 3, 1).astype(np.uint64) * flat[0].astype(np.uint64)
    parts[:, 0] += np.uint64(2048)  # of 12 bits: sums are rounded
    flat += [(parts[0] + (parts[1] << np.uint64(32))).reshape(-1), parts[2].reshape(-1)]
    return LabTables(*flat)


# A slice of a row is contiguous, while a slice of several rows is not, so rows are separate. numba extends sums and products to
# 64 bits. `np.int32` of them lets the processor work on twice as many numbers at once, with cheap products.


@kernel
def _look_up(table, at, values, size):
    """A separate loop, because single lookups are faster than the processor's gather instruction."""
    for i in each(size):
        values[i] = table[np.uint32(at[i])]  # unsigned: no check for indices from the end


@kernel
def _look_up_roots(pixels, xy, z, root, roots):
    """The cube roots of X, Y and Z of each pixel."""
    x_root, y_root, z_root = roots[0], roots[1], roots[2]
    half, low, whole = np.uint64(0xFFFFFFFF), np.uint64(12), np.uint64(44)
    second, third = np.uint64(256), np.uint64(512)
    for i in each(pixels.shape[0]):
        red, green, blue = np.uint64(pixels[i, 0]), np.uint64(pixels[i, 1]), np.uint64(pixels[i, 2])
        both = xy[red] + xy[green + second] + xy[blue + third]
        x_root[i] = root[(both & half) >> low]
        y_root[i] = root[both >> whole]
        z_root[i] = root[(z[red] + z[green + second] + z[blue + third]) >> low]


@kernel
def _xyz_to_levels(planes, levels, m, size):
    """The product of matrix `m` and the planes, without 14 fraction bits, clipped to 0..4095."""
    a, b, c = planes[0], planes[1], planes[2]
    for k in range(3):
        level, p, q, r = levels[k], m[3 * k], m[3 * k + 1], m[3 * k + 2]
        for i in each(size):
            value = np.int32(p * a[i] + q * b[i] + r * c[i] + np.int32(1 << 13)) >> np.int32(14)
            level[i] = min(max(np.int32(value), np.int32(0)), np.int32(4095))


@kernel
def _roots_to_lab(roots, lightness, across, along):
    x, y, z = roots[0], roots[1], roots[2]
    for i in each(lightness.size):
        # 116 * 255 / 100 with -16 * 255 / 100, and 128 twice; 15 fraction bits, a half of them for rounding
        lightness[i] = np.int32(np.int32(296) * y[i] - np.int32(1336934 - 16384)) >> np.int32(15)
        across[i] = np.int32(np.int32(500) * (x[i] - y[i]) + np.int32(4194304 + 16384)) >> np.int32(15)
        along[i] = np.int32(np.int32(200) * (y[i] - z[i]) + np.int32(4194304 + 16384)) >> np.int32(15)


@kernel
def rgb_to_lab(image, lab, tables):
    """Pixels `[n, 3]` to planes `[3, n]`."""
    roots = empty((3, _CHUNK), np.int32)
    for first in range(0, image.shape[0], _CHUNK):
        end = min(first + _CHUNK, image.shape[0])
        _look_up_roots(image[first:end], tables.xy, tables.z, tables.root, roots)
        _roots_to_lab(roots, lab[0][first:end], lab[1][first:end], lab[2][first:end])


rgb_to_lab.fallback()


@kernel
def _cube(root):
    """The cube of a number of 14 fraction bits; near 0 a straight line."""
    line = np.int32(
        np.int32(np.float32(root) * np.float32(0.12841862)) - np.int32(290)
    )  # 108 / 841, exact where it ends at 0
    square = np.int32(np.int32(root * root) >> np.int32(14))
    cube = np.int32(np.int32(square * root) >> np.int32(14))
    return cube if root > np.int32(3390) else line


@_cube.fallback
def _(root):
    line = np.int32(np.float32(root) * np.float32(0.12841862)) - np.int32(290)
    cube = (((root * root) >> np.int32(14)) * root) >> np.int32(14)
    return np.where(root > np.int32(3390), cube, line)


@kernel
def _lab_to_xyz(of_lightness, across, along, xyz):
    x, y, z = xyz[0], xyz[1], xyz[2]
    for i in each(across.size):
        root = np.int32(of_lightness[i] & np.int32(32767))
        a = np.int32(np.int32(across[i]) * np.int32(5 * 53687) + np.int32(128)) >> np.int32(13)
        b = np.int32(np.int32(along[i]) * np.int32(41943) + np.int32(16)) >> np.int32(9)
        x[i] = _cube(np.int32(root + a - np.int32(4194)))
        y[i] = of_lightness[i] >> np.int32(15)
        z[i] = _cube(np.int32(root - b + np.int32(10484)))


@kernel
def _bytes(levels, table, pixels):
    red, green, blue = levels[0], levels[1], levels[2]
    for i in each(pixels.shape[0]):
        pixels[i, 0] = table[np.uint32(red[i])]
        pixels[i, 1] = table[np.uint32(green[i])]
        pixels[i, 2] = table[np.uint32(blue[i])]


@kernel
def lab_to_rgb(lab, image, tables):
    """Planes `[3, n]` to pixels `[n, 3]`."""
    upper, two = empty((3, _CHUNK), np.int32), empty((3, _CHUNK), np.int32)
    for first in range(0, image.shape[0], _CHUNK):
        end = min(first + _CHUNK, image.shape[0])
        _look_up(tables.lightness, lab[0][first:end], two[0], end - first)
        _lab_to_xyz(two[0], lab[1][first:end], lab[2][first:end], upper)
        _xyz_to_levels(upper, two, tables.to_rgb, end - first)
        _bytes(two, tables.gamma, image[first:end])


lab_to_rgb.fallback()
