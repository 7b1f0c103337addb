"""`ndd.experimental.remap`: moves pixels according to two maps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ndd._compiled.intrinsics import empty, overlapping
from ndd._compiled.jit import Kernel, kernel
from ndd._cpu.rgb_sampling import LEAST, byte_of, fetch_words, store_rgb
from ndd._operator import Operand, Plan, bad_sample, like, operator
from ndd._tensor.store import volumes
from ndd.types import DALIInterpType

_NEAREST, _LINEAR, _CUBIC = 0, 1, 2
_SUPPORTED = (DALIInterpType.INTERP_NN, DALIInterpType.INTERP_LINEAR, DALIInterpType.INTERP_CUBIC)
_ORIGINS = {"corner": 0.5, "center": 0.0}
_HALF = np.float32(0.49999997)  # the number below one half: with 0.5, 0.49999997 would be rounded up
_LARGE = 1 << 30  # from this many elements on places need more than 32 bits
_MAP_LAYOUTS = ("HW", "FHW", "HWC", "FHWC")


@operator(layouts=("HWC", "FHWC"), masks=True, types=("u8", "u16", "i16", "f32"), frames=True)
def remap(
    input,
    mapx,
    mapy,
    /,
    *,
    interp: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    pixel_origin: str = "corner",
):
    """Reads each pixel of the output at the place that two maps give.

    Args:
        input: layout HWC or FHWC; uint8, uint16, int16 or float32. A mask, HW, counts as one channel and comes out as
            HW.
        mapx, mapy: float32 (H, W), x and y in pixels of the input for each pixel of the output; for video, one pair for
            the sample or (F, H, W), a pair for each frame. The output is as large as its maps.
        interp: INTERP_NN, INTERP_LINEAR or INTERP_CUBIC.
        pixel_origin: the place of (0, 0): the "corner" of the first pixel, or its "center" as in OpenCV.

    `out[y, x] = in(u, v)` with `(u, v) = (mapx[y, x], mapy[y, x])`, minus 0.5 each if the origin is the corner; pixel centres
    are at whole numbers. A point with u < -0.5 or u >= W (and likewise v), or NaN, gives 0; a point beyond the outermost
    centres gives the edge pixels. Cubic: the polynomials through 4 x 4 pixels (Lagrange's; OpenCV and PIL have Keys'), and u, v
    below 0 are 0. Integers are rounded half away from zero and saturated. Layout and type stay.

    Runs on the CPU and the GPU; DALI's runs on the GPU only. 8-bit results equal DALI's; 16-bit results differ by up to 1 in
    one number of 500. Differences from DALI: any number of channels, maps of another size than the image, and images of one
    row, of one column and without pixels are accepted; points outside are 0 (in DALI: uninitialised memory); maps for each
    frame need a video (in DALI an image is repeated). OpenCV's `remap` has its origin at the "center", borders of its choice
    and linear weights in steps of 1/32.

    Raises RuntimeError for other types, interpolations and origins and for maps that differ in shape; ValueError for
    other layouts.

    >>> import ndd, numpy as np
    >>> image = ndd.tensor([[[10], [20], [30]]], dtype=ndd.uint8, layout="HWC")
    >>> x, y = np.array([[2.0, 1.5, 7.0]], np.float32), np.zeros((1, 3), np.float32)
    >>> ndd.experimental.remap(image, x, y, pixel_origin="center")[0, :, 0].torch()
    tensor([30, 25,  0], dtype=torch.uint8)
    >>> y, x = np.mgrid[:266, :400].astype(np.float32)
    >>> ndd.experimental.remap(ndd.demo.photo("cat"), x + 12 * np.sin(y / 15), y, pixel_origin="center").shape
    (266, 400, 3)
    """
    if interp not in _SUPPORTED:
        raise RuntimeError(f"Unsupported interpolation type {interp!r}: expected INTERP_NN, _LINEAR or _CUBIC")
    if pixel_origin not in _ORIGINS:
        raise RuntimeError(f"Undefined pixel_origin {pixel_origin!r}. Use one of {[*_ORIGINS]}")
    for name, coordinates in (("mapx", mapx), ("mapy", mapy)):
        if coordinates.dtype.name != "f32":
            raise RuntimeError(f"`{name}`: expected float32, got {coordinates.dtype}")
        if coordinates.layout and coordinates.layout not in _MAP_LAYOUTS:
            raise ValueError(
                f'`{name}`: expected one of the layouts {", ".join(_MAP_LAYOUTS)}, got "{coordinates.layout}"'
            )
    return like(input)


@remap.plan
def _(input, mapx, mapy, *, interp, pixel_origin):
    for name, coordinates in (("mapx", mapx), ("mapy", mapy)):
        if coordinates.shapes.shape[1] != 2:
            raise RuntimeError(f"`{name}`: expected 2 axes for each image, got {coordinates.shapes.shape[1]}")
    differ = (mapx.shapes != mapy.shapes).any(axis=1)
    if differ.any():
        i = int(differ.argmax())
        raise bad_sample(i, f"Maps shapes do not match: {mapx.shapes[i].tolist()} and {mapy.shapes[i].tolist()}")
    shapes = np.concatenate([mapx.shapes, input.shapes[:, 2:]], axis=1)
    integer = input.dtype.numpy.kind != "f"
    limits = np.iinfo(input.dtype.numpy) if integer else None
    shared = {
        "interp": int(interp),
        "shift": np.float32(_ORIGINS[pixel_origin]),
        "rounds": integer,
        "low": np.float32(limits.min if limits else 0),
        "high": np.float32(limits.max if limits else 0),
    }
    return Plan(shapes, shared=shared, kernel=_kernels(input, volumes(shapes), interp))


def _kernels(input: Operand, results: np.ndarray, interp: int) -> dict[Kernel | Callable[..., None], np.ndarray]:
    """The function for images whose output has `results` elements."""
    sizes = np.broadcast_to(input.sizes, results.shape)
    some = sizes > 0
    kernel = {_NEAREST: _pick, _LINEAR: _blend}.get(int(interp), _blend_cubic)
    rgb = np.zeros_like(some)
    if kernel is _blend and input.dtype.name == "u8":
        rgb = (input.shapes[:, 2] == 3) & (sizes >= LEAST) & (sizes < _LARGE) & (results >= LEAST)
    return {_blend_rgb: rgb, kernel: some & ~rgb, _nothing: ~some}


def _nothing(image, mapx, mapy, out) -> None:
    """Fills the output of an image without pixels."""
    out[...] = 0


@kernel
def _inside(u, n):
    """Whether a coordinate counts as inside a line of `n` pixels: from half a pixel before the first centre to one pixel after
    the last; not for NaN."""
    return u >= np.float32(-0.5) and u < np.float32(n)


@kernel
def _pick(image, map_x, map_y, out, shift):
    """Takes the nearest pixel."""
    height, width, channels = image.shape
    half = np.float32(0.5)
    for y in range(len(out)):
        for x in range(out.shape[1]):
            u, v = map_x[y, x] - shift, map_y[y, x] - shift
            if _inside(u, width) and _inside(v, height):
                column, row = min(int(np.floor(u + half)), width - 1), min(int(np.floor(v + half)), height - 1)
                for c in range(channels):
                    out[y, x, c] = image[row, column, c]
            else:
                for c in range(channels):
                    out[y, x, c] = 0


@kernel
def _blend(image, map_x, map_y, out, shift, rounds, low, high):
    """Interpolates linearly between the four pixels around a point; beyond the border the edge is repeated."""
    height, width, channels = image.shape
    flat = image.reshape(height * width * channels)
    line = empty(out.shape[1] * channels, np.float32)
    for y in range(len(out)):
        place = np.uint64(0)
        for x in range(out.shape[1]):
            u, v = map_x[y, x] - shift, map_y[y, x] - shift
            if _inside(u, width) and _inside(v, height):
                left, top = int(np.floor(u)), int(np.floor(v))
                fx, fy = u - np.float32(left), v - np.float32(top)
                above, below = max(top, 0) * width, min(top + 1, height - 1) * width
                before, behind = max(left, 0), min(left + 1, width - 1)
                a, b = np.uint64((above + before) * channels), np.uint64((above + behind) * channels)
                p, q = np.uint64((below + before) * channels), np.uint64((below + behind) * channels)
                for c in range(np.uint64(channels)):
                    first = flat[a + c] + (np.float32(flat[b + c]) - np.float32(flat[a + c])) * fx
                    second = flat[p + c] + (np.float32(flat[q + c]) - np.float32(flat[p + c])) * fx
                    line[place + c] = first + (second - first) * fy
            else:
                for c in range(np.uint64(channels)):
                    line[place + c] = np.float32(0)
            place += np.uint64(channels)
        _store(line, out[y].reshape(line.size), rounds, low, high)


@_blend.fallback
def _blend_by_numpy(image, map_x, map_y, out, shift, rounds, low, high):
    height, width, _ = image.shape
    with np.errstate(all="ignore"):
        u, v = map_x - shift, map_y - shift
        half = np.float32(-0.5)
        inside = (u >= half) & (u < np.float32(width)) & (v >= half) & (v < np.float32(height))
        u, v = np.where(inside, u, np.float32(0)), np.where(inside, v, np.float32(0))
        left, top = np.floor(u), np.floor(v)
        fx, fy = (u - left)[..., None], (v - top)[..., None]
        column, row = left.astype(np.int64), top.astype(np.int64)
        before, behind = column.clip(0), (column + 1).clip(None, width - 1)

        def mixed(row: np.ndarray) -> np.ndarray:
            a, b = image[row, before].astype(np.float32), image[row, behind].astype(np.float32)
            return a + (b - a) * fx

        first = mixed(row.clip(0))
        blended = first + (mixed((row + 1).clip(None, height - 1)) - first) * fy
        blended[~inside] = 0
        out[...] = np.trunc(blended + np.copysign(_HALF, blended)).clip(low, high) if rounds else blended


@kernel
def _linear_place(at, n, step, shift, place, behind, share):
    """For a line of coordinates: the place of the first pixel around each, and the share of the second; below 0 if outside."""
    last, least = np.int32(n - 1), np.float32(-0.5)
    for i in range(at.size):
        u = at[i] - shift
        inside = (u >= least) & (u < np.float32(n))
        u = u if inside else np.float32(0)
        left = np.floor(u)
        share[i] = u - left
        before = np.int32(left)
        after = before + np.int32(1)
        before = before if before > 0 else np.int32(0)
        after = after if after < last else last
        place[i] = before * step if inside else np.int32(-_LARGE)
        behind[i] = after * step if inside else np.int32(-_LARGE)


@kernel
def _blended_byte(a, b, c, d, shift, fx, fy):
    a, b, c, d = byte_of(a, shift), byte_of(b, shift), byte_of(c, shift), byte_of(d, shift)
    first, second = a + (b - a) * fx, c + (d - c) * fx
    return np.uint32(np.int32(first + (second - first) * fy + _HALF)) << np.uint32(shift)


@kernel
def _blend_rgb(image, map_x, map_y, out, shift):
    """`_blend` for RGB pixels in bytes; both images have at least `LEAST` bytes."""
    height, width, _ = image.shape
    wide = out.shape[1]
    flat = image.reshape(image.size)
    words, out_words = overlapping(flat, np.uint32), overlapping(out.reshape(out.size), np.uint32)
    place, share = empty((4, wide), np.int32), empty((2, wide), np.float32)
    tap, row = empty((4, wide), np.uint32), empty(wide, np.uint32)
    for y in range(len(out)):
        _linear_place(map_x[y], np.int32(width), np.int32(3), shift, place[0], place[1], share[0])
        _linear_place(map_y[y], np.int32(height), np.int32(3 * width), shift, place[2], place[3], share[1])
        fetch_words(flat, words, place, np.uint32(0), tap, 0, wide)
        a, b, c, d, fx, fy = tap[0], tap[1], tap[2], tap[3], share[0], share[1]
        for i in range(row.size):
            red = _blended_byte(a[i], b[i], c[i], d[i], 0, fx[i], fy[i])
            green = _blended_byte(a[i], b[i], c[i], d[i], 8, fx[i], fy[i])
            row[i] = red | green | _blended_byte(a[i], b[i], c[i], d[i], 16, fx[i], fy[i])
        store_rgb(row, out[y].reshape(3 * wide), out_words, 3 * wide * y)


@_blend_rgb.fallback
def _(image, map_x, map_y, out, shift):
    _blend_by_numpy(image, map_x, map_y, out, shift, True, np.float32(0), np.float32(255))


@kernel
def _store(line, out, rounds, low, high):
    if rounds:
        for i in range(line.size):
            out[i] = min(max(np.trunc(line[i] + np.copysign(_HALF, line[i])), low), high)
    else:
        for i in range(line.size):
            out[i] = line[i]


@kernel
def _cubic_weights(t, weights):
    """The weights of the pixels -1, 0, 1 and 2 for a point `t` after pixel 0: the cubic through the four of them."""
    one, two = np.float32(1), np.float32(2)
    weights[0] = t * (one - t) * (t - two) * np.float32(1 / 6)
    weights[1] = (t + one) * (one - t) * (two - t) * np.float32(0.5)
    weights[2] = (t + one) * t * (two - t) * np.float32(0.5)
    weights[3] = (t + one) * t * (t - one) * np.float32(1 / 6)


@kernel
def _blend_cubic(image, map_x, map_y, out, shift, rounds, low, high):
    """Interpolates cubically between the sixteen pixels around a point."""
    height, width, channels = image.shape
    across, down = empty(4, np.float32), empty(4, np.float32)
    line = empty(out.shape[1] * channels, np.float32)
    for y in range(len(out)):
        for x in range(out.shape[1]):
            u, v = map_x[y, x] - shift, map_y[y, x] - shift
            inside = _inside(u, width) and _inside(v, height)
            u, v = max(u, np.float32(0)), max(v, np.float32(0))
            left, top = int(np.floor(u)) if inside else 0, int(np.floor(v)) if inside else 0
            _cubic_weights(u - np.float32(left), across)
            _cubic_weights(v - np.float32(top), down)
            for c in range(channels):
                total = np.float32(0)
                for j in range(4 if inside else 0):
                    row = min(max(top + j - 1, 0), height - 1)
                    part = np.float32(0)
                    for i in range(4):
                        part += across[i] * np.float32(image[row, min(max(left + i - 1, 0), width - 1), c])
                    total += down[j] * part
                line[x * channels + c] = total
        _store(line, out[y].reshape(line.size), rounds, low, high)


@remap.cuda("remap.cu")
def _(launch, image, mapx, mapy, out):
    launch("remap", mapx.sizes)
