"""Fourier transforms of all rows of a ragged batch in one call of cuFFT, through torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ndd._cuda.launch import Memory, counted


class Rows(Memory):
    """Rows of `n` float32. Those of sample `i` begin at row `starts[i]`."""

    __slots__ = ("n", "starts")

    def __init__(self, count: int, starts: np.ndarray, n: int):
        super().__init__(count * n, torch.float32, starts, 4 * n)
        self.starts = starts
        self.n = n

    def anew(self, held: dict[int, Memory]) -> Memory:
        return Rows(self.count // self.n, self.starts, self.n)


def memory(launch: Any, counts: np.ndarray, n: int) -> Rows:
    """Memory for `counts[i]` rows of `n` float32 of each sample."""
    volumes = counted(counts.reshape(-1, 1))
    return launch.make_memory(Rows(_room(volumes.total), volumes.offsets, n))


def _room(total: int) -> int:
    """The number of rows to allocate.

    torch caches a cuFFT plan for every number of rows that it has seen, and making a plan takes longer than the transform.
    Totals are rounded up to an eighth of a power of two, so that batches of all lengths share a few plans.
    """
    total = max(1, total)
    step = max(1, (1 << total.bit_length()) >> 4)
    return -(-total // step) * step


class _Spectra(Memory):
    """The transforms of rows, in memory of their own."""

    __slots__ = ("rows",)

    def __init__(self, rows: Rows):
        super().__init__(0, rows.dtype, rows.starts, 8 * (rows.n // 2 + 1))
        self.rows = rows

    def make(self, call: Any) -> None:
        self.hold(torch.fft.rfft(self.rows.tensor.view(-1, self.rows.n)))  # `out=` would copy it

    def anew(self, held: dict[int, Memory]) -> Memory:
        return _Spectra(held[id(self.rows)])  # type: ignore[arg-type]


def rfft(launch: Any, rows: Rows) -> Memory:
    """The transforms of all rows in the result of `memory`: `n // 2 + 1` pairs a row."""
    return launch.make_memory(_Spectra(rows))
