"""Sums of neighbouring rows with weights, `out[m] = sum of weights[m, k] * x[k]`: filter banks and cosine transforms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ndd._compiled.intrinsics import zeros
from ndd._compiled.jit import kernel
from ndd._compiled.simd import COLUMNS, TILE, sum_few, sum_rows, transpose_tile

_TOGETHER = 1152  # columns that are computed together: this many columns of 20 rows fit into the L2 cache


class Weights(NamedTuple):
    """Rows of weights without the zeros on both sides: row `m` is for `first[m] <= k < last[m]`."""

    first: np.ndarray
    last: np.ndarray
    start: np.ndarray  # where a row begins in `values`
    values: np.ndarray
    table: np.ndarray  # all fields in one int64 array, which stays on a GPU


def without_zeros(matrix: np.ndarray) -> Weights:
    """The weights of a float32 matrix `[rows out, rows in]`."""
    used = np.pad(matrix != 0, ((0, 0), (0, 1)))  # not empty
    in_use = used.any(axis=1)
    first = np.where(in_use, used.argmax(axis=1), 0)
    last = np.where(in_use, used.shape[1] - used[:, ::-1].argmax(axis=1), 0)
    values = [row[a:b] for row, a, b in zip(matrix, first, last, strict=True)]
    start = np.concatenate(([0], np.cumsum(last - first)[:-1]))
    flat = np.concatenate([*values, np.zeros(1)]).astype(np.float32)
    even = np.concatenate((flat, np.zeros(len(flat) % 2, np.float32)))
    first, last, start = (part.astype(np.int64) for part in (first, last, start))
    return Weights(first, last, start, flat, np.concatenate((first, last, start, even.view(np.int64))))


def weighted_columns(x: np.ndarray, out: np.ndarray, weights: Weights) -> None:
    """Computes `out` `[rows out, columns]` from `x` `[rows in, columns]`. The bits of a column do not depend on the number of
    columns."""
    _down_columns(x.reshape(-1), out.reshape(-1), len(x), x.shape[1], *weights[:4])


@kernel
def sums_of_columns(x, out, outer, inner, length, first, last, start, weights):
    """Computes the sums of one sample. `x`, 1-D, is viewed as `[outer, length, inner]`, and `out`, 1-D, as `[outer, rows of
    weights, inner]`, float32. The weights are the first four fields of `Weights`."""
    for o in range(outer):
        target = out[o * len(first) * inner :]
        _down_columns(x[o * length * inner :], target, length, inner, first, last, start, weights)


@kernel
def sums_in_rows(x, out, lines, length, first, last, start, weights):
    """Does the same as `sums_of_columns` for `inner` = 1 and `lines` = `outer`. It is a kernel of its own, so that a caller of
    one does not wait for the other to be compiled."""
    rows = len(first)
    _in_rows(x.reshape(lines, length), out.reshape(lines, rows), first, last, start, weights)


@kernel
def _down_columns(x, out, length, inner, first, last, start, weights):
    """Computes `out` `[rows out, inner]` from `x` `[length, inner]`, both 1-D."""
    if inner >= TILE:
        _sums(x, out, inner, first, last, start, weights)
        return
    columns, sums = zeros(length * TILE, np.float32), zeros(len(first) * TILE, np.float32)
    for k in range(length):
        for t in range(inner):
            columns[k * TILE + t] = x[k * inner + t]
    _sums(columns, sums, np.int64(TILE), first, last, start, weights)  # a literal would compile another `_sums`
    for m in range(len(first)):
        for t in range(inner):
            out[m * inner + t] = sums[m * TILE + t]


@kernel
def _in_rows(x, out, first, last, start, weights):
    """Computes `out` `[lines, rows out]` from `x` `[lines, rows in]`: several lines at once, as columns."""
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
    """Does the same as `_down_columns` for at least 16 columns; at the end some are computed twice."""
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
                transpose_tile(x, i, j, out, j, i)
            else:
                for k in range(i, min(i + TILE, rows)):
                    for l in range(j, min(j + TILE, columns)):
                        out[l, k] = x[k, l]
