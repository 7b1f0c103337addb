"""One step of augmentation: each sample by a kind of its own, with numbers of its own, in one operator.

So a step of a policy is a few launches on a GPU and one call of an operator, however many kinds were drawn. What bytes
become byte by byte is a table for each channel; what moves pixels is an affine map.
"""

from __future__ import annotations

import numpy as np

from ndd._cpu.channel_tables import change_tones, scale_contrast, stretch_channels
from ndd._cpu.linear_color import compute, mix_channels, scale_elements
from ndd._cpu.sampling import BORDERS
from ndd._operator import PerSample, Plan, bad_sample, like, operator
from ndd.ops.color.equalize import COUNTED_BY_A_THREAD, equalize_planes
from ndd.ops.color.linear_color import MODERATE
from ndd.ops.filter.filter import paint_filtered
from ndd.ops.image.rotate import flat_maps, turned_extents
from ndd.ops.image.warp_kernels import APPLIED, NO_WAVE
from ndd.ops.image.warping import LINEAR, check_interpolation, paint_warped, sampling, threads_of
from ndd.types import DALIInterpType

NUMBERS = 9
"""How many numbers a sample has; those that its kind does not use say nothing."""

# Kinds, and their numbers.
SAME = 0
TONES = 1  # threshold, shift, flip, mask: `(x + shift if x < threshold else x ^ flip) & mask`, sums saturate
SCALED = 2  # a factor of every value
CONTRAST = 3  # a factor of the distance from the mean grey of the image, .299 R + .587 G + .114 B
STRETCHED = 4  # the darkest value of each channel becomes 0 and the brightest 255; a channel of a single value stays
EQUALIZED = 5  # as `ndd.equalize`
MIXED = 6  # a matrix 3 x 3 of the channels
FILTERED = 7  # weights 3 x 3
WARPED = 8  # a matrix 2 x 3: where a point of the output comes from
MOVED = 9  # the way the image is moved, in parts of the width and of the height of `shape`
TURNED = 10  # an angle in degrees, as `ndd.rotate`

_PACK = 16  # bytes that a GPU thread looks up at once
_GREY = np.array([0.299, 0.587, 0.114], np.float32)
_KINDS = {"SCALED": SCALED, "CONTRAST": CONTRAST, "STRETCHED": STRETCHED, "EQUALIZED": EQUALIZED, "MIXED": MIXED}
_KINDS |= {"SAME": SAME, "TONES": TONES, "FILTERED": FILTERED, "WARPED": WARPED}


@operator(layouts=("HWC", "FHWC"), types=("u8",), frames=True, register=False)
def augment(
    data,
    /,
    *,
    kind: PerSample[int],
    numbers: PerSample[list[float]],
    fill_value: float | None = None,
    interp_type: DALIInterpType = LINEAR,
    rotate_keep_size: bool = True,
    shape: PerSample[list[float]] = None,
):
    """Each sample by its kind, see above. `shape` is (H, W, ...), for `MOVED`. Without `fill_value` the border is repeated."""
    check_interpolation(interp_type)
    return like(data)


@augment.plan
def _(data, *, kind, numbers, fill_value, interp_type, rotate_keep_size, shape):
    kinds, rows = kind.each().astype(np.int32), numbers.rows(NUMBERS)
    shapes, channels = data.shapes, data.shapes[:, 2]
    for i in np.flatnonzero((channels != 3) & ((kinds == MIXED) | (kinds == CONTRAST) & (channels != 1)))[:1].tolist():
        expected = "of 3 channels (RGB)" if kinds[i] == MIXED else "of 3 channels (RGB) or of one"
        raise bad_sample(i, f"expected an image {expected}, got {channels[i]}: shape {tuple(shapes[i].tolist())}")
    outputs, moved, turned = shapes, np.flatnonzero(kinds == MOVED), np.flatnonzero(kinds == TURNED)
    if len(moved) or len(turned):
        rows, kinds = rows.copy(), kinds.copy()
    if len(moved):
        extents = shape.rows(None)[moved].astype(np.float32)
        away = rows[moved, :2] * extents[:, 1::-1]
        rows[moved, :6] = np.array([1, 0, 0, 0, 1, 0], np.float32)
        rows[moved[:, None], [2, 5]] = -away
    if len(turned):
        extents = shapes[turned, :2]
        c, s, targets = turned_extents(rows[turned, 0], None, rotate_keep_size, extents)
        rows[turned, :6] = flat_maps(c.astype(np.float32), s.astype(np.float32), extents, targets).reshape(-1, 6)
        if not rotate_keep_size:
            outputs = shapes.copy()
            outputs[turned, :2] = targets
    kinds[moved], kinds[turned] = WARPED, WARPED
    border = BORDERS["replicate" if fill_value is None else "constant"]
    shared = sampling(data.dtype, data.dtype, interp_type, border, fill_value or 0.0)
    return Plan(outputs, {"kind": kinds, "numbers": np.ascontiguousarray(rows, np.float32)}, shared)


@augment.cpu
def _(image, out, kind, numbers, nearest, border, fill, stored):
    if kind == WARPED:
        paint_warped(image, out, APPLIED, numbers[:6].reshape(2, 3), NO_WAVE, nearest, border, fill, stored)
    elif not image.size:
        return
    elif kind == SAME:
        out[...] = image
    elif kind == TONES:
        change_tones(image.reshape(-1), out.reshape(-1), *numbers[:4].astype(np.int32))
    elif kind == SCALED:
        factor = np.array([[numbers[0], 0]], np.float32)
        compute(image, out, factor, scale_elements, bool(abs(numbers[0]) < MODERATE))
    elif kind == MIXED:
        matrix = np.zeros((3, 4), np.float32)
        matrix[:, :3] = numbers.reshape(3, 3)
        compute(image, out, matrix, mix_channels, bool(np.abs(matrix).max() < MODERATE))
    elif kind == FILTERED:
        height, width, channels = image.shape
        view, results = np.array([1, 1, height, width, channels]), np.array([1, height, width])
        paint_filtered(image, numbers.reshape(3, 3), None, out, view, results, _MIDDLE, BORDERS["reflect_101"])
    elif kind == EQUALIZED:
        pixels = 1, -1, image.shape[-1]
        equalize_planes(image.reshape(pixels), out.reshape(pixels), False)
    else:
        channels = image.shape[2]
        x, y = image.reshape(-1, channels), out.reshape(-1, channels)
        runs, tables = np.zeros((2 * channels, 256), np.int32), np.empty((channels, 256), np.uint8)
        if kind == STRETCHED:
            stretch_channels(x, y, runs, tables)
        else:
            scale_contrast(x, y, runs, tables, _GREY, numbers[0])


_MIDDLE = np.array([0, 1, 1])  # of a filter


@augment.cuda("augment.cu")
def _(launch, data, out, *, kind, fill, stored, nearest):
    """Counts and tables for those that need them, then all samples."""
    channels = data.shapes[:, 2]
    counted = (kind == CONTRAST) | (kind == STRETCHED) | (kind == EQUALIZED)
    entries = np.where(counted | (kind == TONES) | (kind == SCALED), channels * 256, 0)
    fields = {
        "pixels": np.where(counted, data.shapes[:, 0] * data.shapes[:, 1], 0), "planes": np.ones_like(channels),
        "channels": channels, "tables": launch.scratch(entries, np.uint8),
    }  # fmt: skip
    if counted.any():
        fields["counts"] = launch.scratch(np.where(counted, entries, 0), np.int32, zeros=True)
        work = -(-data.sizes // COUNTED_BY_A_THREAD) * counted
        launch("count", work, per_sample=fields, file="../ops/color/equalize.cu")
    else:
        fields["counts"] = fields["tables"]  # nobody reads it
    for kernel, work in (("tables", entries), ("augment", threads_of(launch, out.shapes))):
        shared = {"fill": stored.astype(np.float32) if nearest else fill, "fills": 1, "planar": 0}
        launch(kernel, work, per_sample=fields, shared=shared, macros={"COUNT": _PACK, **_KINDS})
