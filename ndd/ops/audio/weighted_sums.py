"""Sums of neighbouring rows with weights, `out[m] = sum of weights[m, k] * x[k]`: filter banks and cosine transforms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ndd._compiled.intrinsics import zeros
from ndd._compiled.jit import kernel
from ndd._compiled.simd import COLUMNS, TILE, sum_few, sum_rows, transpose_tile

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
    """`x` `[rows in, columns]` to `out` `[rows out, columns]`: each column the same, to the bit, as among more of them."""
    _down_columns(x.reshape(-1), out.reshape(-1), len(x), x.shape[1], *weights[:4])


@kernel
def sums_of_columns(x, out, outer, inner, length, first, last, start, weights):
    """Of one sample, `x` 1-D, seen as `[outer, length, inner]`, to `out`, 1-D, where it is `[outer, rows of weights, inner]`.
    float32; the weights are the first four fields of `Weights`."""
    for o in range(outer):
        target = out[o * len(first) * inner :]
        _down_columns(x[o * length * inner :], target, length, inner, first, last, start, weights)


@kernel
def sums_in_rows(x, out, lines, length, first, last, start, weights):
    """As `sums_of_columns`, for `inner` = 1 and `lines` = `outer`. Who needs one of them does not wait for the other."""
    rows = len(first)
    _in_rows(x.reshape(lines, length), out.reshape(lines, rows), first, last, start, weights)


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
    _sums(columns, sums, np.int64(TILE), first, last, start, weights)  # a literal would make another `_sums`
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
                transpose_tile(x, i, j, out, j, i)
            else:
                for k in range(i, min(i + TILE, rows)):
                    for l in range(j, min(j + TILE, columns)):
                        out[l, k] = x[k, l]
