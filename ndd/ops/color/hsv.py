"""`ndd.hsv`: hue, saturation and value of colours."""

from __future__ import annotations

from ndd._operator import PerSample, like
from ndd._operator.unit_warnings import warn_of_factors, warn_of_hue
from ndd._tensor import DType
from ndd._tensor.dtype import uint8
from ndd.ops.color.linear_color import mixes_channels


@mixes_channels
def hsv(
    input,
    /,
    *,
    dtype: DType = uint8,
    hue: PerSample[float] = 0.0,
    saturation: PerSample[float] = 1.0,
    value: PerSample[float] = 1.0,
):
    """Rotates the hue, and scales the saturation and the value of colours, by one matrix for each image.

    `out = value * Q^-1 * R(hue) * diag(1, saturation, saturation) * Q * in` for each RGB pixel, in 32-bit floats, where
    `Q` goes from RGB to YIQ, `Q = [[.299, .587, .114], [.596, -.274, -.321], [.211, -.523, .311]]`, and
    `R(hue) = [[1, 0, 0], [0, cos, sin], [0, -sin, cos]]`. This is linear, and not the HSV cone of OpenCV's and Pillow's
    conversions or of torchvision's `adjust_hue`: greys stay grey, and saturated colours may leave the range and are clipped.

    Args:
        input: RGB images HWC, volumes DHWC, video FHWC (with arguments for each frame, if they have a leading F);
            without a layout HWC or FHWC by rank. uint8, int16, int32, float16 or float32.
        hue: the angle in degrees.
        saturation: 0 makes grey, 1 changes nothing.
        value: a factor on all channels.
        dtype: the element type of the result, one of those above. Default: uint8, whatever the input is. Integers are rounded,
            halves away from zero, and saturate.

    Raises ValueError for other layouts, RuntimeError for other element types, and for images that do not have 3 channels
    (where DALI reads past their end).

    >>> import ndd
    >>> image = ndd.tensor([[[200, 100, 50]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.hsv(image, saturation=0.0).torch().flatten().tolist()
    [124, 124, 125]
    >>> ndd.hsv(ndd.demo.photo("coffee"), hue=120, saturation=1.3, value=0.9).shape
    (267, 400, 3)
    """
    warn_of_factors("hsv", input, saturation=saturation, value=value)
    warn_of_hue("hsv", hue)
    return like(input, dtype=dtype)
