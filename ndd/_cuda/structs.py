"""The structs of a launch: `Sample`, a record for each sample, and `Shared`, the values for all samples."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ndd._cuda import source
from ndd._tensor.cache_keys import exact_key

_NUMBERS = (float, np.generic, int, list, tuple)  # `|` would make a new union type at each call
_KEPT_STRUCTS = 1024

_shared: dict[Any, Any] = {}
_layouts: dict[Any, np.dtype] = {}


def layout(kind: tuple[Any, ...]) -> np.dtype:
    """The aligned record type of (name, type, shape) fields. It is cached, because making one costs 15 us."""
    record = _layouts.get(kind)
    if record is None:
        record = _layouts[kind] = np.dtype(list(kind), align=True)
    return record


def by_value(values: dict[str, Any]) -> tuple[Any, np.dtype]:
    """The struct `Shared` as the bytes for a launch, and its layout; cached for the next launch with the same values."""
    named: list[Any] = []
    for name, value in values.items():
        kind = value.__class__
        if kind is int or kind is bool:
            named += name, kind, value
        elif kind is float or kind is np.float32:
            named += name, kind, value or str(value)  # -0.0 and 0.0 have different bits
        elif kind is np.ndarray or isinstance(value, _NUMBERS):
            named += name, kind, exact_key(value)
        # nothing else goes into the struct
    key = tuple(named)
    packed = _shared.get(key)
    if packed is None:
        if len(_shared) > _KEPT_STRUCTS:
            _shared.clear()
        packed = _shared[key] = _packed(values)
    return packed


def _packed(values: dict[str, Any]) -> tuple[Any, np.dtype]:
    """One aligned record of numbers and fixed arrays."""
    arrays = {}
    for name, value in values.items():
        if value is None or isinstance(value, str):
            continue
        array = np.asarray(value)
        if isinstance(value, int) and not isinstance(value, bool) and array.dtype == np.int64 and abs(value) < 2**31:
            array = array.astype(np.int32)
        elif isinstance(value, float):
            array = array.astype(np.float32)
        if array.dtype.name in source._TYPES and array.size:
            arrays[name] = array
    kind = tuple([(k, v.dtype, v.shape) for k, v in arrays.items()]) or (("unused", np.dtype(np.int32), ()),)
    struct = layout(kind)
    record = np.zeros((), struct)
    for name, array in arrays.items():
        record[name] = array
    return (ctypes.c_char * max(record.nbytes, 4)).from_buffer_copy(record.tobytes().ljust(4, b"\0")), struct


__all__ = ["by_value", "layout"]
