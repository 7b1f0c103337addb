"""`ndd.saturation`: scales the saturation of colours."""

from __future__ import annotations

from ndd._operator import PerSample, like
from ndd._operator.deprecated import ignored
from ndd._operator.unit_warnings import warn_of_factors
from ndd._tensor import DType
from ndd.ops.color.linear_color import mixes_channels
from ndd.types import DALIImageType


@mixes_channels
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
        saturation: 0 makes grey, 1 changes nothing, more than 1 makes stronger colours.
        dtype: the element type of the result, one of those above; the input's by default. Integers are rounded, halves
            away from zero, and saturate.
        image_type: an old argument without effect.

    Raises ValueError for other layouts, RuntimeError for other element types, and for images that do not have 3 channels
    (where DALI reads past their end).

    >>> import ndd
    >>> image = ndd.tensor([[[200, 100, 50]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.saturation(image, saturation=0.5).torch().flatten().tolist()
    [162, 112, 87]
    >>> ndd.saturation(ndd.demo.photo("coffee"), saturation=0.2).shape
    (267, 400, 3)
    """
    ignored("saturation", "image_type", image_type)
    warn_of_factors("saturation", input, saturation=saturation)
    return like(input, dtype=dtype)
