"""Limits of a picture's size: its pixels, and the memory for decoding it."""

from __future__ import annotations

import numpy as np

_DEFAULT_MAX_PIXELS = 1 << 28  # 16384 x 16384: 0.8 GB as RGB
_max_pixels = _DEFAULT_MAX_PIXELS
_PIXEL_BYTES = 32  # the most memory that a decoder takes for a pixel: JPEG 2000 holds 32-bit numbers twice
_HEADER_BYTES = 1 << 24


def set_max_pixels(count: int | None) -> None:
    """Sets the most pixels (height x width) that a decoder accepts in a call without `max_pixels`.

    A file states its size in a few bytes of its header; a false size of 60000x60000 would cost 10 GB. A larger picture is
    an error, raised before anything is allocated. None restores the default, 2**28.

    Args:
        count: height x width, in pixels; None for the default.

    Raises ValueError for a number that is not positive.

    >>> import ndd
    >>> ndd.decoders.set_max_pixels(4096 * 4096)
    >>> ndd.decoders.get_max_pixels()
    16777216
    >>> ndd.decoders.set_max_pixels(None)
    """
    global _max_pixels
    _max_pixels = _DEFAULT_MAX_PIXELS if count is None else checked(count)


def get_max_pixels() -> int:
    """The most pixels that a decoder accepts in a call without `max_pixels`.

    >>> import ndd
    >>> ndd.decoders.get_max_pixels() == 2**28
    True
    """
    return _max_pixels


def checked(count: int) -> int:
    """The limit itself. ValueError for a number below 1."""
    if count < 1:
        raise ValueError(f"max_pixels: expected a positive number, got {count}")
    return int(count)


def check_memory(pixels: int = 0) -> None:
    """Raises MemoryError if there is not enough memory to decode a picture of this many pixels; by default, to read a header.

    Libraries do not say whether the data was damaged or memory was short.
    """
    needed = _HEADER_BYTES + _PIXEL_BYTES * pixels
    try:
        np.empty(needed, np.uint8)
    except MemoryError:
        raise MemoryError(f"cannot allocate the {needed >> 20} MB that decoding an image takes") from None
