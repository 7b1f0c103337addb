"""Operators that DALI has under `experimental`."""

from ndd.experimental.warp_perspective import warp_perspective

__all__ = ["warp_perspective"]
