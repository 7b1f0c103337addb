"""Operators that DALI has under `experimental`."""

from ndd.experimental import decoders
from ndd.experimental.peek_image_shape import peek_image_shape
from ndd.experimental.warp_perspective import warp_perspective

__all__ = ["decoders", "peek_image_shape", "warp_perspective"]
