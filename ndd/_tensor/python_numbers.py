"""Converts Python numbers and lists of them to arrays, with DALI's element types and ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import DataType, DType, ImageType, InterpType, bfloat16, from_framework
from ndd._tensor.type_guards import is_list

_ENUM_TYPES = {"DALIInterpType": InterpType, "DALIImageType": ImageType, "DALIDataType": DataType}


def array_from_python(data: Any, wanted: DType | None) -> tuple[np.ndarray, DType]:
    """Python numbers and lists as an array: int -> i32 (u32 beyond), float -> f32, bool, enum members -> enum types.

    OverflowError beyond 32 bits; RuntimeError for strings and other non-numbers, ValueError for lists of uneven length.
    """
    enum_type = _enum_type(data)
    if wanted is not None:
        if wanted is bfloat16:
            return convert_array(np.array(data, np.float32), "f32", "bfloat16"), bfloat16
        return np.array(data, dtype=wanted.numpy), wanted
    if enum_type is not None:
        return np.array(data, dtype=np.int32), enum_type
    try:
        array = np.array(data)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        if any(v is None for v in data):
            raise ValueError(
                f"A {type(data).__name__} that contains None cannot be an array: expected numbers"
            ) from None
        raise ValueError(
            f"A {type(data).__name__} of samples whose shapes differ cannot be an array: "
            "ndd.batch(...) makes a batch of them"
        ) from None
    if array.dtype == np.float64:
        if array.size and np.abs(array).max() >= 2**63:
            _refuse_integers(data)
        array = array.astype(np.float32)
    elif array.dtype.name in ("int64", "uint64") or (array.dtype == object and array.size and _all_ints(array)):
        array = _narrow_integers(array)
    if array.dtype.kind not in "biuf":
        advice = ""
        if array.dtype.kind == "U":
            advice = ". ndd.io.file.read reads the files of paths; `names.index(text)` numbers texts"
        elif any(hasattr(v, "batch_size") for v in array.flat):
            advice = ". Give batches one by one, as in ndd.stack(a, b)"
        elif hasattr(data, "to_tv_tensors"):  # ndd.Targets
            advice = ". Targets have methods: targets.flip(...), crop, resize, rotate and others; `targets.images` are pixels"
        raise (TypeError if array.dtype == object else RuntimeError)(
            f"Cannot make a tensor of {_kind_of(data)}: expected numbers, booleans or nested lists of them{advice}"
        )
    return array, from_framework(array.dtype)


def _kind_of(data: Any) -> str:
    """A value's type in words: "str", "list of str"."""
    kind = type(data).__name__
    if not is_list(data) or not data:
        return kind
    unlike = next(
        (v for v in data if not isinstance(v, int | float)), data[0]
    )  # if the types differ, the first that is not a number
    return f"{kind} of {_kind_of(unlike)}"


def _all_ints(array: np.ndarray) -> bool:
    return all(type(v) is int for v in array.flat)


def _enum_type(data: Any) -> DType | None:
    first = data
    while is_list(first) and first:
        first = first[0]
    return _ENUM_TYPES.get(type(first).__name__)


def _refuse_integers(data: Any) -> None:
    """Raises OverflowError if all numbers are integers: NumPy makes floats of integers that fit no common 64-bit type."""
    numbers = list(np.array(data, dtype=object).flat)
    if all(isinstance(v, int | np.integer) for v in numbers):
        raise OverflowError(f"No type holds integers from {min(numbers)} to {max(numbers)}.")


def _narrow_integers(array: np.ndarray) -> np.ndarray:
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    target = np.uint32 if low >= 0 and high >> 31 else np.int32
    limits = np.iinfo(target)
    if low < limits.min or high > limits.max:
        value = low if low < limits.min else high
        advice = "" if value.bit_length() > 63 else " `dtype=ndd.int64` holds it."
        raise OverflowError(f"Python integer {value} out of range for {limits.dtype}.{advice}")
    return array.astype(target)
