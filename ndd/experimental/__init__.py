"""Operators that DALI has under `experimental`."""

from ndd.experimental import decoders, readers
from ndd.experimental.dilate import dilate
from ndd.experimental.erode import erode
from ndd.experimental.median_blur import median_blur
from ndd.experimental.peek_image_shape import peek_image_shape
from ndd.experimental.remap import remap
from ndd.experimental.resize import resize
from ndd.experimental.warp_perspective import warp_perspective

__all__ = [
    "decoders",
    "dilate",
    "erode",
    "median_blur",
    "peek_image_shape",
    "readers",
    "remap",
    "resize",
    "warp_perspective",
]
