"""`ndd.roi_random_crop`: random windows of a given shape that overlap a region."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._cpu.draws import below
from ndd._cpu.philox import seek
from ndd._operator import Operand, PerSample, Values, bad_sample, operator, output
from ndd._tensor.dtype import int64

_AS_CROP = "as in `crop_shape`"


@operator(random=True)
def roi_random_crop(
    input=None,
    /,
    *,
    crop_shape: PerSample[list[int]],
    in_shape: PerSample[list[int]] = None,
    roi_end: PerSample[list[int]] = None,
    roi_shape: PerSample[list[int]] = None,
    roi_start: PerSample[list[int]],
):
    """Draws the start of a window of a given shape that covers a region of interest, or lies inside it.

    Args:
        input: the data to be cropped; only its shape is used. Pass this, `in_shape`, or neither.
        crop_shape: extents of the window.
        roi_start: start of the region, for each axis or one number for all; with it either `roi_end` or `roi_shape`.
        in_shape: extents for the window to stay inside; the region must lie in them, and the window must fit.
        rng: an `RNG`; without it the thread's default one. A call advances it by seven words.
        roi_end: end of the region, likewise.
        roi_shape: extents of the region, likewise.

    Along each axis a window larger than the region contains it, and a smaller one lies inside it. All such starts are equally
    likely: from `min(start, end - crop)` to `max(start, end - crop)`, and within `in_shape` from 0 to `in_shape - crop`. The
    result is int64 with an entry for each entry of `crop_shape`, on the CPU; equal to DALI's. torchvision's `RandomCrop` takes
    no region: its window may be anywhere in the image.

    Raises RuntimeError for both or neither of `roi_end` and `roi_shape`, both an input and `in_shape`, different
    numbers of axes, negative extents, a window that is larger than the input and a region that reaches outside it.

    >>> import ndd
    >>> ndd.roi_random_crop(crop_shape=[4, 4], roi_start=[10, 20], roi_end=[30, 22], rng=ndd.random.RNG(7)).torch()
    tensor([26, 20])
    """
    if (roi_end is None) == (roi_shape is None):
        raise RuntimeError(f"expected either `roi_end` or `roi_shape`, got {'none' if roi_end is None else 'both'}")
    if input is not None and in_shape is not None:
        raise RuntimeError("expected either an input or `in_shape`, got both")
    return output(int64, 1)


# A batch: NumPy computes the numbers of all samples at once.
@roi_random_crop.batch
def _(call, input, *, crop_shape, in_shape, roi_end, roi_shape, roi_start):
    crop = crop_shape.rows()
    axes = crop.shape[1]
    start = roi_start.rows(axes, repeat=True, meaning=_AS_CROP)
    extent = (
        roi_shape.rows(axes, repeat=True, meaning=_AS_CROP)
        if roi_end is None
        else roi_end.rows(axes, repeat=True, meaning=_AS_CROP) - start
    )
    for name, values in (("crop_shape", crop), ("the extent of the region", extent)):
        for i, k in np.argwhere(values < 0)[:1]:
            raise bad_sample(int(i), f"{name}: expected numbers of at least 0, got {values[i, k]} along axis {k}")
    low, high = np.minimum(start, start + extent - crop), np.maximum(start, start + extent - crop)
    whole = _bounds(input, in_shape, axes)
    if whole is not None:
        _check_inside(crop, start, extent, whole)
        low, high = np.maximum(low, 0), np.minimum(high, whole - crop)
    anchors = np.empty((call.n, axes), np.int64)
    _draw(anchors, call.draws.streams(call.n), low, high, crop != extent)
    return anchors


def _bounds(input: Operand | None, in_shape: Values | None, axes: int) -> np.ndarray | None:
    if input is None:
        return None if in_shape is None else in_shape.rows(axes, repeat=True, meaning=_AS_CROP)
    if input.ndim < axes:
        raise RuntimeError(f"expected an input of at least {axes} axes, as in `crop_shape`, got {input.ndim}")
    return input.shapes[:, :axes]


def _check_inside(crop: np.ndarray, start: np.ndarray, extent: np.ndarray, whole: np.ndarray) -> None:
    for i, k in np.argwhere(crop > whole)[:1]:
        raise bad_sample(
            int(i), f"expected a window that fits, got crop_shape {crop[i, k]} in an extent of {whole[i, k]}, axis {k}"
        )
    for i, k in np.argwhere((start < 0) | (start + extent > whole))[:1]:
        raise bad_sample(
            int(i),
            f"expected a region inside the input, got {start[i, k]} to {start[i, k] + extent[i, k]} in an extent of "
            f"{whole[i, k]}, axis {k}",
        )


@kernel
def _draw(out, streams, low, high, moves):
    cursor = empty(8, np.uint64)
    for n in range(out.shape[0]):
        seek(cursor, streams[n], 0)
        for k in range(out.shape[1]):
            out[n, k] = low[n, k]
            if moves[n, k]:
                out[n, k] += np.int64(below(cursor, np.uint64(high[n, k] - low[n, k] + 1)))
