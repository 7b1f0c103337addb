"""Sums of neighbouring rows with weights, `out[m] = sum of weights[m, k] * x[k]`: filter banks and cosine transforms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ndd._cpu.jit import kernel

_COLUMNS = (
    288  # that are worked on together: as many of 80 rows stay in the second cache; with 128 it takes a quarter longer
)


class Weights(NamedTuple):
    """Rows of weights without the zeros on both sides: row `m` is for `first[m] <= k < last[m]`."""

    first: np.ndarray
    last: np.ndarray
    start: np.ndarray  # where a row begins in `values`
    values: np.ndarray
    table: np.ndarray  # all of it in one piece, int64, which stays on a GPU


def without_zeros(matrix: np.ndarray) -> Weights:
    """Of a matrix `[rows out, rows in]`; float32."""
    used = np.pad(matrix != 0, ((0, 0), (0, 1)))  # not empty
    found = used.any(axis=1)
    first = np.where(found, used.argmax(axis=1), 0)
    last = np.where(found, used.shape[1] - used[:, ::-1].argmax(axis=1), 0)
    values = [row[a:b] for row, a, b in zip(matrix, first, last, strict=True)]
    start = np.concatenate(([0], np.cumsum(last - first)[:-1]))
    flat = np.concatenate([*values, np.zeros(1)]).astype(np.float32)
    even = np.concatenate((flat, np.zeros(len(flat) % 2, np.float32)))
    first, last, start = (part.astype(np.int64) for part in (first, last, start))
    return Weights(first, last, start, flat, np.concatenate((first, last, start, even.view(np.int64))))


def weighted_sums(x: np.ndarray, out: np.ndarray, weights: Weights) -> None:
    """`x` `[outer, rows in, inner]` to `out` `[outer, rows out, inner]`; float32, C-contiguous."""
    if x.shape[2] == 1:
        _in_rows(x[:, :, 0], out[:, :, 0], *weights[:4])
    else:
        _down_columns(x, out, *weights[:4])


def weighted_columns(x: np.ndarray, out: np.ndarray, weights: Weights) -> None:
    """`x` `[rows in, columns]` to `out` `[rows out, columns]`: each column the same, to the bit, as among more of them."""
    _down_columns(x[None], out[None], *weights[:4])


@kernel(fastmath={"contract"})
def _down_columns(x, out, first, last, start, weights):
    inner = x.shape[2]
    for o in range(len(x)):
        for left in range(0, inner, _COLUMNS):
            right = min(left + _COLUMNS, inner)
            for m in range(len(first)):
                total = out[o, m, left:right]
                total[:] = 0
                k, w = first[m], start[m]
                while k + 4 <= last[m]:
                    a, b, c, d = weights[w], weights[w + 1], weights[w + 2], weights[w + 3]
                    row0, row1 = x[o, k, left:right], x[o, k + 1, left:right]
                    row2, row3 = x[o, k + 2, left:right], x[o, k + 3, left:right]
                    for t in range(total.size):
                        total[t] += a * row0[t] + b * row1[t] + (c * row2[t] + d * row3[t])
                    k += 4
                    w += 4
                while k < last[m]:
                    row, a = x[o, k, left:right], weights[w]
                    for t in range(total.size):
                        total[t] += a * row[t]
                    k += 1
                    w += 1


@kernel(fastmath={"contract", "reassoc"})
def _in_rows(x, out, first, last, start, weights):
    for o in range(len(x)):
        for m in range(len(first)):
            row = x[o, first[m] : last[m]]
            own = weights[start[m] :]
            total = np.float32(0)
            for k in range(row.size):
                total += own[k] * row[k]
            out[o, m] = total
