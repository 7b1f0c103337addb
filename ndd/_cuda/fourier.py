"""Fourier transforms of the rows of a whole ragged batch in one call of cuFFT, by torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cuda.launch import Memory


def memory(launch: Any, counts: np.ndarray, n: int) -> Memory:
    """Memory for `counts[i]` rows of `n` float32 of each sample."""
    return launch.scratch(_room(counts) * n, np.float32)


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


class _Spectra(Memory):
    """The transforms of rows in other memory."""

    __slots__ = ("n", "rows")

    def __init__(self, rows: Memory, n: int):
        super().__init__(0, rows.dtype, rows.offsets // n * (2 * (n // 2 + 1)))
        self.rows = rows
        self.n = n

    def make(self, call: Any) -> None:
        import torch

        self.hold(torch.fft.rfft(self.rows.tensor.view(-1, self.n)))  # with `out=` it would be copied

    def anew(self, held: dict[int, Memory]) -> Memory:
        return _Spectra(held[id(self.rows)], self.n)


def rfft(launch: Any, rows: Memory, n: int) -> Memory:
    """The transforms of all rows of `n` numbers in what `memory` gave: `n // 2 + 1` pairs a row."""
    return launch.made(_Spectra(rows, n))
