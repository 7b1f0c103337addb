"""The largest batch size. A larger number is a mistake that would take minutes to show."""

from __future__ import annotations

from operator import index
from typing import Any

MOST_SAMPLES = 1 << 20


def check_sample_count(where: str, size: int, kind: type[Exception] = ValueError) -> int:
    """The batch size; raises an error of this kind if it is too large."""
    if size > MOST_SAMPLES:
        raise kind(f"{where}: batch_size: expected at most {MOST_SAMPLES:,} samples in a batch, got {size:,}")
    return size


def sample_count(where: str, batch_size: Any) -> int:
    """A user's `batch_size` as a number of samples; TypeError or ValueError if it is not one."""
    try:
        size = index(batch_size)
    except TypeError:
        raise TypeError(f"{where}: batch_size must be an integer, got {batch_size!r}") from None
    if size < 0:
        raise ValueError(f"{where}: batch_size must not be negative, got {size}")
    return check_sample_count(where, size)
