"""`ndd.random_resized_crop`: resizes a random window of each image."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ndd._cuda.resample import resample_batch
from ndd._operator import PerSample, like, operator
from ndd._tensor.dtype import DType
from ndd._tensor.small_arrays import columns
from ndd.ops.image.resample_on_cpu import resample_on_cpu
from ndd.ops.image.resize_geometry import (
    RULES,
    TYPES,
    Geometry,
    check_choice,
    check_dtype,
    resample_plan,
    resampled_part,
    spatial_axes,
)
from ndd.random.crop_window import crop_window
from ndd.types import DALIInterpType


@operator(layouts=("HWC", "CHW", "FHWC", "FCHW", "CFHW"), masks=True, types=TYPES, random=True)
def random_resized_crop(
    input,
    /,
    *,
    antialias: bool = True,
    dtype: DType | None = None,
    interp_type: PerSample[DALIInterpType] = None,
    mag_filter: PerSample[DALIInterpType] = None,
    min_filter: PerSample[DALIInterpType] = None,
    minibatch_size: int = 32,
    num_attempts: int = 10,
    random_area: Sequence[float] = (0.08, 1.0),
    random_aspect_ratio: Sequence[float] = (0.75, 4 / 3),
    rule: str = "dali",
    size: list[int],
    temp_buffer_hint: int = 0,
):
    """Takes a window of random area and aspect ratio and resizes it: the usual augmentation for training.

    The frames of a video share their window. The result is that of `resize(size=size, roi_start=anchor,
    roi_end=anchor + shape)`: the filter reaches beyond the window, as if the image had been resized and then
    cropped.

    Args:
        input: u8, i16, u16 or f32; layout HWC, CHW, FHWC, FCHW or CFHW. Without a layout: HWC or FHWC by rank. A mask,
            HW, counts as one channel and comes out as HW.
        size: height and width of the result, or one number for both.
        random_area: range of the window's area as a share of the image's.
        random_aspect_ratio: range of its width / height; the logarithm is uniform.
        num_attempts: the number of windows to draw until one fits in the image; after that the largest permitted window is
            used.
        rng: the generator to draw from; default: the thread's.
        rule: "dali", or "torchvision": windows are drawn, and resized, as by `torchvision.transforms.v2.RandomResizedCrop`.
        antialias, dtype, interp_type, mag_filter, min_filter: see `resize`.
        minibatch_size, temp_buffer_hint: have no effect.

    The windows are those that DALI draws (and have the distribution of torchvision's RandomResizedCrop, except after
    `num_attempts`). With `rule="torchvision"` the window after `num_attempts` is in the middle of the image, and windows are
    cut out before they are resized by `resize` with the same rule. A generator in the same state gives the same windows on CPU
    and GPU, and the window of sample i does not depend on the batch size.

    Raises RuntimeError for other types, an unknown `rule`, for a `size` that is not 1 or 2 numbers of at least 0, for a range
    that ends before it starts and aspect ratios that are not above 0; ValueError for other layouts and filters.

    >>> import ndd, numpy as np
    >>> image = ndd.tensor(np.zeros((40, 60, 3), np.uint8), layout="HWC")
    >>> ndd.random_resized_crop(image, size=[8, 8], rng=ndd.random.RNG(seed=1)).shape
    (8, 8, 3)
    >>> ndd.random_resized_crop(ndd.demo.photo("cat"), size=[224, 224], rng=ndd.random.RNG(2)).shape
    (224, 224, 3)
    """
    check_dtype(input, dtype)
    check_choice("rule", rule, RULES)
    wanted = np.asarray(size)
    if wanted.size not in (1, 2) or (wanted < 0).any():
        raise RuntimeError(f"expected `size` to be 1 or 2 numbers, 0 or more, got {wanted.tolist()}.")
    return like(input, dtype=dtype)


@random_resized_crop.plan
def _(call, input, *, num_attempts, random_area, random_aspect_ratio, rule, size, **arguments):
    axes = spatial_axes(input.layout)
    extents = columns(input.shapes, axes)
    streams, like_torchvision = call.draws.streams(input.n), rule == "torchvision"
    anchors, windows = crop_window(extents, streams, random_area, random_aspect_ratio, num_attempts, like_torchvision)
    sizes = np.where(extents.all(axis=1, keepdims=True), np.broadcast_to(size, (2,)), 0)
    geometry = Geometry(sizes, anchors.astype(np.float32), (anchors + windows).astype(np.float32))
    return resample_plan(input, axes, geometry, rule=rule, **arguments)


# A batch: the two passes of all images are one compiled loop, which plans them too.
random_resized_crop.batch(resample_on_cpu)
random_resized_crop.fuses("decoders")(resampled_part)
random_resized_crop.cuda("resize.cu")(resample_batch)
