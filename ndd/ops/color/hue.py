"""`ndd.hue`: rotates the hue of colours."""

from __future__ import annotations

from ndd._operator import PerSample, like
from ndd._operator.deprecated import ignored
from ndd._operator.unit_warnings import warn_of_hue
from ndd._tensor import DType
from ndd.ops.color.linear_color import mixes_channels
from ndd.types import DALIImageType


@mixes_channels
def hue(input, /, *, dtype: DType | None = None, hue: PerSample[float] = 0.0, image_type: DALIImageType | None = None):
    """Rotates the hue of colours by an angle.

    `out = Q^-1 * R(hue) * Q * in` for each RGB pixel, with the matrices of `hsv`: a linear rotation in YIQ, not on the HSV cone
    as in torchvision's `adjust_hue`.

    Args:
        input: RGB images HWC, volumes DHWC, video FHWC (with arguments for each frame, if they have a leading F);
            without a layout HWC or FHWC by rank. uint8, int16, int32, float16 or float32.
        hue: the angle in degrees.
        dtype: the element type of the result, one of those above; the input's by default. Integers are rounded, halves
            away from zero, and saturate.
        image_type: an old argument without effect.

    Raises ValueError for other layouts, RuntimeError for other element types, and for images that do not have 3 channels
    (where DALI reads past their end).

    >>> import ndd
    >>> image = ndd.tensor([[[200, 100, 50]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.hue(image, hue=120.0).torch().flatten().tolist()
    [50, 177, 45]
    >>> ndd.hue(ndd.demo.photo("coffee"), hue=180).shape
    (267, 400, 3)
    """
    ignored("hue", "image_type", image_type)
    warn_of_hue("hue", hue)
    return like(input, dtype=dtype)
