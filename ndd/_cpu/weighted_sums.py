"""Sums of neighbouring rows with weights, `out[m] = sum of weights[m, k] * x[k]`: filter banks and cosine transforms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ndd._cpu.inlined import zeros
from ndd._cpu.jit import kernel
from ndd._cpu.lanes import COLUMNS, TILE, sum_few, sum_rows, turn_tile

_TOGETHER = 1152  # columns that are worked on together: as many of 20 rows stay in the second cache


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


def weighted_sums(
    x: np.ndarray, out: np.ndarray, starts: np.ndarray, targets: np.ndarray, outer: np.ndarray, inner: np.ndarray,
    length: int, weights: Weights,
) -> None:  # fmt: skip
    """Of each sample from `starts` on in `x`, 1-D, seen as `[outer, length, inner]`, to `out`, 1-D, from `targets` on, where it
    is `[outer, rows of weights, inner]`. float32; places and extents are int64 `[N]`."""
    # Two kernels: who needs one of them does not wait for the other.
    if inner.max() == 1:
        _rows_of_each(x, out, starts, targets, outer * inner, length, *weights[:4])
    else:
        _columns_of_each(x, out, starts, targets, outer, inner, length, *weights[:4])


def weighted_columns(x: np.ndarray, out: np.ndarray, weights: Weights) -> None:
    """`x` `[rows in, columns]` to `out` `[rows out, columns]`: each column the same, to the bit, as among more of them."""
    _down_columns(x.reshape(-1), out.reshape(-1), len(x), x.shape[1], *weights[:4])


@kernel
def _columns_of_each(x, out, starts, targets, outer, inner, length, first, last, start, weights):
    for n in range(len(starts)):
        for o in range(outer[n]):
            own = x[starts[n] + o * length * inner[n] :]
            _down_columns(
                own, out[targets[n] + o * len(first) * inner[n] :], length, inner[n], first, last, start, weights
            )


@kernel
def _rows_of_each(x, out, starts, targets, lines, length, first, last, start, weights):
    rows = len(first)
    for n in range(len(starts)):
        own, target = x[starts[n] : starts[n] + lines[n] * length], out[targets[n] : targets[n] + lines[n] * rows]
        _in_rows(own.reshape(lines[n], length), target.reshape(lines[n], rows), first, last, start, weights)


@kernel
def _down_columns(x, out, length, inner, first, last, start, weights):
    """`x` `[length, inner]` to `out` `[rows out, inner]`, both 1-D."""
    if inner >= TILE:
        _sums(x, out, inner, first, last, start, weights)
        return
    columns, sums = zeros(length * TILE, np.float32), zeros(len(first) * TILE, np.float32)
    for k in range(length):
        for t in range(inner):
            columns[k * TILE + t] = x[k * inner + t]
    _sums(columns, sums, TILE, first, last, start, weights)
    for m in range(len(first)):
        for t in range(inner):
            out[m * inner + t] = sums[m * TILE + t]


@kernel
def _in_rows(x, out, first, last, start, weights):
    """`x` `[lines, rows in]` to `out` `[lines, rows out]`: some lines at once, as columns."""
    length, rows = x.shape[1], out.shape[1]
    wide = COLUMNS if len(x) > COLUMNS // 2 else TILE
    columns, sums = zeros(length * wide, np.float32), zeros(rows * wide, np.float32)
    for line in range(0, len(x), wide):
        own = x[line : line + wide]
        _turn(own, columns.reshape(length, wide), len(own), length)
        _sums(columns, sums, wide, first, last, start, weights)
        _turn(sums.reshape(rows, wide), out[line : line + wide], rows, len(own))


@kernel
def _sums(x, out, inner, first, last, start, weights):
    """As `_down_columns`, of 16 columns at least; at the end some are done twice."""
    if inner < COLUMNS:
        for m in range(len(first)):
            for column in range(0, inner, TILE):
                t = min(column, inner - TILE)
                sum_few(x, first[m] * inner + t, inner, weights, start[m], last[m] - first[m], out, m * inner + t)
        return
    for left in range(0, inner, _TOGETHER):
        for m in range(len(first)):
            for column in range(left, min(left + _TOGETHER, inner), COLUMNS):
                t = min(column, inner - COLUMNS)
                sum_rows(x, first[m] * inner + t, inner, weights, start[m], last[m] - first[m], out, m * inner + t)


@kernel
def _turn(x, out, rows, columns):
    """`out[:columns, :rows] = x[:rows, :columns].T`"""
    for i in range(0, rows, TILE):
        for j in range(0, columns, TILE):
            if i + TILE <= rows and j + TILE <= columns:
                turn_tile(x, i, j, out, j, i)
            else:
                for k in range(i, min(i + TILE, rows)):
                    for l in range(j, min(j + TILE, columns)):
                        out[l, k] = x[k, l]
