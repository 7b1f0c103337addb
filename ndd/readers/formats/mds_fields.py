"""Encodings of MosaicML's MDS, as its format defines them."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from ndd.readers.formats.encoded_fields import Field, array_of, as_bytes, json_value, listed, raw_picture, text

_BYTES = ("bytes", "jpeg", "png", "pkl")
_NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
_OF_CODE = {
    8: "u1", 9: "i1", 16: "<u2", 17: "<i2", 18: "<f2", 32: "<u4", 33: "<i4", 34: "<f4", 64: "<u8", 65: "<i8", 66: "<f8",
}  # fmt: skip
_EXTENTS = ("u1", "<u2", "<u4", "<u8")


def _decimal(data: np.ndarray) -> Decimal:
    try:
        return Decimal(text(data))
    except InvalidOperation:
        raise ValueError(f"expected a decimal number, got {text(data)[:40]!r}") from None


_OBJECTS: dict[str, Any] = {
    "str": text,
    "json": json_value,
    "str_int": lambda data: int(text(data)),
    "str_float": lambda data: float(text(data)),
    "str_decimal": _decimal,
    "pil": raw_picture,
    "list[pil]": listed(raw_picture, 4),
    "list[jpeg]": listed(as_bytes, 4),
    "list[png]": listed(as_bytes, 4),
    "jpeg_array": listed(as_bytes, 0),
    "jpegarray": listed(as_bytes, 0),
}


def mds_field(name: str, encoding: str) -> Field:
    """A column. ValueError for an unknown encoding."""
    if encoding in _BYTES:
        return Field(name, None, None)
    kind = "int64" if encoding == "int" else encoding
    if kind in _NUMBERS:
        number = np.dtype(kind).newbyteorder("<")
        return Field(name, number.itemsize, number)
    if encoding in _OBJECTS:
        return Field(name, None, _OBJECTS[encoding])
    family, _, rest = encoding.partition(":")
    if family == "ndarray":
        return _array_field(name, *rest.partition(":")[::2])
    raise ValueError(f"expected an encoding of MDS for column {name!r}, got {encoding!r}")


def _array_field(name: str, kind: str, extents: str) -> Field:
    if kind and kind not in _NUMBERS:
        raise ValueError(f"expected a type of numbers for column {name!r}, got {kind!r}")
    shape = [int(extent) for extent in extents.split(",")] if extents else None
    if shape is not None and min(shape) < 1:
        raise ValueError(f"expected a shape of positive extents for column {name!r}, got {extents!r}")
    size = None
    if kind and shape is not None:
        size = np.dtype(kind).itemsize
        for extent in shape:
            size *= extent
        if size >= 1 << 32:
            raise ValueError(f"expected an array of less than 4 GiB for column {name!r}, got {size} bytes")
    return Field(name, size, lambda data: _array(data, kind, shape))


def _array(data: np.ndarray, kind: str, shape: list[int] | None) -> np.ndarray:
    at = 0
    if not kind:
        code = _byte(data, at)
        if code not in _OF_CODE:
            raise ValueError(f"expected the code of an element type, got {code}")
        kind, at = _OF_CODE[code], 1
    if shape is None:
        ndim, form = divmod(_byte(data, at), 4)
        width = np.dtype(_EXTENTS[form]).itemsize
        if ndim * width > len(data) - at - 1:
            raise ValueError(f"expected {ndim} extents, got {len(data)} bytes")
        shape = array_of(data[at + 1 : at + 1 + ndim * width], _EXTENTS[form]).tolist()
        at += 1 + ndim * width
    return array_of(data[at:], np.dtype(kind).newbyteorder("<"), shape)


def _byte(data: np.ndarray, at: int) -> int:
    if at >= len(data):
        raise ValueError(f"expected the header of an array, got {len(data)} bytes")
    return int(data[at])
