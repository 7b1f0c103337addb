"""What is too much for any batch: beyond it a number is a mistake, and would cost minutes before it shows."""

from __future__ import annotations

MOST_SAMPLES = 1 << 20


def check_sample_count(where: str, size: int, kind: type[Exception] = ValueError) -> int:
    """A batch size; an error of this kind for one that no batch has."""
    if size > MOST_SAMPLES:
        raise kind(f"{where}: batch_size: expected at most {MOST_SAMPLES:,} samples in a batch, got {size:,}")
    return size
