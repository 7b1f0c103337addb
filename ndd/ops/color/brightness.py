"""`ndd.brightness`: every element times a factor, plus a share of the range."""

from __future__ import annotations

from ndd._cpu.linear_color import compute, scale_and_shift
from ndd._operator import PerSample, operator
from ndd._tensor import DType
from ndd.ops.color.linear_color import launch_linear_color, plan_scaling, result


@operator(layouts=("FHWC", "DHWC", "HWC"), frames=True, elementwise=True)
def brightness(
    input,
    /,
    *,
    brightness: PerSample[float] = 1.0,
    brightness_shift: PerSample[float] = 0.0,
    dtype: DType | None = None,
):
    """Changes the brightness.

    `out = brightness * in + brightness_shift * range` for each element, in 32-bit floats. `range` is the largest number
    of the output type (255 for uint8, 32767, 2147483647), 1 for floats.

    Args:
        input: images HWC with any number of channels, volumes DHWC, video FHWC (with arguments for each frame, if they
            have a leading F); without a layout HWC or FHWC by rank. uint8, int16, int32, float32, or float16 (which DALI
            refuses).
        brightness: a factor.
        brightness_shift: what is added, as a share of the range of the output type.
        dtype: the element type of the result, one of those above; the input's by default. Integers are rounded, halves
            away from zero, and saturate. (Pillow's `ImageEnhance.Brightness` and torchvision drop the fraction.)

    Raises RuntimeError for other element types.

    >>> import ndd
    >>> image = ndd.tensor([[[0], [100], [200]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.brightness(image, brightness=1.1, brightness_shift=0.2).torch().flatten().tolist()
    [51, 161, 255]
    """
    return result("brightness", input, dtype)


@brightness.old_plan
def _(input, *, brightness, brightness_shift, dtype):
    return plan_scaling(input, dtype or input.dtype, brightness, brightness_shift, 1.0, 0.0)


@brightness.cpu_batch
@brightness.cpu
def _(input, out, matrix, moderate):
    compute(scale_and_shift, input, out, moderate, matrix)


@brightness.cuda("linear_color.cu")
def _(launch, image, out, matrix, pixels):
    launch_linear_color(launch, matrix, pixels)
