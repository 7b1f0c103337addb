"""`ndd.resize`: resizes images, volumes and video."""

from __future__ import annotations

import numpy as np

from ndd._cuda.resample import resample_batch
from ndd._operator import PerSample, like, operator, output
from ndd._operator.deprecated import ignored
from ndd._tensor.dtype import DType, int32
from ndd.ops.image.resample_on_cpu import resample_on_cpu
from ndd.ops.image.resize_geometry import LAYOUTS, TYPES, asked_geometry, check_resize, resample_plan, resampled_part
from ndd.types import DALIImageType, DALIInterpType


@operator(
    layouts=LAYOUTS, masks=True, types=TYPES, outputs=lambda save_attrs: 2 if save_attrs else 1, argument_shapes=False
)
def resize(
    input,
    /,
    *,
    antialias: bool = True,
    dtype: DType | None = None,
    image_type: DALIImageType | None = None,
    interp_type: PerSample[DALIInterpType] = None,
    mag_filter: PerSample[DALIInterpType] = None,
    max_size: list[float] | None = None,
    min_filter: PerSample[DALIInterpType] = None,
    minibatch_size: int = 32,
    mode: str | None = None,
    resize_longer: PerSample[float] = None,
    resize_shorter: PerSample[float] = None,
    resize_x: PerSample[float] = None,
    resize_y: PerSample[float] = None,
    resize_z: PerSample[float] = None,
    roi_end: PerSample[list[float]] = None,
    roi_relative: bool = False,
    roi_start: PerSample[list[float]] = None,
    rule: str = "dali",
    save_attrs: bool = False,
    size: PerSample[list[float]] = None,
    subpixel_scale: bool = True,
    temp_buffer_hint: int = 0,
):
    """Resizes images, volumes and video.

    The size is given in exactly one way: `size`, or some of `resize_x`, `resize_y`, `resize_z`, or
    `resize_shorter`, or `resize_longer`. An extent that is missing (or 0) follows from the others and `mode`; a
    negative one mirrors its axis. Extents are rounded to whole pixels (half up) and are at least 1.

    Args:
        input: u8, i16, u16 or f32; layout HWC, CHW, DHWC or CDHW, with an F (video) before, or within CFHW and CFDHW.
            Without a layout: HWC, FHWC or FDHWC by rank. A mask, HW, counts as one channel and comes out as HW.
        antialias: widen the filter where an axis shrinks, so that every source pixel counts.
        dtype: f32, or the type of the input (the default).
        image_type: deprecated, has no effect.
        interp_type: filter for shrinking and growing axes: NN, LINEAR (default), CUBIC, LANCZOS3, TRIANGULAR (as
            LINEAR) or GAUSSIAN.
        mag_filter, min_filter: instead of `interp_type`, for axes that grow, and for axes that shrink.
        max_size: upper bound of the extents; one number, or one for each spatial axis.
        mode: how a missing extent is computed, and whether the ratio is kept. "default": the result has the given extents, and
            a missing one is scaled by the geometric mean of the others' scales. "stretch": a missing extent stays. "not_larger"
            and "not_smaller" keep the ratio: the largest image that does not exceed the given extents, and the smallest that is
            not less.
        resize_longer, resize_shorter: extent of the longer or shorter side; the ratio is kept.
        resize_x, resize_y, resize_z: width, height, depth.
        roi_start, roi_end: the region of the input to resize, one number for each spatial axis, fractions of pixels
            allowed. `roi_start > roi_end` mirrors. Outside the image its edge is repeated.
        roi_relative: the region is in fractions of the extents.
        rule: "dali", or "torchvision": the sizes and the pixels of `torchvision.transforms.v2.functional.resize`, which are
            also Pillow's. See below.
        save_attrs: a second output, i32, with the extents before resizing.
        size: extents, one for each spatial axis in the order of the layout; or one number for all.
        subpixel_scale: if rounding changed the size, change the region about the centre by the same factor, so that the scale
            is exactly the requested one.
        minibatch_size, temp_buffer_hint: have no effect.

    An output pixel i is at source coordinate `x = start + (i + 0.5) * (end - start) / n_out`, with pixel centres at
    .5: `out[i] = sum of f((j + 0.5 - x) / s) * in[j]` with weights scaled to sum 1, where f is the filter and s is
    `(end - start) / n_out` where that is above 1 and antialiasing is on, else 1. The radius of the triangle is 1 pixel, of the
    cubic (Keys, a = -0.5) 2, of Lanczos 3, of the Gaussian exp(-4 t^2) 1. NN takes pixel floor(x). Of two equally near pixels
    (one in 25,000 pixels of regions) the GPU may take the other one. Sums are float32; integers are rounded and saturated (ties
    as in DALI on the CPU, to even on the GPU). A NaN also affects pixels that give it no weight, as in DALI, but not on the
    GPU, nor along an axis that does not change.

    If one axis of a region, or of a mirrored image, uses NN and another axis another filter, DALI reads pixels of wrong rows;
    ndd reads those of the region.

    With `rule="torchvision"` pixels beyond the edge of the image, or of the region, are left out of the sum in place of
    repeating the edge; filters are computed, not looked up; results in bytes are rounded between the two passes, the horizontal
    one first. The side that follows from `resize_shorter` or `resize_longer` is rounded down to whole pixels, and the region
    does not change. Without `antialias` LINEAR and CUBIC (a = -0.75) are those of `torch.nn.functional.interpolate`, and NN its
    "nearest"; with it NN is "nearest-exact". There is no GAUSSIAN, and LANCZOS3 only with `antialias`. Pixels of a region
    outside the image count as 0. OpenCV does not widen its filters.

    Raises RuntimeError for other types, an unknown `rule`, no size or several, a wrong count of numbers, extents that are not
    finite, an unknown `mode`, a `mode` beside `resize_shorter` or `resize_longer`, `roi_start` or `roi_end` alone or more than
    10,000,000 pixels outside; ValueError for other layouts and filters.

    >>> import ndd
    >>> image = ndd.tensor([[[0], [10], [20], [30]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.resize(image, size=[1, 2], interp_type=ndd.types.INTERP_NN).torch().flatten()
    tensor([10, 30], dtype=torch.uint8)
    >>> ndd.resize(image, resize_x=8, resize_y=1).torch().flatten()
    tensor([ 0,  3,  8, 13, 18, 23, 28, 30], dtype=torch.uint8)
    >>> ndd.resize(ndd.demo.photo("cat"), resize_shorter=120).shape
    (120, 180, 3)
    """
    check_resize("resize", **locals())
    ignored("resize", "image_type", image_type)
    resized = like(input, dtype=dtype)
    return (resized, output(int32, 1)) if save_attrs else resized


@resize.plan
def _(input, **arguments):
    axes, geometry = asked_geometry(input, **arguments)
    plan = resample_plan(input, axes, geometry, **arguments)
    if arguments["save_attrs"]:
        plan.shapes = [plan.shapes, np.full((input.n, 1), len(axes))]
    return plan


# A batch: the two passes of all images are one compiled loop, which plans them too.
@resize.batch
def _(call, plan, image, out, attrs=None):
    if attrs is not None:
        attrs.whole[...] = image.shape_array[:, plan.shared["axes"]]
    resample_on_cpu(call, plan, image, out)


resize.fuses("decoders", "roi_start")(resampled_part)


@resize.cuda("resize.cu")
def _(launch, input, out, saved=None, *, axes, kind, radius):
    resample_batch(launch, input, out, axes=axes, kind=kind, radius=radius)
    if saved is not None:
        launch("save_extents", len(axes), macros={"EXTENTS": 1})
