"""`ndd.debayer`: converts the mosaic of a camera's sensor to colours."""

from __future__ import annotations

import functools

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._compiled.simd_bayer import BLOCK_BYTES, bayer_block
from ndd._cpu.element_copies import copy_bytes
from ndd._cpu.opencv import single_threaded
from ndd._operator import PerSample, Plan, bad_sample, operator, output

# The values of `algorithm`, as in DALI, and the kernel of each.
_KERNELS = {
    "default": "bilinear",
    "bilinear_ocv": "bilinear",
    "edgeaware_ocv": "edge_aware",
    "vng_ocv": "gradients",
    "gray_ocv": "gray",
    "default_npp": "bilinear",
}
_OPENCV = {"bilinear": "2RGB", "edge_aware": "2RGB_EA", "gradients": "2RGB_VNG", "gray": "2GRAY"}
_TILES = ("BG", "GB", "GR", "RG")  # OpenCV's names of the tiles, by 2 y + x of the blue position


@operator(layouts=("HW", "HWC", "FHW", "FHWC"), types=("u8", "u16"), frames=True)
def debayer(input, /, *, algorithm: str | None = None, blue_position: PerSample[list[int]]):
    """Interpolates the two missing colours of each pixel of a Bayer mosaic.

    Args:
        input: uint8 or uint16 mosaics of even extents, layout HW, HWC with one channel, FHW or FHWC; without a layout
            HW, HWC or FHWC by rank.
        blue_position: (y, x), 0 or 1 each: where blue is in the 2x2 tile that begins at the second row and column.
            (0, 0) is OpenCV's BG (the sensor's rows begin R G, then G B), (0, 1) GB, (1, 0) GR and (1, 1) RG. One
            number goes for both. Video may have one for each frame.
        algorithm: how to interpolate, in lower or upper case.
            "bilinear_ocv", "default": means of the 2 or 4 nearest pixels of a colour, rounded half up: at a blue pixel
            `G = (up + down + left + right + 2) >> 2`, and red likewise from the four corners.
            "edgeaware_ocv": the same, but green is the mean along the axis on which it changes less.
            "vng_ocv": variable number of gradients, uint8 only: means over those of 8 directions in which the picture
            changes little. Images of fewer than 8 rows or columns are interpolated bilinearly.
            "gray_ocv": brightness `0.299 R + 0.587 G + 0.114 B` instead of colours, one channel.
            "default_npp": on the GPU only, the same as "bilinear_ocv".

    The result is HWC (FHWC) RGB of the same type, that of OpenCV 5's `demosaicing`: pixels of the border are copies of
    their neighbours inside ("vng_ocv": computed from a mirrored border), and mosaics of two rows or columns become
    zeros. The GPU gives the same, "vng_ocv" to 1; DALI has only NPP's interpolation there. Images without pixels give
    none (DALI: an error).

    Raises ValueError for other layouts, RuntimeError for other types, odd extents, more channels, and unknown
    algorithms and positions; ImportError where OpenCV is missing (CPU).

    >>> import ndd, numpy as np
    >>> mosaic = np.zeros((4, 4), np.uint8)
    >>> mosaic[1::2, 1::2] = 200  # blue light only
    >>> ndd.debayer(mosaic, blue_position=[0, 0])[1, 1].torch()
    tensor([  0,   0, 200], dtype=torch.uint8)
    >>> ndd.debayer(ndd.demo.photo("coffee")[:266, :, 1], blue_position=[0, 0]).shape
    (266, 400, 3)
    """
    kernel = _kernel(algorithm)
    if (algorithm or "").lower() == "default_npp" and input.device.device_id is None:
        raise RuntimeError('debayer: `algorithm`: "default_npp" is available on the GPU only')
    if kernel == "gradients" and input.dtype.name != "u8":
        raise RuntimeError(f'debayer: `algorithm`: "vng_ocv" takes uint8 only, got {input.dtype}')
    video = input.layout[0] == "F"
    return output(input.dtype, 3 + video, "FHWC" if video else "HWC")


def _kernel(algorithm: str | None) -> str:
    kernel = _KERNELS.get("default" if algorithm is None else algorithm.lower())
    if kernel is None:
        raise RuntimeError(f"debayer: `algorithm`: expected one of {', '.join(_KERNELS)}, got {algorithm!r}")
    return kernel


@debayer.plan
def _(input, *, algorithm, blue_position):
    shapes = input.shapes
    wrong = np.flatnonzero((shapes[:, :2] % 2).any(axis=1) | (shapes[:, 2:] != 1).any(axis=1))
    if len(wrong):
        i, got = int(wrong[0]), tuple(shapes[wrong[0]].tolist())
        raise bad_sample(i, f"expected a mosaic of even height and width and one channel, got shape {got}")
    kernel = _kernel(algorithm)
    blue = blue_position.rows(2, repeat=True, meaning="(y, x)")
    wrong = np.flatnonzero(((blue < 0) | (blue > 1)).any(axis=1))
    if len(wrong):
        got = tuple(blue[wrong[0]].tolist())
        raise bad_sample(int(wrong[0]), f"`blue_position` lies within a 2x2 tile: expected 0 or 1, got {got}")
    channels = np.full((input.n, 1), 1 if kernel == "gray" else 3)
    outputs = np.concatenate([shapes[:, :2], channels], axis=1)
    # Means of neighbours are ours; the other algorithms are OpenCV's.
    chosen = _bilinear if kernel == "bilinear" else functools.partial(_by_opencv, kernel=kernel)
    per_sample = {"blue": 2 * blue[:, 0] + blue[:, 1]}
    return Plan(outputs, per_sample, {"kernel": kernel}, kernel=chosen, view={"image": shapes[:, :2]})


@functools.cache
def _code(kernel: str, blue: int) -> int:
    return getattr(single_threaded(), f"COLOR_Bayer{_TILES[blue]}{_OPENCV[kernel]}")


@kernel
def _bilinear(image, out, blue):
    """Computes the inner pixels of the inner rows, then the border."""
    height, width = image.shape
    flat, pixels = image.reshape(image.size), out.reshape(out.size)
    if height <= 2 or width <= 2:
        pixels[:] = 0
        return
    size = BLOCK_BYTES // image.itemsize
    inside = width - 2
    last = max(inside - size, 0)
    few, line = empty(3 * (size + 2), image.dtype), empty(3 * size, image.dtype)
    for y in range(1, height - 1):
        blue_row = (y + 1) & 1 == blue >> 1
        green = blue & 1 if blue_row else (blue & 1) ^ 1  # whether the first column inside is green
        first = y * width + 1
        place = 3 * first
        source, own, stride, target, to = flat, first, width, pixels, place
        if inside < size:
            for k in range(3):
                _copy(flat, first + (k - 1) * width - 1, few, k * (size + 2), width)
            source, own, stride, target, to = few, size + 3, size + 2, line, 0
        for k in range(0, inside, size):
            k = min(k, last)  # pixels that two blocks share are computed twice
            bayer_block(
                source, np.uint64(own - stride + k), np.uint64(own + k), np.uint64(own + stride + k), np.uint64(green),
                np.uint64(blue_row), target, np.uint64(to + 3 * k),
            )  # fmt: skip
        if inside < size:
            _copy(line, 0, pixels, place, 3 * inside)
        for c in range(3):
            pixels[place - 3 + c], pixels[place + 3 * inside + c] = (
                pixels[place + c],
                pixels[place + 3 * inside - 3 + c],
            )
    _copy(pixels, 3 * width, pixels, 0, 3 * width)
    _copy(pixels, 3 * width * (height - 2), pixels, 3 * width * (height - 1), 3 * width)


@_bilinear.fallback
def _(image, out, blue):
    _by_opencv(image, out, int(blue), "bilinear")


@kernel
def _copy(source, at, out, place, count):
    copy_bytes(out[place:].ctypes.data, source[at:].ctypes.data, np.uint64(count * source.itemsize))


def _by_opencv(image, out, blue, kernel):
    if image.size:
        target = out if kernel != "gray" else out[:, :, 0]
        single_threaded().demosaicing(image, _code(kernel, blue), dst=target)


@debayer.cuda("debayer.cu")
def _(launch, input, out, kernel):
    launch(kernel, input.sizes)
