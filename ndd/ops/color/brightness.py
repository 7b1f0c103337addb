"""`ndd.brightness`: multiplies every element by a factor, and adds a share of the range."""

from __future__ import annotations

from ndd._operator import PerSample, like
from ndd._operator.unit_warnings import warn_of_factors, warn_of_range
from ndd._tensor import DType
from ndd.ops.color.linear_color import scales_elements


@scales_elements
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
            have a leading F); without a layout HWC or FHWC by rank. uint8, int16, int32, float32, or float16 (which
            DALI refuses). A mask, HW, counts as one channel and comes out as HW.
        brightness: a factor.
        brightness_shift: the number to add, as a share of the range of the output type.
        dtype: the element type of the result, one of those above; the input's by default. Integers are rounded, halves
            away from zero, and saturate. (Pillow's `ImageEnhance.Brightness` and torchvision drop the fraction.)

    Raises ValueError for other layouts, RuntimeError for other element types.

    >>> import ndd
    >>> image = ndd.tensor([[[0], [100], [200]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.brightness(image, brightness=1.1, brightness_shift=0.2).torch().flatten().tolist()
    [51, 161, 255]
    >>> ndd.brightness(ndd.demo.photo("coffee"), brightness=1.6).shape
    (267, 400, 3)
    """
    warn_of_factors("brightness", input, brightness=brightness)
    warn_of_range("brightness", input, shift=brightness_shift)
    return like(input, dtype=dtype)
