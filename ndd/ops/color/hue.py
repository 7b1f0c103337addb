"""`ndd.hue`: the hue of colours, rotated."""

from __future__ import annotations

from ndd._cpu.linear_color import compute, mix_channels
from ndd._operator import PerSample, operator
from ndd._operator.deprecated import ignored
from ndd._tensor import DType
from ndd.ops.color.linear_color import launch_linear_color, plan_mixing, result
from ndd.types import DALIImageType


@operator(layouts=("HWC", "FHWC", "DHWC"), frames=True)
def hue(input, /, *, dtype: DType | None = None, hue: PerSample[float] = 0.0, image_type: DALIImageType | None = None):
    """Rotates the hue of colours by an angle.

    `out = Q^-1 * R(hue) * Q * in` for each RGB pixel, with the matrices of `hsv`: a linear rotation in YIQ, not the
    one on the HSV cone that torchvision's `adjust_hue` makes.

    Args:
        input: RGB images HWC, volumes DHWC, video FHWC (with arguments for each frame, if they have a leading F);
            without a layout HWC or FHWC by rank. uint8, int16, int32, float16 or float32.
        hue: the angle in degrees.
        dtype: the element type of the result, one of those above; the input's by default. Integers are rounded, halves
            away from zero, and saturate.
        image_type: an old argument without effect.

    Raises RuntimeError for other element types, and for images that have not 3 channels (where DALI reads past their
    end).

    >>> import ndd
    >>> image = ndd.tensor([[[200, 100, 50]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.hue(image, hue=120.0).torch().flatten().tolist()
    [50, 177, 45]
    """
    ignored("hue", "image_type", image_type)
    return result("hue", input, dtype)


@hue.old_plan
def _(input, *, dtype, hue, image_type):
    return plan_mixing(input, hue, 1.0)


@hue.cpu_batch
@hue.cpu
def _(input, out, matrix, moderate):
    compute(mix_channels, input, out, moderate, matrix)


@hue.cuda("linear_color.cu")
def _(launch, image, out, matrix, pixels):
    launch_linear_color(launch, matrix, pixels)
