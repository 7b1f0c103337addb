"""`Values`: a per-sample argument as a plan sees it, in one form however it was passed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._operator.plan import bad_sample
from ndd._tensor.type_guards import is_list


class Values:
    """The value of a `PerSample` argument for each of `n` samples.

    The user may have given one value for all samples, a Batch, or a Tensor; a plan need not know. `each()` and
    `rows(k)` return arrays whose first axis is the samples, or raise errors for values of another shape.
    """

    __slots__ = ("_value", "kind", "layout", "n", "name", "varies", "vector")

    def __init__(
        self, name: str, value: Any, n: int, kind: np.dtype, vector: bool, varies: bool, layout: str | None = None
    ):
        self.name = name
        self.n = n
        self.kind = kind
        self.vector = vector
        self.varies = varies
        """Whether the samples have values of their own: a Batch was given, or one value for each frame."""
        self.layout = layout
        """The same property of the Batch or Tensor that was passed."""
        self._value = value  # if `varies`: an array [n, ...] or a list of n arrays; else a number or an array

    def each(self) -> np.ndarray:
        """One number for each sample: `[n]`."""
        value = self._value
        if not self.varies:
            numbers = np.empty(self.n, self.kind)
            numbers.fill(value)
            return numbers
        return value

    def rows(self, k: int | None = None, *, repeat: bool = False, meaning: str = "") -> np.ndarray:
        """A row of `k` numbers for each sample: `[n, k]`; `k=None`: as many as there are, but equally many in all samples.

        Args:
            repeat: one number stands for `k` equal ones.
            meaning: the meaning of the numbers, for the error: "(H, W)".
        """
        value = self._value
        if is_list(value):
            wrong = [i for i, a in enumerate(value) if a.ndim != 1 or a.size != (value[0].size if k is None else k)]
            if wrong and not repeat:
                raise self._misfit(value[wrong[0]], k, meaning, wrong[0])
            return np.stack([self._row(a, k, repeat, meaning, i) for i, a in enumerate(value)])
        if self.varies:
            if value.ndim == 2 and (k is None or value.shape[1] == k):
                return value
            if value.ndim == 2 and repeat and value.shape[1] == 1:
                return np.repeat(value, k, axis=1)  # type: ignore[arg-type]
            raise self._misfit(value[0], k, meaning, 0 if len(value) else None)
        value = np.atleast_1d(value)
        if value.ndim == 2 and len(value) == self.n > 1 and k in (None, value.shape[1]):
            return value  # a list with a row for each sample
        row = self._row(value, k, repeat, meaning, None)
        table = np.empty((self.n, len(row)), row.dtype)  # `broadcast_to` takes five times as long
        table[:] = row
        return table

    def matrices(self, rows: int, columns: int) -> np.ndarray:
        """A matrix for each sample: `[n, rows, columns]`; its numbers may have been given as one row."""
        value = self._value if self.varies else np.asarray(self._value)[None]
        for i, matrix in enumerate(value if is_list(value) else value[:1]):
            if matrix.shape not in ((rows, columns), (rows * columns,)):
                text = f"argument {self.name!r}: expected {rows} x {columns} numbers, got {_shown(matrix)}"
                raise self.error(i, text)
        values: Any = np.stack([matrix.reshape(-1) for matrix in value]) if is_list(value) else value
        return np.broadcast_to(values.reshape(-1, rows, columns), (self.n, rows, columns))

    @property
    def numbers(self) -> Any:
        """The number for all samples, or an array `[n]`, for arithmetic that broadcasts."""
        return self._value

    def _row(self, row: np.ndarray, k: int | None, repeat: bool, meaning: str, sample: int | None) -> np.ndarray:
        if row.ndim == 1 and (k is None or row.size == k):
            return row
        if repeat and row.size == 1 and k is not None:
            return np.repeat(row.reshape(-1), k)
        raise self._misfit(row, k, meaning, sample)

    def arrays(self) -> list[np.ndarray]:
        """The values of each sample, of any shape: a list of `n` arrays."""
        if not self.varies:
            return [np.asarray(self._value)] * self.n
        return list(self._value)

    def distinct(self) -> list[np.ndarray]:
        """As `arrays`, but a single array if it holds for all samples."""
        return self.arrays() if self.varies else [np.asarray(self._value)]

    def error(self, sample: int, text: str) -> Exception:
        """An error about the value of a sample; about the argument if one value holds for all."""
        return bad_sample(sample, text) if self.varies else RuntimeError(text)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """The array that NumPy gets: `rows()` of an argument that is a list of numbers, else `each()`."""
        numbers = self.rows() if self.vector else self.each()
        return numbers if dtype is None else numbers.astype(dtype, copy=False)

    @property
    def whole(self) -> np.ndarray | None:
        """The values of all samples as one array `[n, ...]`; None if their shapes differ."""
        if not self.varies:
            return np.broadcast_to(self._value, (self.n, *np.shape(self._value)))
        return None if is_list(self._value) else self._value

    @property
    def constant(self) -> Any:
        """The value that holds for all samples; None if they have values of their own."""
        return None if self.varies else self._value

    def repeated(self, counts: np.ndarray) -> Values:
        """The values of samples for each of their frames, `counts[i]` of sample i."""
        value = self._value
        if self.varies:
            value = (
                [a for a, c in zip(value, counts, strict=True) for _ in range(c)]
                if is_list(value)
                else np.repeat(value, counts, axis=0)
            )
        return Values(self.name, value, int(counts.sum()), self.kind, self.vector, self.varies)

    def _misfit(self, row: np.ndarray, k: int | None, meaning: str, sample: int | None) -> Exception:
        expected = "as many numbers for every sample" if k is None else f"{k} numbers{meaning and f', {meaning}'}"
        if k == 1:
            expected = "one number"
        text = f"argument {self.name!r}: expected {expected}, got {_shown(row)}"
        return RuntimeError(text) if sample is None else bad_sample(sample, text)


def _shown(row: np.ndarray) -> str:
    if row.ndim == 1:
        return f"{row.size}: {row.tolist()}" if row.size <= 8 else str(row.size)
    return f"an array of shape {tuple(row.shape)}"
