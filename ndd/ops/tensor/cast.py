"""`ndd.cast` and `ndd.cast_like`: another element type."""

from __future__ import annotations

import functools
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ndd._cpu.conversion import float_to_bfloat16, float_to_half, float_to_int, half_to_float, int_to_float, int_to_int
from ndd._operator import Operand, Plan, View, like, operator
from ndd._tensor import DType, bind_operations
from ndd._tensor.conversion_rules import limits_of_float, limits_of_int, numpy_type
from ndd._tensor.convert import convert_array


@operator(cut="elements")
def cast(input, /, *, dtype: DType):
    """Converts the elements to another type.

    Works for every type, rank and layout; shapes and layout stay.

    For an integer type `out = min(max(round(in), least), greatest)`: a float is rounded half away from zero
    (2.5 -> 3, -2.5 -> -3) and saturates (300.0 -> 255 in uint8); integers saturate too (-1 -> 0 in uint8). A float becomes
    `True` unless its rounded value is zero. Numbers too large for float16 become infinite. NaN becomes 0 in integers up to 32
    bits, except int32 (its minimum, as int64) and uint64 (2**63).

    bfloat16 is accepted on both sides, unlike in DALI. uint16 and int16 become float16 by rounding half to even, where
    DALI's CPU operator rounds half away from zero.

    NumPy's `astype` and torch's `to` drop the fraction, and integers wrap around there.

    Args:
        dtype: the element type of the result, such as `ndd.float32`.
        input: any element type, rank and layout.

    Raises ValueError or TypeError for a `dtype` that names no element type, RuntimeError for
    complex numbers and text.

    >>> import ndd
    >>> ndd.cast(ndd.tensor([0.5, 1.4, -3.0, 300.0]), dtype=ndd.uint8).torch()
    tensor([  1,   1,   0, 255], dtype=torch.uint8)
    """
    return like(input, dtype=dtype)


@operator(cut="elements")
def cast_like(input_0, input_1, /):
    """Converts the elements of `input_0` to the element type of `input_1`, by the rules of `cast`.

    Only the type of `input_1` counts, not its values or shapes: `cast_like(a, b) = cast(a, dtype=b.dtype)`. Shapes and
    layout are those of `input_0`.

    Raises ValueError for batches of different sizes, RuntimeError for complex numbers and text.

    Args:
        input_0: any element type, rank and layout.
        input_1: anything of the wanted element type; its values and shape do not matter.

    >>> import ndd
    >>> ndd.cast_like(ndd.tensor([0.5, 300.0]), ndd.tensor(1, dtype=ndd.uint8)).torch()
    tensor([  1, 255], dtype=torch.uint8)
    """
    return like(input_0, dtype=input_1.dtype)


@cast.plan
def _(input, *, dtype):
    return _plan(input, dtype)


@cast_like.plan
def _(input_0, input_1):
    return _plan(input_0, input_1.dtype)


class _Conversion(NamedTuple):
    """A kernel `f(array, out)` for elements, and the types with which it views the memory of both; None: unchanged."""

    kernel: Any
    sees: Any = None
    makes: Any = None


_LIMITS = ("half", "low", "high", "above", "top", "nan")  # of `float_to_int`


@functools.cache
def _conversion(src: str, dst: str) -> _Conversion:
    """The function that converts elements of type `src` to `dst` (short names) by the rule of `cast`."""
    source, target = numpy_type(src), numpy_type(dst)
    kernel: Any = partial(_by_numpy, source=src, target=dst)
    sees: Any = None
    makes: Any = None
    if (src, dst) == ("f16", "f32"):
        kernel, sees = half_to_float, np.uint16
    elif (src, dst) in (("f32", "f16"), ("f32", "bfloat16")):
        kernel, sees, makes = float_to_half if dst == "f16" else float_to_bfloat16, np.uint32, np.uint16
    elif not {src, dst} & {"f16", "bfloat16"} and source.kind in "iuf" and target.kind in "iuf":
        if source.kind == "f" and target.kind != "f":
            kernel = partial(float_to_int, **dict(zip(_LIMITS, limits_of_float(source, target, "cast"), strict=True)))
        elif target.kind == "f" or source == target or limits_of_int(source, target) == (None, None):
            kernel = int_to_float
        else:
            least, most = np.iinfo(source).min, np.iinfo(source).max
            low, high = limits_of_int(source, target)
            low, high = source.type(least) if low is None else low, source.type(most) if high is None else high
            kernel = partial(int_to_int, low=low, high=high)
    return _Conversion(kernel, sees, makes)


def _by_numpy(array: np.ndarray, out: np.ndarray, source: str, target: str) -> None:
    convert_array(array, source, target, out)


def _plan(source: Operand, target: DType) -> Plan:
    known = _conversion(source.dtype.name, target.name)
    view = {"array": View(None, known.sees), "out": View(None, known.makes)}
    return Plan(source.shapes, kernel=known.kernel, view=view, inputs=(0,))


@cast.cuda("cast.cu")
def _(launch, input, out):
    _launch(launch, input, out)


@cast_like.cuda("cast.cu")
def _(launch, input_0, input_1, out):
    _launch(launch, input_0, out)


def _launch(launch: Any, source: Any, out: Any) -> None:
    """Starts the kernel with as many elements for each thread as fit 16 bytes."""
    launch("cast", pack=min(16 // max(source.dtype.bytes, out.dtype.bytes), 8))


bind_operations(cast=cast)
