"""`ndd.brightness_contrast`: contrast, then brightness."""

from __future__ import annotations

from ndd._operator import PerSample, like
from ndd._operator.unit_warnings import warn_of_factors, warn_of_range
from ndd._tensor import DType
from ndd.ops.color.linear_color import scales_elements


@scales_elements
def brightness_contrast(
    input,
    /,
    *,
    brightness: PerSample[float] = 1.0,
    brightness_shift: PerSample[float] = 0.0,
    contrast: PerSample[float] = 1.0,
    contrast_center: PerSample[float] = None,
    dtype: DType | None = None,
):
    """Changes the contrast, then the brightness.

    `out = brightness_shift * range + brightness * (contrast_center + contrast * (in - contrast_center))` for each
    element, in 32-bit floats and with one rounding at the end. `range` is the largest number of the output type (255 for
    uint8, 32767, 2147483647), 1 for floats.

    Args:
        input: images HWC with any number of channels, volumes DHWC, video FHWC (with arguments for each frame, if they
            have a leading F); without a layout HWC or FHWC by rank. uint8, int16, int32, float32, or float16 (which
            DALI refuses). A mask, HW, counts as one channel and comes out as HW.
        brightness: a factor.
        brightness_shift: the number to add, as a share of the range of the output type.
        contrast: 0 makes everything `contrast_center`, 1 changes nothing.
        contrast_center: the value that contrast does not change. Default: half the range of the input type: 128 for uint8,
            2**14 for int16, 2**30 for int32, 0.5 for floats.
        dtype: the element type of the result, one of those above; the input's by default. Integers are rounded, halves
            away from zero, and saturate.

    Raises ValueError for other layouts, RuntimeError for other element types. Pillow's and torchvision's contrast
    leaves the mean of the image as it is, not the middle of the range.

    >>> import ndd
    >>> image = ndd.tensor([[[0], [100], [200]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.brightness_contrast(image, brightness=1.5, contrast=0.5, brightness_shift=0.1).torch().flatten().tolist()
    [122, 197, 255]
    >>> ndd.brightness_contrast(ndd.demo.photo("coffee"), brightness=1.2, contrast=1.8).shape
    (267, 400, 3)
    """
    warn_of_factors("brightness_contrast", input, brightness=brightness, contrast=contrast)
    warn_of_range("brightness_contrast", input, shift=brightness_shift, center=contrast_center)
    return like(input, dtype=dtype)
