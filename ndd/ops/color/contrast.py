"""`ndd.contrast`: scales distances from a centre."""

from __future__ import annotations

from ndd._operator import PerSample, like
from ndd._operator.unit_warnings import warn_of_factors, warn_of_range
from ndd._tensor import DType
from ndd.ops.color.linear_color import scales_elements


@scales_elements
def contrast(
    input,
    /,
    *,
    contrast: PerSample[float] = 1.0,
    contrast_center: PerSample[float] = None,
    dtype: DType | None = None,
):
    """Changes the contrast.

    `out = contrast_center + contrast * (in - contrast_center)` for each element, in 32-bit floats. Pillow's and
    torchvision's contrast leaves the mean of the image as it is, not the middle of the range.

    Args:
        input: images HWC with any number of channels, volumes DHWC, video FHWC (with arguments for each frame, if they
            have a leading F); without a layout HWC or FHWC by rank. uint8, int16, int32, float32, or float16 (which
            DALI refuses). A mask, HW, counts as one channel and comes out as HW.
        contrast: 0 makes everything `contrast_center`, 1 changes nothing.
        contrast_center: the value that contrast does not change. Default: half the range of the input type: 128 for uint8,
            2**14 for int16, 2**30 for int32, 0.5 for floats.
        dtype: the element type of the result, one of those above; the input's by default. Integers are rounded, halves
            away from zero, and saturate.

    Raises ValueError for other layouts, RuntimeError for other element types.

    >>> import ndd
    >>> image = ndd.tensor([[[0], [100], [200]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.contrast(image, contrast=0.5).torch().flatten().tolist()
    [64, 114, 164]
    >>> ndd.contrast(ndd.demo.photo("coffee"), contrast=2).shape
    (267, 400, 3)
    """
    warn_of_factors("contrast", input, contrast=contrast)
    warn_of_range("contrast", input, center=contrast_center)
    return like(input, dtype=dtype)
