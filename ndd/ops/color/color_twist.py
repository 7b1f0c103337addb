"""`ndd.color_twist`: hue, saturation, contrast and brightness at once."""

from __future__ import annotations

from ndd._operator import PerSample, like
from ndd._operator.deprecated import ignored
from ndd._operator.unit_warnings import warn_of_factors, warn_of_hue
from ndd._tensor import DType
from ndd.ops.color.linear_color import mixes_channels
from ndd.types import DALIImageType


@mixes_channels
def color_twist(
    input,
    /,
    *,
    brightness: PerSample[float] = 1.0,
    contrast: PerSample[float] = 1.0,
    dtype: DType | None = None,
    hue: PerSample[float] = 0.0,
    image_type: DALIImageType | None = None,
    saturation: PerSample[float] = 1.0,
):
    """Changes hue, saturation, contrast and brightness by one matrix for each image.

    `out = brightness * (contrast * (M * in - grey) + grey)` for each RGB pixel, in 32-bit floats and with one rounding
    at the end. `M = Q^-1 * R(hue) * diag(1, saturation, saturation) * Q` is the matrix of `hsv`; `grey` is 128 for
    integers and 0.5 for floats. torchvision's `ColorJitter` applies the four one after the other, in random order, with
    the mean of the image as grey.

    Args:
        input: RGB images HWC, volumes DHWC, video FHWC (with arguments for each frame, if they have a leading F);
            without a layout HWC or FHWC by rank. uint8, int16, int32, float16 or float32.
        brightness: a factor.
        contrast: 0 makes grey, 1 changes nothing.
        hue: the angle in degrees.
        saturation: 0 makes grey, 1 changes nothing.
        dtype: the element type of the result, one of those above; the input's by default. Integers are rounded, halves
            away from zero, and saturate.
        image_type: an old argument without effect.

    Raises ValueError for other layouts, RuntimeError for other element types, and for images that do not have 3 channels
    (where DALI reads past their end).

    >>> import ndd
    >>> image = ndd.tensor([[[200, 100, 50]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.color_twist(image, brightness=1.2, contrast=0.5, hue=10.0).torch().flatten().tolist()
    [192, 142, 93]
    >>> ndd.color_twist(ndd.demo.photo("coffee"), hue=60, saturation=1.5, contrast=1.2).shape
    (267, 400, 3)
    """
    ignored("color_twist", "image_type", image_type)
    warn_of_factors("color_twist", input, brightness=brightness, contrast=contrast, saturation=saturation)
    warn_of_hue("color_twist", hue)
    return like(input, dtype=dtype)
