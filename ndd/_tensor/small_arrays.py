"""NumPy on small arrays without releasing the interpreter.

NumPy releases it for more than 500 elements, and always to make zeros, to count and to pick rows by a list. A loop with
lookahead on a GPU then waits 0.2 ms to get it back each time. Without this module that happened seven times after decoding
64 pictures.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

FEW = 500  # elements
_MOST_PIECES = 32  # 1 us each


def few_zeros(shape: Any, dtype: Any) -> np.ndarray:
    """`np.zeros` of up to 500 elements."""
    zeros = np.empty(shape, dtype)
    zeros.fill(0)
    return zeros


@functools.lru_cache(64)
def numbers_below(n: int) -> np.ndarray:
    """`np.arange(n)`, cached and read-only."""
    numbers = np.arange(n, dtype=np.int64)
    numbers.flags.writeable = False
    return numbers


@functools.lru_cache(64)
def ones_column(n: int) -> np.ndarray:
    """`np.ones((n, 1), np.int64)`, cached and read-only."""
    ones = np.ones((n, 1), np.int64)
    ones.flags.writeable = False
    return ones


def equal_rows(array: np.ndarray) -> bool:
    """Whether all rows `array[i]` are bitwise equal; True if there are none."""
    whole = array.tobytes()  # comparing bytes takes 0.2 us for 64 rows, comparing arrays 2 to 5
    return whole == whole[: len(whole) // max(len(array), 1)] * len(array)


def columns(array: np.ndarray, numbers: Sequence[int]) -> np.ndarray:
    """`array[:, numbers]`; a view if the columns are adjacent and ascending."""
    if numbers and list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return array[:, numbers[0] : numbers[-1] + 1]
    return array[:, list(numbers)]


def put(target: np.ndarray, values: np.ndarray) -> None:
    """`target[...] = values`, in pieces of few elements if there are not too many pieces."""
    n = len(target)
    rows = FEW * n // max(target.size, 1)
    if target.shape != values.shape or not 0 < rows < n <= rows * _MOST_PIECES:
        target[...] = values
        return
    for start in range(0, n, rows):
        target[start : start + rows] = values[start : start + rows]
