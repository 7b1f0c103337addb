"""One step of augmentation: one operator applies a kind to each sample, with numbers for each sample.

So a step of a policy is a few launches on a GPU and one call of an operator, however many kinds were drawn. Changes of single
bytes are a table for each channel; movements of pixels are affine maps.
"""

from __future__ import annotations

import numpy as np

from ndd._cpu.channel_tables import change_tones, scale_contrast, stretch_channels, stretch_down
from ndd._cpu.linear_color import compute, mix_channels, scale_elements
from ndd._cpu.sampling import BORDERS
from ndd._operator import PerSample, Plan, bad_sample, like, operator
from ndd.auto_aug.sharpness import sharpen
from ndd.ops.color.color_jitter import BRIGHTNESS, CONTRAST as CONTRAST_STEP, NONE, SATURATION, jitter_frames
from ndd.ops.color.equalize import COUNTED_BY_A_THREAD, equalize_planes
from ndd.ops.color.linear_color import MODERATE
from ndd.ops.filter.filter import paint_filtered
from ndd.ops.image.rotate import flat_maps, turned_extents
from ndd.ops.image.warp_kernels import APPLIED, NO_WAVE
from ndd.ops.image.warping import LINEAR, NEAREST, centred_maps, check_interpolation, paint_warped, sampling, threads_of
from ndd.types import DALIInterpType

NUMBERS = 12
"""The number of numbers of a sample; those that its kind does not use are ignored."""

# Kinds, and their numbers.
SAME = 0
TONES = 1  # threshold, shift, flip, mask: `(x + shift if x < threshold else x ^ flip) & mask`, sums saturate
SCALED = 2  # a factor of every value
CONTRAST = 3  # a factor of the distance from the mean grey of the image, .299 R + .587 G + .114 B
STRETCHED = 4  # the darkest value of each channel becomes 0 and the brightest 255; a channel of a single value stays
EQUALIZED = 5  # as `ndd.equalize`
MIXED = 6  # a matrix 3 x 3 of the channels
FILTERED = 7  # weights 3 x 3
WARPED = 8  # a matrix 2 x 3 from points of the output to points of the input
MOVED = 9  # the shift of the image, in fractions of the width and the height of `shape`
TURNED = 10  # an angle in degrees, as `ndd.rotate`
# As in torchvision. A factor is followed by 1 minus the factor.
BRIGHTENED = 11  # a factor of every value, rounded down
LEVELLED = 12  # a factor of the distance from the mean grey of the image, as `ndd.color_jitter`
SATURATED = 13  # a factor of the distance from the grey of the pixel, as `ndd.color_jitter`
SPREAD = 14  # as STRETCHED, rounded down
FLATTENED = 15  # as `ndd.equalize` by the rule "pillow"
SHARPENED = 16  # a factor of the distance from the mean of 3 x 3 pixels in which the centre counts five times
CENTRED = 17  # a matrix 2 x 3 about the centre, as `ndd.warp_affine` by the rule "torchvision"
# The shift of a row for each row below the corner of the image: a number, and its float32 rounding error.
SHEARED_X = 18
SHEARED_Y = 19  # the same of columns

_PACK = 16  # bytes that a GPU thread looks up at once
_GREY = np.array([0.299, 0.587, 0.114], np.float32)
_KINDS = {"SCALED": SCALED, "CONTRAST": CONTRAST, "STRETCHED": STRETCHED, "EQUALIZED": EQUALIZED, "MIXED": MIXED}
_KINDS |= {"SAME": SAME, "TONES": TONES, "FILTERED": FILTERED, "WARPED": WARPED, "CENTRED": CENTRED}
_KINDS |= {"BRIGHTENED": BRIGHTENED, "LEVELLED": LEVELLED, "SATURATED": SATURATED, "SPREAD": SPREAD}
_KINDS |= {"FLATTENED": FLATTENED, "SHARPENED": SHARPENED}
_COLORS = {MIXED: "of 3 channels (RGB)", CONTRAST: "of 3 channels (RGB) or of one"}
_COLORS |= dict.fromkeys((BRIGHTENED, LEVELLED, SATURATED, SPREAD, SHARPENED), "of 3 channels (RGB) or of one")
_STEPS = {BRIGHTENED: BRIGHTNESS, LEVELLED: CONTRAST_STEP, SATURATED: SATURATION}
_COUNTED = (CONTRAST, STRETCHED, EQUALIZED, SPREAD, FLATTENED)  # kinds that need histograms
_LOOKED_UP = (*_COUNTED, TONES, SCALED, BRIGHTENED, LEVELLED)  # kinds that are tables


@operator(layouts=("HWC", "FHWC"), types=("u8",), frames=True, argument_shapes=False, register=False)
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
    """Augments each sample by its kind, see above. `shape` is (H, W, ...), for `MOVED`. Without `fill_value` the border is
    repeated."""
    check_interpolation(interp_type)
    return like(data)


@augment.plan
def _(data, *, kind, numbers, fill_value, interp_type, rotate_keep_size, shape):
    kinds, rows = kind.each().astype(np.int32), numbers.rows(NUMBERS)
    shapes, channels = data.shapes, data.shapes[:, 2]
    for i in np.flatnonzero((channels != 3) & np.isin(kinds, list(_COLORS)) & ((kinds == MIXED) | (channels != 1)))[:1]:
        expected = _COLORS[int(kinds[i])]
        raise bad_sample(int(i), f"expected an image {expected}, got {channels[i]}: shape {tuple(shapes[i].tolist())}")
    outputs, moved, turned = shapes, np.flatnonzero(kinds == MOVED), np.flatnonzero(kinds == TURNED)
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
    _center(kinds, rows, shapes[:, :2], interp_type)
    border = BORDERS["replicate" if fill_value is None else "constant"]
    shared = sampling(data.dtype, data.dtype, interp_type, border, fill_value or 0.0)
    return Plan(outputs, {"kind": kinds, "numbers": np.ascontiguousarray(rows, np.float32)}, shared)


def _center(kinds: np.ndarray, rows: np.ndarray, extents: np.ndarray, interp_type: DALIInterpType) -> None:
    """Converts shears and matrices about the centre to the numbers of the kernels, see `centred_maps`."""
    for kind, across in ((SHEARED_X, True), (SHEARED_Y, False)):
        sheared = np.flatnonzero(kinds == kind)
        slope = rows[sheared, :2].astype(np.float64).sum(axis=1)
        y, x = -0.5 * extents[sheared].T
        rows[sheared, :6] = np.array([1, 0, 0, 0, 1, 0], np.float32)
        rows[sheared, 1 if across else 3] = slope
        rows[sheared, 2 if across else 5] = -slope * y if across else y - slope * x - y
        kinds[sheared] = CENTRED
    centred = np.flatnonzero(kinds == CENTRED)
    if len(centred):
        own = extents[centred]
        maps = centred_maps(rows[centred, :6].reshape(-1, 2, 3), own, own, interp_type == NEAREST)
        rows[centred] = maps.reshape(len(centred), -1)


@augment.cpu
def _(image, out, kind, numbers, nearest, border, fill, stored):
    if kind in (WARPED, CENTRED):
        matrix = numbers.reshape(4, 3) if kind == CENTRED else numbers[:6].reshape(2, 3)
        paint_warped(image, out, APPLIED, matrix, NO_WAVE, nearest, border, fill, stored)
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
        matrix[:, :3] = numbers[:9].reshape(3, 3)
        compute(image, out, matrix, mix_channels, bool(np.abs(matrix).max() < MODERATE))
    elif kind == FILTERED:
        height, width, channels = image.shape
        view, results = np.array([1, 1, height, width, channels]), np.array([1, height, width])
        paint_filtered(image, numbers[:9].reshape(3, 3), None, out, view, results, _MIDDLE, BORDERS["reflect_101"])
    elif kind in (EQUALIZED, FLATTENED):
        pixels = 1, -1, image.shape[-1]
        equalize_planes(image.reshape(pixels), out.reshape(pixels), kind == FLATTENED)
    elif kind in _STEPS:
        steps, factors = np.full(4, NONE, np.int32), np.zeros((4, 2), np.float32)
        steps[0], factors[_STEPS[kind]] = _STEPS[kind], numbers[:2]
        pixels = 1, -1, image.shape[-1]
        jitter_frames(image.reshape(pixels), out.reshape(pixels), steps, factors, False, np.float32(255))
    elif kind == SHARPENED:
        sharpen(image, out, numbers[1])
    else:
        channels = image.shape[2]
        x, y = image.reshape(-1, channels), out.reshape(-1, channels)
        runs, tables = np.zeros((2 * channels, 256), np.int32), np.empty((channels, 256), np.uint8)
        if kind == STRETCHED:
            stretch_channels(x, y, runs, tables)
        elif kind == SPREAD:
            stretch_down(x, y, runs, tables)
        else:
            scale_contrast(x, y, runs, tables, _GREY, numbers[0])


_MIDDLE = np.array([0, 1, 1])  # the centre of a filter


@augment.cuda("augment.cu")
def _(launch, data, out, *, kind, fill, stored, nearest):
    """Computes histograms and tables for the samples that need them, then all samples."""
    channels, sizes = data.shapes[:, 2], data.shapes[:, 0] * data.shapes[:, 1]
    counted, levelled = np.isin(kind, _COUNTED), kind == LEVELLED
    entries = np.where(np.isin(kind, _LOOKED_UP), channels * 256, 0)
    fields = {
        "pixels": np.where(counted, sizes, 0), "grey": np.where(levelled, sizes, 0),
        "planes": np.ones_like(channels), "channels": channels,
        "tables": launch.scratch(entries, np.uint8),
    }  # fmt: skip
    fields["counts"] = fields["sums"] = fields["tables"]  # placeholders, which are not read
    macros = {"COUNT": _PACK, "EACH": COUNTED_BY_A_THREAD, **_KINDS}
    shared = {"fill": stored.astype(np.float32) if nearest else fill, "fills": 1, "planar": 0}
    if counted.any():
        fields["counts"] = launch.scratch(np.where(counted, entries, 0), np.int32, zeros=True)
        work = -(-data.sizes // COUNTED_BY_A_THREAD) * counted
        launch("count", work, per_sample=fields, file="../ops/color/equalize.cu")
    if levelled.any():
        fields["sums"] = launch.scratch(levelled.astype(np.int64), np.uint64, zeros=True)
        work = -(-sizes // COUNTED_BY_A_THREAD) * levelled
        launch("add_grey", work, per_sample=fields, shared=shared, macros=macros)
    for kernel, work in (("tables", entries), ("augment", threads_of(launch, out.shapes))):
        launch(kernel, work, per_sample=fields, shared=shared, macros=macros)
