"""Sums of neighbouring rows with weights, `out[m] = sum of weights[m, k] * x[k]`: filter banks and cosine transforms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ndd._cpu.inlined import zeros
from ndd._cpu.jit import kernel
from ndd._cpu.lanes import TILE, turn_tile

_LINES = 64  # that are made columns together: of 257 numbers they stay in the second cache
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


def weighted_sums(
    x: np.ndarray, out: np.ndarray, starts: np.ndarray, targets: np.ndarray, outer: np.ndarray, inner: np.ndarray,
    length: int, weights: Weights,
) -> None:  # fmt: skip
    """Of each sample from `starts` on in `x`, 1-D, seen as `[outer, length, inner]`, to `out`, 1-D, from `targets` on, where it
    is `[outer, rows of weights, inner]`. float32; places and extents are int64 `[N]`."""
    _of_each(x, out, starts, targets, outer, inner, length, *weights[:4])


def weighted_columns(x: np.ndarray, out: np.ndarray, weights: Weights) -> None:
    """`x` `[rows in, columns]` to `out` `[rows out, columns]`: each column the same, to the bit, as among more of them."""
    _down_columns(x[None], out[None], *weights[:4])


@kernel
def _of_each(x, out, starts, targets, outer, inner, length, first, last, start, weights):
    for n in range(len(starts)):
        lines, rows = outer[n] * inner[n], len(first)
        own, target = x[starts[n] : starts[n] + lines * length], out[targets[n] : targets[n] + lines * rows]
        if inner[n] == 1:
            _in_rows(own.reshape(lines, length), target.reshape(lines, rows), first, last, start, weights)
        else:
            shape = outer[n], length, inner[n]
            _down_columns(own.reshape(shape), target.reshape(outer[n], rows, inner[n]), first, last, start, weights)


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


@kernel
def _in_rows(x, out, first, last, start, weights):
    """`x` `[lines, rows in]` to `out` `[lines, rows out]`: some lines at once, as columns."""
    columns, sums = zeros((1, x.shape[1], _LINES), np.float32), zeros((1, out.shape[1], _LINES), np.float32)
    for line in range(0, len(x), _LINES):
        own, target = x[line : line + _LINES], out[line : line + _LINES]
        _turn(own, columns[0])
        _down_columns(columns, sums, first, last, start, weights)
        _turn_back(sums[0], target)


@kernel
def _turn(x, out):
    """`out[:, : len(x)] = x.T`"""
    for i in range(0, len(x), TILE):
        for j in range(0, x.shape[1], TILE):
            if i + TILE <= len(x) and j + TILE <= x.shape[1]:
                turn_tile(x, i, j, out, j, i)
            else:
                for k in range(i, min(i + TILE, len(x))):
                    for l in range(j, min(j + TILE, x.shape[1])):
                        out[l, k] = x[k, l]


@kernel
def _turn_back(x, out):
    """`out = x[:, : len(out)].T`"""
    for i in range(0, len(out), TILE):
        for j in range(0, out.shape[1], TILE):
            if i + TILE <= len(out) and j + TILE <= out.shape[1]:
                turn_tile(x, j, i, out, i, j)
            else:
                for k in range(i, min(i + TILE, len(out))):
                    for l in range(j, min(j + TILE, out.shape[1])):
                        out[k, l] = x[l, k]
