"""Keys of the caches between calls, and the rule by which two constants are the same.

A dict takes 0, 0.0, -0.0 and False for equal keys. But `full(-0.0)` is not `full(0.0)`, and a kernel compiled for an int
does not fit a float.
"""

from __future__ import annotations

from enum import Enum
from marshal import dumps
from typing import Any

import numpy as np

from ndd._tensor.dtype import DType
from ndd._tensor.type_guards import is_list, is_tuple

_NUMBERS: tuple[type[Any], ...] = (bool, int, float, np.generic)
_PYTHON_NUMBERS = frozenset({bool, int, float})
_FORMAT = 2  # of `marshal`: its bytes tell types and the sign of a zero; later versions depend on other references to the value
_SMALL = 256  # elements
_MOST_SEEN = 1024


def exact_key(value: Any) -> tuple[Any, ...]:
    """A hashable tuple that is equal for the same constants only."""
    kind = value.__class__
    if kind is np.ndarray:
        return value.tobytes(), value.dtype, value.shape
    if isinstance(value, _NUMBERS):
        return value or repr(
            value
        ), kind  # -0.0 and 0.0 differ in their text; NaN equals itself only as the same object
    if is_list(value):
        return (kind, *map(exact_key, value))
    return value, kind


class Constants:
    """The constants of a cached call, to compare with the constants of another call with an equal key.

    Equal keys can still hold numbers of different types, and zeros of different signs.
    """

    __slots__ = ("_numbers",)

    def __init__(self, values: tuple[Any, ...]):
        self._numbers: list[tuple[int, Any, bool, Any]] = []
        for i, value in enumerate(values):
            if _may_equal_another(value):
                plain = _is_plain(value)
                self._numbers.append((i, value, plain, dumps(value, _FORMAT) if plain else exact_key(value)))

    def same(self, values: tuple[Any, ...]) -> bool:
        """Whether constants that compare equal to these are the same."""
        try:
            for i, value, plain, known in self._numbers:
                other = values[i]
                if other is not value and (dumps(other, _FORMAT) if plain else exact_key(other)) != known:
                    return False
        except ValueError:  # a member of an enumeration or a fraction: equal to a number, but of another type
            return False
        return True


def _is_plain(value: Any) -> bool:
    """Whether a value consists of plain Python numbers."""
    return all(map(_is_plain, value)) if value.__class__ is tuple else value.__class__ in _PYTHON_NUMBERS


def _may_equal_another(value: Any) -> bool:
    if is_tuple(value):
        return any(map(_may_equal_another, value))
    return isinstance(value, _NUMBERS)


def array_key(array: np.ndarray) -> tuple[Any, ...] | None:
    """The key of a small array of numbers, unaffected by later changes of the array; None for other arrays."""
    if array.size > _SMALL or array.dtype.kind not in "biuf":
        return None
    return array.tobytes(), array.dtype, str(array.shape)  # a string equals no value of another type


def seen_before(key: Any, seen: set[int]) -> bool:
    """Whether `seen` has the key already; adds it."""
    number = hash(key)
    if number in seen:
        return True
    if len(seen) > _MOST_SEEN:
        seen.clear()
    seen.add(number)
    return False


def is_immutable(value: Any) -> bool:
    """Whether a value can never change. (A torch tensor can, though it has a hash.)"""
    if is_tuple(value):
        return all(map(is_immutable, value))
    if value is None or isinstance(value, int | float | str | bytes | Enum | DType | np.generic | np.dtype | type):
        return True
    if value.__class__.__module__ == "torch" and value.__class__.__name__ == "dtype":
        return True
    return getattr(value.__class__, "is_immutable", False) is True
