"""Element types: the `DType` objects behind `ndd.uint8`, `ndd.float32`, ... and every spelling that names one."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ndd._tensor.operations import operation
from ndd.types import DALIDataType, is_enum

if TYPE_CHECKING:
    from ndd._tensor.tensor import Tensor

_EXPONENT_BITS = {8: 4, 16: 5, 32: 8, 64: 11}


class DType:
    """The type of the elements of a tensor.

    Args:
        kind: the meaning of the bits: `DType.Kind.signed`, `unsigned`, `float`, `bool` or `enum`.
        bits: of an element.
        exponent_bits, significand_bits: of a float; default: as in IEEE 754. None for integers.
        bytes: of an element in memory; default: as few as hold the bits.
        type_id: DALI's enum value, None for bfloat16.
        name: the short name, such as "u8" or "f32"; default: made of kind and bits.
        docs: the docstring of the object.

    All but the last are attributes, too.

    The objects are singletons: compare with `==` or `is`. Calling one builds a tensor of that type:

    Raises ValueError for a number of bits that the kind does not have.

    >>> import ndd
    >>> ndd.uint8([1, 2, 255])
    Tensor(
        [  1   2 255],
        dtype=u8,
        device="cpu",
        shape=(3,))
    """

    class Kind(enum.Enum):
        """The meaning of a type's bits."""

        signed = 1
        unsigned = 2
        float = 3
        bool = 4
        enum = 5

    numpy: np.dtype  # of the arrays that hold this type on the CPU

    def __init__(
        self,
        kind: Kind,
        bits: int,
        exponent_bits: int | None = None,
        significand_bits: int | None = None,
        bytes: int | None = None,
        type_id: Any = None,
        name: str | None = None,
        docs: str | None = None,
    ):
        self.kind = kind
        self.bits = bits
        self.exponent_bits = self.significand_bits = None
        if kind is DType.Kind.float:
            self.exponent_bits = exponent_bits or _EXPONENT_BITS.get(bits)
            if self.exponent_bits is None:
                raise ValueError(f"Unsupported number of bits: {bits}")
            self.significand_bits = significand_bits or bits - self.exponent_bits - 1
        self.bytes = bytes or (bits + 7) // 8
        self.type_id = type_id
        self.name = name or _default_name(self)
        self.__doc__ = docs or f"The element type {self.name}."
        self._hash = hash((kind, bits, self.exponent_bits, self.significand_bits, self.name if kind.value == 5 else ""))

    def _key(self) -> tuple[Any, ...]:
        own = self.type_id if self.kind is DType.Kind.enum else None
        return self.kind, self.bits, self.exponent_bits, self.significand_bits, own

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DType) and self._key() == other._key())

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        text = f"DType(kind={self.kind}, bits={self.bits}"
        if self.exponent_bits is not None:
            text += f", exponent_bits={self.exponent_bits}, significand_bits={self.significand_bits}"
        return text + ")"

    def __reduce__(self):
        return DType.parse, (self.name,)

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        """A new tensor of this type, converted from `data` (DALI 2.4.0 has a bug here and raises a TypeError)."""
        if "dtype" in kwargs:
            raise ValueError("dtype cannot be given: calling a DType fixes it")
        return operation("tensor")(*args, dtype=self, **kwargs)

    @staticmethod
    def from_type_id(type_id: Any) -> DType:
        """The type with DALI's enum value `type_id`.

        Args:
            type_id: a `types.DALIDataType`, or its number. KeyError for an unknown number.
        """
        try:
            return _BY_ID[int(type_id)]
        except KeyError:
            raise KeyError(f"No tensor element type has the type id {type_id!r}") from None

    @staticmethod
    def from_fw_type(numpy_type: Any) -> DType:
        """The type of a NumPy dtype, NumPy scalar class or torch dtype.

        Args:
            numpy_type: a NumPy dtype or scalar class, or a torch dtype. TypeError for others.
        """
        return from_framework(numpy_type)

    @staticmethod
    def parse(name: str) -> DType:
        """The type with a short name: u8 u16 u32 u64 i8 i16 i32 i64 f16 f32 f64 bool bfloat16 and the enum types; with
        the bits of a float ("f32e8m23"); or with NumPy's name ("float32").

        Args:
            name: "u8", "f32", "f32e8m23", "float32" and so on. ValueError for an unknown name.
        """
        dtype = _BY_NAME.get(name) or next((_BY_NAME[s] for s, long in _NUMPY_NAMES.items() if long == name), None)
        dtype = dtype or next((t for t in (float16, float32, float64) if name == _long_name(t)), None)
        if dtype is None:
            raise ValueError(f"Unsupported type name: {name!r}. Known names: {', '.join(_BY_NAME)}")
        return dtype


def _long_name(dtype: DType) -> str:
    return f"{dtype.name}e{dtype.exponent_bits}m{dtype.significand_bits}"


def _default_name(dtype: DType) -> str:
    if dtype.kind is DType.Kind.bool:
        return "bool"
    if dtype.kind is DType.Kind.float:
        if dtype.exponent_bits == 8 and dtype.bits == 16:
            return "bfloat16"
        return f"f{dtype.bits}"
    if dtype.kind is DType.Kind.enum:
        raise ValueError("An enum type needs a name")
    return f"{'i' if dtype.kind is DType.Kind.signed else 'u'}{dtype.bits}"


def _number(kind: str, bits: int, type_id: DALIDataType) -> DType:
    return DType(DType.Kind[kind], bits, type_id=type_id)


int8 = _number("signed", 8, DALIDataType.INT8)
int16 = _number("signed", 16, DALIDataType.INT16)
int32 = _number("signed", 32, DALIDataType.INT32)
int64 = _number("signed", 64, DALIDataType.INT64)
uint8 = _number("unsigned", 8, DALIDataType.UINT8)
uint16 = _number("unsigned", 16, DALIDataType.UINT16)
uint32 = _number("unsigned", 32, DALIDataType.UINT32)
uint64 = _number("unsigned", 64, DALIDataType.UINT64)
float16 = _number("float", 16, DALIDataType.FLOAT16)
float32 = _number("float", 32, DALIDataType.FLOAT)
float64 = _number("float", 64, DALIDataType.FLOAT64)
bool_ = _number("bool", 8, DALIDataType.BOOL)
bfloat16 = DType(DType.Kind.float, 16, 8, 7)
DataType = DType(DType.Kind.enum, 32, type_id=DALIDataType.DATA_TYPE, name="DataType")
ImageType = DType(DType.Kind.enum, 32, type_id=DALIDataType.IMAGE_TYPE, name="ImageType")
InterpType = DType(DType.Kind.enum, 32, type_id=DALIDataType.INTERP_TYPE, name="InterpType")

ALL = (
    uint8, uint16, uint32, uint64, int8, int16, int32, int64,
    float16, float32, float64, bool_, bfloat16, DataType, ImageType, InterpType,
)  # fmt: skip
_BY_NAME = {d.name: d for d in ALL}
_BY_ID = {int(d.type_id): d for d in ALL if d.type_id is not None}

_NUMPY_NAMES = {
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "i8": "int8", "i16": "int16", "i32": "int32",
    "i64": "int64", "f16": "float16", "f32": "float32", "f64": "float64", "bool": "bool",
}  # fmt: skip
_BY_NUMPY = {np.dtype(n): _BY_NAME[short] for short, n in _NUMPY_NAMES.items()}
for _d in ALL:
    # bfloat16 has no NumPy type: its bits travel as uint16; enum values are int32 numbers.
    _d.numpy = np.dtype(_NUMPY_NAMES.get(_d.name, "uint16" if _d is bfloat16 else "int32"))

BY_TORCH: dict[Any, DType] = {getattr(torch, n): _BY_NAME[short] for short, n in _NUMPY_NAMES.items()}
BY_TORCH[torch.bfloat16] = bfloat16


def torch_dtype(dtype: DType) -> torch.dtype:
    """The torch dtype that holds `dtype` (int32 for the enum types)."""
    known = getattr(dtype, "_torch", None)
    if known is None:
        name = "bfloat16" if dtype is bfloat16 else _NUMPY_NAMES.get(dtype.name, "int32")
        known = dtype._torch = getattr(torch, name)  # type: ignore[attr-defined]
    return known


def from_framework(kind: Any) -> DType:
    """The type of a NumPy or torch dtype, of a NumPy scalar class, or of `float`, `int` or `bool` as data."""
    if kind is float:  # 32 bits, as for Python numbers elsewhere; NumPy takes these for 64-bit types
        return float32
    if kind is int:
        return int32
    if kind is None:
        raise TypeError(f"{kind!r} does not name an element type")
    if type(kind).__module__ == "torch":
        known = BY_TORCH.get(kind)
    else:
        try:
            as_numpy = np.dtype(kind)
        except TypeError:
            raise TypeError(f"{kind!r} does not name an element type") from None
        known = _BY_NUMPY.get(as_numpy)
    if known is None:
        raise TypeError(f"{kind!r} has no counterpart among ndd's element types")
    return known


def dense_torch_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor; an error for one that no value can be made of."""
    kind = tensor.device.type
    if kind not in ("cpu", "cuda"):
        raise RuntimeError(f"Cannot make a tensor of a torch tensor on {kind!r}: expected one on the CPU or a CUDA GPU")
    if str(tensor.layout) != "torch.strided" or tensor.is_nested:
        form = "nested" if tensor.is_nested else "sparse"
        raise TypeError(f"Cannot make a tensor of a {form} torch tensor: expected a dense one")
    if tensor.dtype not in BY_TORCH:
        raise RuntimeError(f"Cannot make a tensor of torch's type {tensor.dtype}: expected numbers or booleans")
    return tensor


def dtype(*args: Any) -> DType:
    """The `DType` that an object names: a DType, a short name ("u8"), DALI's enum value, a NumPy or torch dtype, or
    Python's `float` (float32), `int` (int32; DALI refuses it) and `bool`. Every argument `dtype` takes these.

    Args:
        *args: one of these; or the arguments of the constructor of `DType`.

    Raises ValueError for an unknown name, TypeError for an object that names no element type.

    >>> import ndd, numpy as np
    >>> ndd.dtype("u8") is ndd.dtype(np.uint8) is ndd.uint8
    True
    """
    if len(args) != 1:
        return DType(*args)
    (kind,) = args
    if isinstance(kind, DType):
        return _BY_NAME.get(kind.name, kind)
    if is_enum(kind, "DALIDataType"):
        return DType.from_type_id(kind)
    if isinstance(kind, str):
        return DType.parse(kind)
    return from_framework(kind)


def type_id(dtype: Any) -> Any:
    """DALI's enum value of a `DType`.

    Args:
        dtype: an element type in any form that `ndd.dtype` takes.

    Raises ValueError for anything but an element type of DALI.

    >>> import ndd
    >>> ndd.type_id(ndd.uint8).name
    'UINT8'
    """
    if isinstance(dtype, DType):
        return dtype.type_id
    if is_enum(dtype, "DALIDataType"):
        return dtype
    raise ValueError(f"Invalid dtype: {dtype}")
