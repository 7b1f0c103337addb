"""`ndd.saturation`: the saturation of colours, scaled."""

from __future__ import annotations

from ndd._cpu.linear_color import compute, mix_channels
from ndd._operator import PerSample, operator
from ndd._operator.deprecated import ignored
from ndd._tensor import DType
from ndd.ops.color.linear_color import launch_linear_color, plan_mixing, result
from ndd.types import DALIImageType


@operator(layouts=("HWC", "FHWC", "DHWC"), frames=True)
def saturation(
    input,
    /,
    *,
    dtype: DType | None = None,
    image_type: DALIImageType | None = None,
    saturation: PerSample[float] = 1.0,
):
    """Scales the saturation of colours.

    `out = Q^-1 * diag(1, saturation, saturation) * Q * in` for each RGB pixel, with the matrix of `hsv`. Pillow's
    `ImageEnhance.Color` and torchvision's `adjust_saturation` blend with a grey image: nearly the same.

    Args:
        input: RGB images HWC, volumes DHWC, video FHWC (with arguments for each frame, if they have a leading F);
            without a layout HWC or FHWC by rank. uint8, int16, int32, float16 or float32.
        saturation: 0 makes grey, 1 leaves as it is, more than 1 makes stronger colours.
        dtype: the element type of the result, one of those above; the input's by default. Integers are rounded, halves
            away from zero, and saturate.
        image_type: an old argument without effect.

    Raises RuntimeError for other element types, and for images that have not 3 channels (where DALI reads past their
    end).

    >>> import ndd
    >>> image = ndd.tensor([[[200, 100, 50]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.saturation(image, saturation=0.5).torch().flatten().tolist()
    [162, 112, 87]
    """
    ignored("saturation", "image_type", image_type)
    return result("saturation", input, dtype)


@saturation.old_plan
def _(input, *, dtype, image_type, saturation):
    return plan_mixing(input, 0.0, saturation)


@saturation.cpu_batch
@saturation.cpu
def _(input, out, matrix, moderate):
    compute(mix_channels, input, out, moderate, matrix)


@saturation.cuda("linear_color.cu")
def _(launch, image, out, matrix, pixels):
    launch_linear_color(launch, matrix, pixels)
