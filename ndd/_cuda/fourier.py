"""Fourier transforms of the rows of a whole ragged batch in one call of cuFFT, by torch."""

from __future__ import annotations

from typing import Any

import numpy as np


def room(counts: np.ndarray) -> np.ndarray:
    """Rows to make room for, of each sample: `counts`, and some more behind the last sample.

    torch keeps a plan of cuFFT for every number of rows that it has seen; making one takes longer than the transform. With
    totals rounded up to an eighth of a power of two, batches of all lengths share a few.
    """
    total = max(1, int(counts.sum()))
    step = max(1, (1 << total.bit_length()) >> 4)
    found = counts.copy()
    found[-1:] += -total % step + (total - int(counts.sum()))
    return found


def rfft(launch: Any, rows: Any, counts: np.ndarray, n: int) -> Any:
    """The transforms of `counts[i]` rows of `n` float32 of each sample: memory of pairs of float32, `n // 2 + 1` a row.

    `rows` is `launch.scratch(room(counts) * n, np.float32)`.
    """
    import torch

    bins = n // 2 + 1
    spectra = launch.scratch(room(counts) * (2 * bins), np.float32)
    torch.fft.rfft(rows.tensor.view(-1, n), out=torch.view_as_complex(spectra.tensor.view(-1, bins, 2)))
    return spectra
