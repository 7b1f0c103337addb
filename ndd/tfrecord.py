"""Descriptions of the features in a TFRecord for `readers.TFRecord`: the names of DALI's `nvidia.dali.tfrecord`.

>>> from ndd import tfrecord as tfrec
>>> tfrec.FixedLenFeature((), tfrec.string, "")
FixedLenFeature((), string, '')
>>> tfrec.VarLenFeature([4], tfrec.float32, 0.0)
VarLenFeature((4,), float32, 0.0)
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, overload


class FeatureType(IntEnum):
    """The three types of values that a `tf.train.Feature` may hold, by DALI's numbers."""

    int64 = 0
    string = 1
    float32 = 2


int64 = FeatureType.int64
float32 = FeatureType.float32
string = FeatureType.string

_DEFAULTS = {int64: int, float32: float, string: str}


@dataclass(frozen=True)
class Feature:
    """One feature, made by `FixedLenFeature` or `VarLenFeature`.

    Attributes:
        shape: of a sample; with `variable`, of one of its items.
        type: of its values.
        default: the value for records that have none.
        variable: whether the number of items differs from record to record.
    """

    shape: tuple[int, ...]
    type: FeatureType
    default: int | float | str
    variable: bool

    def __repr__(self) -> str:
        name = "VarLenFeature" if self.variable else "FixedLenFeature"
        return f"{name}({self.shape}, {self.type.name}, {self.default!r})"


def FixedLenFeature(shape: Sequence[int], dtype: int, default_value: int | float | str, /) -> Feature:
    """A feature with the same number of values in every record, arranged by `shape`.

    Args:
        shape: of a sample; `()` for a single value, and for a string, which comes as u8 `[bytes]`.
        dtype: `int64`, `float32` or `string`.
        default_value: stands for the values that a record lacks. (DALI leaves what happens to be in memory there.)

    Raises: TypeError for a shape or type that is none; RuntimeError for a default of another type, as in DALI, and for
    a negative extent.

    >>> from ndd import tfrecord
    >>> tfrecord.FixedLenFeature([1], tfrecord.int64, -1)
    FixedLenFeature((1,), int64, -1)
    """
    return _feature("FixedLenFeature", shape, dtype, default_value, False)


@overload
def VarLenFeature(dtype: int, default_value: int | float | str, /) -> Feature: ...
@overload
def VarLenFeature(shape: Sequence[int], dtype: int, default_value: int | float | str, /) -> Feature: ...
def VarLenFeature(*arguments: Any) -> Feature:
    """A feature with any number n of values in a record, of shape `(n,)`: `VarLenFeature(dtype, default_value)`.

    With a partial shape before these two, as `VarLenFeature([4], float32, 0.0)` for boxes, samples have shape
    `(n / 4, 4)`. A record that lacks the feature has no values, n = 0; the default is checked, and has no use.
    Strings cannot be such features.

    Raises: as `FixedLenFeature`.

    Args:
        *arguments: an element type (`int64` or `float32`) and a default value, with a partial shape before them or
            without.

    Raises TypeError for another number of arguments, RuntimeError for extents and default values that do not fit.

    >>> from ndd import tfrecord
    >>> tfrecord.VarLenFeature([4], tfrecord.float32, 0.0)
    VarLenFeature((4,), float32, 0.0)
    """
    if len(arguments) not in (2, 3):
        raise TypeError(f"VarLenFeature: expected ([shape,] dtype, default_value), got {len(arguments)} argument(s)")
    shape = arguments[0] if len(arguments) == 3 else ()
    dtype, default = arguments[-2:]
    return _feature("VarLenFeature", shape, dtype, default, True)


def _feature(name: str, shape: Any, dtype: Any, default: Any, variable: bool) -> Feature:
    try:
        extents = tuple(operator.index(extent) for extent in shape)
    except TypeError:
        raise TypeError(f"{name}: expected a shape, a list of integers, got {shape!r}") from None
    if any(extent < 0 or (variable and not extent) for extent in extents):
        raise RuntimeError(f"{name}: expected {'positive extents' if variable else 'extents from 0'}, got {extents}")
    try:
        kind = FeatureType(operator.index(dtype))
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected a type, int64, float32 or string of ndd.tfrecord, got {dtype!r}") from None
    if not isinstance(default, _DEFAULTS[kind]):
        expected = _DEFAULTS[kind].__name__
        raise RuntimeError(f"{name}: Invalid type for default value, expected {expected}, got {default!r}")
    return Feature(extents, kind, default, variable)


__all__ = ["Feature", "FeatureType", "FixedLenFeature", "VarLenFeature", "float32", "int64", "string"]
