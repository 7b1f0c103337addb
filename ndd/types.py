"""Enumerations that arguments and data may carry, with DALI's names and numbers.

`from nvidia.dali import types` in existing code keeps working beside ndd: an argument that takes one of these enumerations
also takes DALI's own members and the plain integers.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any

import numpy as np

__all__ = [
    "ANY_DATA",
    "BGR",
    "BOOL",
    "CPU_ONLY_DEVICE_ID",
    "DATA_TYPE",
    "FEATURE",
    "FLOAT",
    "FLOAT16",
    "FLOAT32",
    "FLOAT64",
    "GRAY",
    "IMAGE_TYPE",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "INTERP_CUBIC",
    "INTERP_GAUSSIAN",
    "INTERP_LANCZOS3",
    "INTERP_LINEAR",
    "INTERP_NN",
    "INTERP_TRIANGULAR",
    "INTERP_TYPE",
    "NCHW",
    "NFCHW",
    "NFHWC",
    "NHWC",
    "NO_TYPE",
    "PYTHON_OBJECT",
    "RGB",
    "SAME",
    "STRING",
    "TENSOR_LAYOUT",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "BatchInfo",
    "CUDAStream",
    "Constant",
    "DALIDataType",
    "DALIImageType",
    "DALIInterpType",
    "PipelineAPIType",
    "SampleInfo",
    "ScalarConstant",
    "TensorLayout",
    "YCbCr",
    "is_enum",
    "to_dali_type",
    "to_numpy_type",
]


class _Named(IntEnum):
    """A number with a name; `str` gives the name."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class DALIDataType(_Named):
    """Element types by DALI's numbers. In ndd code the `DType` objects (`ndd.uint8`, ...) are the usual spelling."""

    NO_TYPE = -1
    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    UINT64 = 3
    INT8 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    FLOAT16 = 8
    FLOAT = 9
    FLOAT64 = 10
    BOOL = 11
    STRING = 12
    FEATURE = 17
    IMAGE_TYPE = 20
    DATA_TYPE = 21
    INTERP_TYPE = 22
    TENSOR_LAYOUT = 23
    PYTHON_OBJECT = 24


class DALIInterpType(_Named):
    """Interpolation of the resampling operators."""

    INTERP_NN = 0
    INTERP_LINEAR = 1
    INTERP_CUBIC = 2
    INTERP_LANCZOS3 = 3
    INTERP_TRIANGULAR = 4
    INTERP_GAUSSIAN = 5


class DALIImageType(_Named):
    """Colour space of a decoded image."""

    RGB = 0
    BGR = 1
    GRAY = 2
    YCbCr = 3
    ANY_DATA = 4


NO_TYPE = DALIDataType.NO_TYPE
UINT8 = DALIDataType.UINT8
UINT16 = DALIDataType.UINT16
UINT32 = DALIDataType.UINT32
UINT64 = DALIDataType.UINT64
INT8 = DALIDataType.INT8
INT16 = DALIDataType.INT16
INT32 = DALIDataType.INT32
INT64 = DALIDataType.INT64
FLOAT16 = DALIDataType.FLOAT16
FLOAT = DALIDataType.FLOAT
FLOAT32 = DALIDataType.FLOAT
FLOAT64 = DALIDataType.FLOAT64
BOOL = DALIDataType.BOOL
STRING = DALIDataType.STRING
IMAGE_TYPE = DALIDataType.IMAGE_TYPE
DATA_TYPE = DALIDataType.DATA_TYPE
INTERP_TYPE = DALIDataType.INTERP_TYPE

INTERP_NN = DALIInterpType.INTERP_NN
INTERP_LINEAR = DALIInterpType.INTERP_LINEAR
INTERP_CUBIC = DALIInterpType.INTERP_CUBIC
INTERP_LANCZOS3 = DALIInterpType.INTERP_LANCZOS3
INTERP_TRIANGULAR = DALIInterpType.INTERP_TRIANGULAR
INTERP_GAUSSIAN = DALIInterpType.INTERP_GAUSSIAN

RGB = DALIImageType.RGB
BGR = DALIImageType.BGR
GRAY = DALIImageType.GRAY
YCbCr = DALIImageType.YCbCr
ANY_DATA = DALIImageType.ANY_DATA


FEATURE = DALIDataType.FEATURE
TENSOR_LAYOUT = DALIDataType.TENSOR_LAYOUT
PYTHON_OBJECT = DALIDataType.PYTHON_OBJECT

# Layouts of a sample; the N of their names is the batch.
NHWC, NCHW, NFHWC, NFCHW, SAME = "HWC", "CHW", "FHWC", "FCHW", ""
CPU_ONLY_DEVICE_ID = -99999

_NUMPY_NAMES = {
    DALIDataType.FLOAT: "float32",
    DALIDataType.BOOL: "bool",
    **{kind: kind.name.lower() for kind in DALIDataType if kind.name.startswith(("UINT", "INT")) and kind < 12},
    DALIDataType.FLOAT16: "float16",
    DALIDataType.FLOAT64: "float64",
}


def to_numpy_type(dali_type: Any) -> Any:
    """The NumPy scalar type of a `DALIDataType`.

    Args:
        dali_type: a `DALIDataType` or its number.

    >>> from ndd import types
    >>> types.to_numpy_type(types.FLOAT)
    <class 'numpy.float32'>
    """
    return np.dtype(_NUMPY_NAMES[DALIDataType(int(dali_type))]).type


def to_dali_type(framework_type: Any) -> DALIDataType:
    """The `DALIDataType` of a NumPy or torch type.

    Args:
        framework_type: a NumPy or torch dtype, a NumPy scalar class, or a name such as "float32".

    Raises TypeError for a type that DALI does not have.

    >>> from ndd import types
    >>> types.to_dali_type("float32").name
    'FLOAT'
    """
    name = str(framework_type).removeprefix("torch.")
    wanted = name if str(framework_type).startswith("torch.") else np.dtype(framework_type).name
    for kind, known in _NUMPY_NAMES.items():
        if known == wanted:
            return kind
    raise TypeError(f"There is no DALI type for {framework_type!r}")


class PipelineAPIType(Enum):
    """How the outputs of a pipeline are fetched: with `run()`, by an iterator, or with `schedule_run()`."""

    BASIC = 0
    ITERATOR = 1
    SCHEDULED = 2


_SCALAR_TYPES = {bool: DALIDataType.BOOL, int: DALIDataType.INT32, float: DALIDataType.FLOAT}


class Constant:
    """A constant in a pipeline: every sample of every batch is this value.

    Args:
        value: a number, a list of numbers or an array.
        dtype: the element type; default int32 for integers, float32 for floating point, bool for truth values. A single NumPy
            number (or array without axes) without a `device`, and arrays of other libraries, keep their type. Numbers are
            rounded half away from zero (a single float loses its fraction) and saturate.
        shape: the shape, if `value` is a list, or a number to be repeated.
        layout: the layout of the tensor.
        device: "cpu" or "gpu".

    A constant of several numbers has the operators and methods of a node. Constants of one number are equal if number and type
    are; they cannot be hashed. `int` and `bool` take one of whole numbers, `float` one of floating point, as in DALI.

    A NumPy array of integers outside 32 bits without a `dtype` raises OverflowError when the constant becomes a batch.

    Raises TypeError for anything but a number, list of numbers or array.

    >>> import ndd
    >>> ndd.types.Constant([1, 2], dtype=ndd.types.FLOAT).dtype.name
    'FLOAT'
    >>> print(ndd.types.Constant(10))
    10:DALIDataType.INT32
    """

    def __init__(self, value: Any, dtype: Any = None, shape: Any = None, layout: str | None = None, device: Any = None):
        if value is None or isinstance(value, str | bytes | dict | set):
            raise TypeError(f"Constant: expected a number, a list of numbers or an array, got {value!r}")
        if dtype is None and type(value) in _SCALAR_TYPES:
            dtype = _SCALAR_TYPES[type(value)]
        self.value, self.dtype, self.layout = value, dtype, layout
        self.extents, self.target = shape, device

    def __repr__(self) -> str:
        single = self._single()
        return repr(single[0] if single else self.value)

    def __str__(self) -> str:
        single = self._single()
        return f"{single[0]!r}:{single[1]}" if single else repr(self.value)

    def _single(self) -> tuple[int | float, DALIDataType] | None:
        """The number, as Python's own type, and its type. None for several numbers, and for what DALI has no type for."""
        value, properties = self.value, (self.extents, self.layout, self.target)
        if any(v is not None for v in properties) or getattr(value, "shape", ()) != ():
            return None
        try:
            dtype = DALIDataType(int(self.dtype)) if self.dtype is not None else to_dali_type(value.dtype)
            name = _NUMPY_NAMES[dtype]
            number = value.item() if hasattr(value, "item") else value
            return (bool if name == "bool" else float if name.startswith("float") else int)(number), dtype
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            return None

    def __eq__(self, other: object) -> bool:
        """Whether the other is a constant of the same number and type. A number is never equal to its constant."""
        if not isinstance(other, Constant):
            return NotImplemented
        ours, theirs = self._single(), other._single()
        if ours is None or theirs is None:
            return self is other
        return ours[0] == theirs[0] and ours[1] is theirs[1]

    def __hash__(self) -> int:
        if self._single() is not None:
            raise TypeError(f"unhashable type: {type(self).__name__!r} of one number")
        return object.__hash__(self)

    def __int__(self) -> int:
        return int(self._exactly(int, "int"))

    def __float__(self) -> float:
        return float(self._exactly(float, "float"))

    def __bool__(self) -> bool:
        return bool(self._exactly(int, "bool"))

    def _exactly(self, kind: type, target: str) -> int | float:
        """The number, if its type is a `kind`; bools are integers."""
        single = self._single()
        if single is None or not isinstance(single[0], kind):
            source = f"a constant of {single[1].name}" if single else "a constant that is not one number"
            raise TypeError(
                f"{target}(): cannot convert {source}; convert the constant first, as in `Constant(2).float32()`"
            )
        return single[0]

    def _typed(self, dtype: DALIDataType) -> Constant:
        return Constant(self.value, dtype, self.extents, self.layout, self.target)

    # `Constant(10).uint8()`: the same constant of that type.
    bool = lambda self: self._typed(DALIDataType.BOOL)  # noqa: E731
    int8 = lambda self: self._typed(DALIDataType.INT8)  # noqa: E731
    int16 = lambda self: self._typed(DALIDataType.INT16)  # noqa: E731
    int32 = lambda self: self._typed(DALIDataType.INT32)  # noqa: E731
    int64 = lambda self: self._typed(DALIDataType.INT64)  # noqa: E731
    uint8 = lambda self: self._typed(DALIDataType.UINT8)  # noqa: E731
    uint16 = lambda self: self._typed(DALIDataType.UINT16)  # noqa: E731
    uint32 = lambda self: self._typed(DALIDataType.UINT32)  # noqa: E731
    uint64 = lambda self: self._typed(DALIDataType.UINT64)  # noqa: E731
    float16 = lambda self: self._typed(DALIDataType.FLOAT16)  # noqa: E731
    float32 = lambda self: self._typed(DALIDataType.FLOAT)  # noqa: E731
    float64 = lambda self: self._typed(DALIDataType.FLOAT64)  # noqa: E731


class ScalarConstant(Constant):
    """A `Constant` of one number: TypeError for anything else.

    Args:
        value: a bool, an int, a float, or a number of NumPy or torch.
        dtype: a `DALIDataType`; default: `INT32`, `FLOAT` or `BOOL`, by the value. Numbers of NumPy and torch keep theirs.

    >>> from ndd import types
    >>> int(types.ScalarConstant(5)), types.ScalarConstant(0.5).dtype.name
    (5, 'FLOAT')
    """

    def __init__(self, value: Any, dtype: Any = None):
        number = value.item() if getattr(value, "shape", None) == () else value
        if type(number) not in _SCALAR_TYPES:
            raise TypeError(f"ScalarConstant: expected a bool, an int or a float, got {value!r}")
        super().__init__(value, dtype)


class CUDAStream:
    """The address of a CUDA stream, as functions of DALI's plugin return it.

    Args:
        ptr: the address, 0 for the default stream.

    >>> from ndd import types
    >>> types.CUDAStream(7).ptr
    7
    """

    def __init__(self, ptr: int = 0):
        self._ptr = ptr

    @property
    def ptr(self) -> int:
        """The address, 0 for the default stream."""
        return self._ptr


class TensorLayout(str):
    """A layout as DALI's functions return it: a string with a letter for each axis.

    >>> import ndd
    >>> ndd.types.TensorLayout("HWC").index("C")
    2
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"ndd.types.TensorLayout({str.__repr__(self)})"


class SampleInfo:
    """The sample that a per-sample source should return.

    Args:
        idx_in_epoch: the number of the sample in its epoch, from 0.
        idx_in_batch: its place in the batch, from 0.
        iteration: the number of the batch in its epoch, from 0.
        epoch_idx: the number of the epoch, from 0.
    """

    def __init__(self, idx_in_epoch: int, idx_in_batch: int, iteration: int, epoch_idx: int):
        self.idx_in_epoch = idx_in_epoch
        self.idx_in_batch = idx_in_batch
        self.iteration = iteration
        self.epoch_idx = epoch_idx


class BatchInfo:
    """The batch that a source with `batch_info=True` should return.

    Args:
        iteration: the number of the batch in its epoch, from 0.
        epoch_idx: the number of the epoch, from 0.
    """

    def __init__(self, iteration: int, epoch_idx: int):
        self.iteration = iteration
        self.epoch_idx = epoch_idx


def is_enum(value: object, name: str) -> bool:
    """Whether `value` is a member of the enum `name`: our class of that name, or DALI's.

    Args:
        value: any object.
        name: the name of the enum's class.

    >>> import ndd
    >>> ndd.types.is_enum(ndd.types.FLOAT, "DALIDataType")
    True
    """
    return type(value).__name__ == name
