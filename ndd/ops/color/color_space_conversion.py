"""`ndd.color_space_conversion`: RGB, BGR, grey and YCbCr."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from ndd._cpu.linear_color import (
    by,
    grey,
    merge_channels,
    mix_channels,
    repeat_channel,
    spread_channel,
    swap_channels,
)
from ndd._operator import Plan, bad_sample, like, operator
from ndd.ops.color.linear_color import launch_linear_color
from ndd.types import BGR, GRAY, RGB, DALIImageType, YCbCr

_CHANNELS = {RGB: 3, BGR: 3, GRAY: 1, YCbCr: 3}
_LUMA = np.array([0.299, 0.587, 0.114])
_CHROMA = 2 * (1 - _LUMA[2]), 2 * (1 - _LUMA[0])  # the spans of B - Y and R - Y
_Y_SPAN, _C_SPAN = 219 / 255, 224 / 255  # of the studio swing, relative to 0 to 255


def _from_rgb() -> np.ndarray:
    """YCbCr from RGB, [3, 4]."""
    blue = (np.array([0.0, 0.0, 1.0]) - _LUMA) / _CHROMA[0]
    red = (np.array([1.0, 0.0, 0.0]) - _LUMA) / _CHROMA[1]
    return np.column_stack([np.stack([_LUMA * _Y_SPAN, blue * _C_SPAN, red * _C_SPAN]), [16, 128, 128]])


def _to_rgb() -> np.ndarray:
    """RGB from YCbCr, [3, 4]."""
    blue, red = _CHROMA[0] / _C_SPAN, _CHROMA[1] / _C_SPAN
    green = -_LUMA[2] / _LUMA[1] * blue, -_LUMA[0] / _LUMA[1] * red
    factors = np.array([[0, red], green, [blue, 0]])
    return np.column_stack([np.full(3, 1 / _Y_SPAN), factors, -16 / _Y_SPAN - 128 * factors.sum(axis=1)])


@cache
def _matrix(source: DALIImageType, target: DALIImageType) -> np.ndarray:
    """Rows of factors for the channels of `source`, and an offset."""
    if source == GRAY:
        rows = [[_Y_SPAN, 16], [0, 128], [0, 128]] if target == YCbCr else [[1, 0]] * 3
    elif target == GRAY:
        # OpenCV's weights for grey: float arithmetic is exact with these numbers.
        rows = (
            [[1 / _Y_SPAN, 0, 0, -16 / _Y_SPAN]] if source == YCbCr else [[w / 32768 for w in (9798, 19235, 3735, 0)]]
        )
    elif target == YCbCr:
        rows = _from_rgb()
    else:
        rows = _to_rgb() if source == YCbCr else np.eye(3, 4)
    matrix = np.array(rows, np.float32)
    if source == BGR:
        matrix[:, [0, 2]] = matrix[:, [2, 0]]
    if target == BGR:
        matrix = matrix[::-1].copy()
    return matrix


@operator(layouts=("FDHWC", "FHWC", "DHWC", "HWC"), types=("u8",), cut="rows")
def color_space_conversion(input, /, *, image_type: DALIImageType, output_type: DALIImageType):
    """Converts uint8 images between RGB, BGR, grey and YCbCr.

    * `GRAY = .299 R + .587 G + .114 B`, the weights as whole 32768ths, as in OpenCV and DALI.
    * YCbCr is that of BT.601 in studio swing: `Y = 16 + 219/255 * GRAY`, `Cb = 128 + 224/255 * (B - GRAY) / 1.772`,
      `Cr = 128 + 224/255 * (R - GRAY) / 1.402`, with unrounded weights; RGB from YCbCr is the inverse. OpenCV's
      `COLOR_RGB2YCrCb`, Pillow and JPEG files use the full swing.
    * `Y = 16 + 219/255 * GRAY`, `Cb = Cr = 128` from grey, and `GRAY = 255/219 * (Y - 16)` from YCbCr.

    All are rounded to the nearest number and saturate. Where the true value lies within 1e-5 of a half, which is one
    element in 100,000, the result may be DALI's plus or minus 1.

    Args:
        input: uint8, HWC, DHWC, FHWC or FDHWC; without a layout HWC, FHWC or FDHWC by rank. The channels are those of
            `image_type`: 1 for GRAY, else 3. Images without pixels stay so (DALI refuses some).
        image_type: the colour space of the input: `ndd.types.RGB`, `BGR`, `GRAY` or `YCbCr`.
        output_type: the colour space of the result, a different one of these.

    Raises ValueError for other layouts, RuntimeError for other element types, other numbers of channels, and if both
    types are the same.

    >>> import ndd
    >>> image = ndd.tensor([[[200, 100, 50]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.color_space_conversion(image, image_type=ndd.types.RGB, output_type=ndd.types.GRAY).torch().tolist()
    [[[124]]]
    >>> ndd.color_space_conversion(ndd.demo.photo("coffee"), image_type=ndd.types.RGB, output_type=ndd.types.YCbCr).shape
    (267, 400, 3)
    """
    for name, kind in (("image_type", image_type), ("output_type", output_type)):
        if kind not in _CHANNELS:
            raise RuntimeError(f"color_space_conversion: `{name}`: expected RGB, BGR, GRAY or YCbCr, got {kind.name}")
    if image_type == output_type:
        raise RuntimeError(f"color_space_conversion: `output_type` is `image_type`, {image_type.name}")
    return like(input)


@color_space_conversion.plan
def _(input, *, image_type, output_type):
    channels = input.shapes[:, -1]
    wrong = channels != _CHANNELS[image_type]
    if wrong.any():
        sample = int(wrong.argmax())
        text = f"expected {_CHANNELS[image_type]} channels for {image_type.name}, got {channels[sample]}"
        raise bad_sample(sample, text)
    shapes = input.shapes
    if _CHANNELS[image_type] != _CHANNELS[output_type]:
        shapes = shapes.copy()
        shapes[:, -1] = _CHANNELS[output_type]
    matrix, kind = _matrix(image_type, output_type), input.dtype.numpy
    if YCbCr in (image_type, output_type):
        loop = spread_channel if image_type == GRAY else merge_channels if output_type == GRAY else mix_channels
        chosen = by(loop, kind, kind, True)
    elif output_type == GRAY:
        chosen = partial(grey, reverse=image_type == BGR)
    else:
        chosen = repeat_channel if image_type == GRAY else swap_channels
    return Plan(shapes, shared={"matrix": matrix}, kernel=chosen, view="rows")


color_space_conversion.cuda("linear_color.cu")(launch_linear_color)
