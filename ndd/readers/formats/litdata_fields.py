"""Types of LitData's leaves, as its serializers write them."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

from ndd.readers.formats.encoded_fields import Field, array_of, as_bytes, json_value, listed, raw_picture, text, uint32s

_BYTES = ("bytes", "jpeg", "image", "file", "video", "audio", "nifti", "mesh", "pdf", "tifffile", "graph", "pickle")
_NUMPY = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "?")
_TORCH = (
    "f4", "f4", "f8", "f8", "c8", "c8", "c16", "c16", "f2", "f2", "", "u1", "i1", "i2", "i2", "i4", "i4", "i8", "i8", "?", "u2",
)  # fmt: skip
_MOST_AXES = 32


def litdata_field(name: str, kind: str) -> Field:
    """A leaf of the samples. ValueError for an unknown type."""
    family, _, rest = kind.partition(":")
    if family in _BYTES:
        return Field(name, None, None)
    if family in ("int", "float", "bool"):
        return Field(name, None, np.dtype({"int": "<i8", "float": "<f8", "bool": "?"}[family]))
    if family in ("no_header_numpy", "no_header_tensor"):
        element = _element(_NUMPY if family.endswith("numpy") else _TORCH, int(rest) if rest.isdecimal() else -1)
        return Field(name, None, lambda data: array_of(data, element))
    decoders: dict[str, Any] = {
        "str": text,
        "text": text,
        "json": nested,
        "pil": raw_picture,
        "jpeg_array": listed(as_bytes, 0),
        "numpy": _numpy_array,
        "tensor": _torch_tensor,
    }
    if family not in decoders:
        raise ValueError(f"expected a type of LitData for {name!r}, got {kind!r}")
    return Field(name, None, decoders[family])


def _element(kinds: tuple[str, ...], code: int) -> np.dtype[Any]:
    if not 0 <= code < len(kinds) or not kinds[code]:
        raise ValueError(f"expected the code of an element type of numbers, got {code}")
    return np.dtype(kinds[code]).newbyteorder("<")


def _numpy_array(data: np.ndarray) -> np.ndarray:
    code, axes = uint32s(data, 0, 2)
    return array_of(data[8 + 4 * _checked(axes) :], _element(_NUMPY, code), uint32s(data, 8, axes))


def _torch_tensor(data: np.ndarray) -> np.ndarray:
    """Its header is big-endian."""
    if len(data) < 8:
        raise ValueError(f"expected the header of a tensor, got {len(data)} bytes")
    code, axes = struct.unpack(">II", data[:8].tobytes())
    if _checked(axes) > (len(data) - 8) // 4:
        raise ValueError(f"expected {axes} extents, got {len(data)} bytes")
    shape = struct.unpack(f">{axes}I", data[8 : 8 + 4 * axes].tobytes())
    return array_of(data[8 + 4 * axes :], _element(_TORCH, code), shape)


def _checked(axes: int) -> int:
    if axes > _MOST_AXES:
        raise ValueError(f"expected at most {_MOST_AXES} axes, got {axes}")
    return axes


def nested(data: np.ndarray) -> Any:
    """A list or dict: JSON, or LitData's compact form, which begins with a tag below the space."""
    if not len(data) or data[0] > 0x20:
        return json_value(data)
    return _Nested(data.tobytes()).value()


class _Nested:
    """Reads the compact form: a tag and its content. All numbers are little-endian."""

    def __init__(self, data: bytes):
        self._data, self._at = data, 0

    def _take(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise ValueError(f"expected {size} bytes at {self._at}, got {len(self._data)}")
        self._at += size
        return self._data[self._at - size : self._at]

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _text(self) -> str:
        return self._take(self._number("<I")).decode()

    def _count(self, least: int) -> int:
        """A number of items that take at least this many bytes each."""
        count = self._number("<I")
        if count * least > len(self._data) - self._at:
            raise ValueError(f"expected {count} items at {self._at}, got {len(self._data)} bytes")
        return count

    def value(self) -> Any:
        tag = self._take(1)[0]
        if tag == 0:
            return json.loads(self._take(self._number("<I")))
        if tag == 1:
            return [self._text() for _ in range(self._count(4))]
        if tag in (2, 3):
            return np.frombuffer(self._take(8 * self._count(8)), "<i8" if tag == 2 else "<f8").tolist()
        if tag == 4:
            return [byte != 0 for byte in self._take(self._count(1))]
        if tag == 5:
            return {self._text(): self.value() for _ in range(self._count(5))}
        if tag == 6:
            return self._rows()
        return self._scalar(tag, 7)

    def _rows(self) -> list[dict[str, Any]]:
        rows, names = self._number("<I"), [self._text() for _ in range(self._count(4))]
        if rows * len(names) > len(self._data) - self._at or (rows and not names):
            raise ValueError(f"expected {rows} rows at {self._at}, got {len(self._data)} bytes")
        return [{name: self._cell() for name in names} for _ in range(rows)]

    def _cell(self) -> Any:
        tag = self._take(1)[0]
        return None if tag == 0x10 else self._scalar(tag, 0x11)

    def _scalar(self, tag: int, first: int) -> Any:
        kind = tag - first
        if kind == 0:
            return self._text()
        if kind in (1, 2):
            return self._number("<q" if kind == 1 else "<d")
        if kind == 3:
            return self._take(1) != b"\0"
        if kind == 4 and first == 7:
            return None
        raise ValueError(f"expected a tag of LitData's nested values, got {tag}")
