"""`ndd.experimental.resize`: resizes as CV-CUDA does."""

from __future__ import annotations

from ndd._cpu.filter_taps import NN, NN_FUSED
from ndd._operator import PerSample, like, operator, output
from ndd._operator.deprecated import ignored
from ndd._tensor.dtype import DType, int32
from ndd.ops.image.resize import resize as plain_resize
from ndd.ops.image.resize_geometry import LAYOUTS, TYPES, check_resize
from ndd.types import DALIImageType, DALIInterpType


@operator(layouts=LAYOUTS, masks=True, types=TYPES, outputs=lambda save_attrs: 2 if save_attrs else 1)
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
    save_attrs: bool = False,
    size: PerSample[list[float]] = None,
    subpixel_scale: bool = True,
    temp_buffer_hint: int = 0,
):
    """Resizes images, volumes and video as `ndd.resize` does, with another choice between equally near pixels.

    The size is given in exactly one way: `size`, or some of `resize_x`, `resize_y`, `resize_z`, or `resize_shorter`, or
    `resize_longer`. With INTERP_NN, output pixel i is input pixel `floor(i * s + (start + s / 2))`, the sum rounded
    once; `ndd.resize` rounds the product as well, so that it may take the other pixel if `s = (end - start) / n_out` puts a
    place on the border of two. Otherwise the two are equal, including the kernels.

    Args:
        input: u8, i16, u16 or f32; layout HWC, CHW, DHWC or CDHW, with an F (video) before, or within CFHW and CFDHW. A
            mask, HW, counts as one channel and comes out as HW.
        antialias: widen the filter where an axis shrinks.
        dtype: f32, or the type of the input (the default).
        interp_type, mag_filter, min_filter: the filter, the filter of axes that grow, and the filter of axes that shrink.
        size, resize_x, resize_y, resize_z, resize_shorter, resize_longer, mode, max_size: the size of the output.
        roi_start, roi_end, roi_relative: the part of the input that is resized.
        subpixel_scale: if rounding changed the size, change the region by the same factor.
        save_attrs: a second output, i32, with the extents before resizing.
        image_type, minibatch_size, temp_buffer_hint: have no effect.

    See `ndd.resize` for the formulas. Runs on the CPU and the GPU; DALI's runs on the GPU only. PIL and torchvision
    leave out taps beyond the edge instead of repeating it; OpenCV does not widen its filters, and its INTER_NEAREST
    takes pixel `floor(i * s)` (INTER_NEAREST_EXACT and PIL take that of the centre, as here, except between two pixels).

    Raises RuntimeError and ValueError as `ndd.resize`.

    Differences from DALI: a tap exactly at the end of INTERP_GAUSSIAN may count in DALI and not here, or the reverse (2 % of
    the weight); empty images are accepted (DALI crashes).

    >>> import ndd
    >>> image = ndd.tensor([[[0], [10], [20], [30]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.experimental.resize(image, size=[1, 2], interp_type=ndd.types.INTERP_NN).torch().flatten()
    tensor([10, 30], dtype=torch.uint8)
    """
    check_resize("resize", **locals())
    ignored("resize", "image_type", image_type)
    resized = like(input, dtype=dtype)
    return (resized, output(int32, 1)) if save_attrs else resized


@resize.plan
def _(input, **arguments):
    plan = plain_resize.operator.plan(input, **arguments)
    kind = plan.per_sample["kind"]
    kind[kind == NN] = NN_FUSED
    return plan


resize.batch(plain_resize.operator.batch)
resize.cuda("../ops/image/resize.cu")(plain_resize.operator.cuda)
