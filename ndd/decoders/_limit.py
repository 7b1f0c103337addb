"""How large a picture may be."""

from __future__ import annotations

_DEFAULT_MAX_PIXELS = 1 << 28  # 16384 x 16384: 0.8 GB as RGB
_max_pixels = _DEFAULT_MAX_PIXELS


def set_max_pixels(count: int | None) -> None:
    """Sets how many pixels (height x width) a decoder takes on, for calls that do not say `max_pixels`.

    A file claims its size in a few bytes of header; a false claim of 60000x60000 would cost 10 GB. Larger pictures are
    errors, found before anything is allocated. None goes back to the default of 2**28.

    >>> import ndd
    >>> ndd.decoders.set_max_pixels(4096 * 4096)
    >>> ndd.decoders.get_max_pixels()
    16777216
    >>> ndd.decoders.set_max_pixels(None)
    """
    global _max_pixels
    _max_pixels = _DEFAULT_MAX_PIXELS if count is None else checked(count)


def get_max_pixels() -> int:
    """How many pixels a decoder takes on if the call does not say."""
    return _max_pixels


def checked(count: int) -> int:
    """The limit, if it is one; ValueError otherwise."""
    if count < 1:
        raise ValueError(f"max_pixels: expected a positive number, got {count}")
    return int(count)
