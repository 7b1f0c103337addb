"""Fourier transforms of the rows of a whole ragged batch in one call of cuFFT, by torch."""

from __future__ import annotations

from typing import Any

import numpy as np


def memory(launch: Any, counts: np.ndarray, n: int) -> tuple[Any, Any]:
    """Memory for `counts[i]` rows of `n` float32 of each sample, and for their transforms: `n // 2 + 1` pairs a row."""
    rows = _room(counts)
    return launch.scratch(rows * n, np.float32), launch.scratch(rows * (2 * (n // 2 + 1)), np.float32)


def _room(counts: np.ndarray) -> np.ndarray:
    """Rows to make room for, of each sample: `counts`, and some more behind the last sample.

    torch keeps a plan of cuFFT for every number of rows that it has seen; making one takes longer than the transform. With
    totals rounded up to an eighth of a power of two, batches of all lengths share a few.
    """
    total = max(1, int(counts.sum()))
    step = max(1, (1 << total.bit_length()) >> 4)
    found = counts.copy()
    found[-1:] += -total % step + (total - int(counts.sum()))
    return found


def rfft(rows: Any, spectra: Any, n: int) -> None:
    """Transforms all rows of `n` numbers, between what `memory` gave."""
    import torch

    pairs = spectra.tensor.view(-1, n // 2 + 1, 2)
    torch.fft.rfft(rows.tensor.view(-1, n), out=torch.view_as_complex(pairs))
