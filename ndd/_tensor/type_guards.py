"""`isinstance` for a type checker: afterwards it knows the class of the value, but not the types inside of a container."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np


def is_array(value: object) -> TypeGuard[np.ndarray]:
    """Whether a value is a NumPy array, of any element type."""
    return isinstance(value, np.ndarray)


def is_numpy(value: object) -> TypeGuard[np.ndarray | np.generic]:
    """Whether a value is a NumPy array or a NumPy number."""
    return isinstance(value, np.ndarray | np.generic)


def is_numpy_number(value: object) -> TypeGuard[np.generic]:
    """Whether a value is a NumPy number."""
    return isinstance(value, np.generic)


def is_integer(value: object) -> TypeGuard[int | np.integer]:
    """Whether a value is an integer of Python or NumPy."""
    return isinstance(value, int | np.integer)


def is_list(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Whether a value is a list or a tuple."""
    return isinstance(value, list | tuple)


def is_tuple(value: object) -> TypeGuard[tuple[Any, ...]]:
    """Whether a value is a tuple."""
    return isinstance(value, tuple)
