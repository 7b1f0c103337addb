"""Samples of MDS and LitData: the sizes of their fields as u32, then the fields. A field is decoded by its type."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ndd._tensor import Packed
from ndd.readers.output import Column
from ndd.readers.stores.container import rows_at
from ndd.readers.stores.records import Records

_MODES = {"L": 1, "P": 1, "RGB": 3, "RGBA": 4, "CMYK": 4, "YCbCr": 3, "HSV": 3, "LAB": 3, "LA": 2, "RGBX": 4}


class Field(NamedTuple):
    """One value of each sample."""

    name: str
    size: int | None
    """The size in bytes; None if each sample states it."""
    decode: np.dtype[Any] | Callable[[np.ndarray], Any] | None
    """The type of a number; a function of the bytes (u8), which raises ValueError; None: the bytes themselves."""


class Layout:
    """How samples are divided into fields, and the wanted fields, in order."""

    def __init__(self, fields: Sequence[Field], wanted: Sequence[str]):
        names = [field.name for field in fields]
        self._fields = [fields[names.index(name)] for name in wanted]
        self._places = [names.index(name) for name in wanted]
        self._sizes = np.array([-1 if field.size is None else field.size for field in fields], np.int64)

    def records(self, data: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> Records:
        """The wanted fields of samples in u8 `data`."""
        has_size = self._sizes < 0
        head = 4 * int(has_size.sum())
        lengths = np.broadcast_to(np.maximum(self._sizes, 0), (len(starts), len(self._sizes))).copy()
        if head:
            lengths[:, has_size] = rows_at(data, starts, head).view("<u4")
        needed = head + lengths.sum(axis=1)
        faults: dict[int, Exception] = {}
        for place in np.flatnonzero((sizes < head) | (needed > sizes)).tolist():
            faults[place] = ValueError(f"expected fields of {needed[place]} bytes, the sample holds {sizes[place]}")
            lengths[place] = 0
        begins = starts[:, None] + head + np.add.accumulate(lengths, axis=1) - lengths
        columns: list[Column] = []
        for field, k in zip(self._fields, self._places, strict=True):
            column, wrong = _column(field, data, begins[:, k], lengths[:, k])
            columns.append(column)
            faults.update({place: error for place, error in wrong.items() if place not in faults})
        return Records.from_columns(columns, faults)


def _column(
    field: Field, data: np.ndarray, begins: np.ndarray, sizes: np.ndarray
) -> tuple[Column, dict[int, Exception]]:
    if field.decode is None:
        return Packed.of(data, begins, sizes), {}
    wrong: dict[int, Exception] = {}
    if isinstance(field.decode, np.dtype):
        width = field.decode.itemsize
        for place in np.flatnonzero(sizes != width).tolist():
            wrong[place] = ValueError(f"expected {field.name!r} in {width} bytes, got {sizes[place]}")
        values = rows_at(data, begins, width).view(field.decode)
        return values.astype(field.decode.newbyteorder("="), copy=False), wrong
    samples: list[Any] = []
    for place, (begin, size) in enumerate(zip(begins.tolist(), sizes.tolist(), strict=True)):
        try:
            samples.append(field.decode(data[begin : begin + size]))
        except (ValueError, ArithmeticError, RecursionError) as error:
            samples.append(None)
            wrong[place] = ValueError(f"field {field.name!r}: {error}")
    return samples, wrong


def text(data: np.ndarray) -> str:
    """UTF-8."""
    return data.tobytes().decode()


def json_value(data: np.ndarray) -> Any:
    """JSON."""
    return json.loads(data.tobytes())


def array_of(data: np.ndarray, kind: Any, shape: Sequence[int] | None = None) -> np.ndarray:
    """An array of this type and shape, or of one dimension; a copy, since samples lie at any address."""
    width, count = np.dtype(kind).itemsize, 1
    if shape is None:
        if len(data) % width:
            raise ValueError(f"expected a multiple of {width} bytes for {kind}, got {len(data)}")
        shape = [len(data) // width]
    for extent in shape:
        count *= int(extent)
    if count * width != len(data):  # Python numbers, which do not wrap
        raise ValueError(f"expected an array of {kind} and shape {[*map(int, shape)]}, got {len(data)} bytes")
    values = np.frombuffer(data.tobytes(), kind)
    return values.reshape([int(extent) for extent in shape]).astype(np.dtype(kind).newbyteorder("="))


def uint32s(data: np.ndarray, start: int, count: int) -> list[int]:
    """Numbers at a position of the data. ValueError if the data ends before them."""
    if start < 0 or count > (len(data) - start) // 4:
        raise ValueError(f"expected {count} numbers at byte {start}, got {len(data)} bytes")
    return np.frombuffer(data[start : start + 4 * count].tobytes(), "<u4").tolist()


def raw_picture(data: np.ndarray) -> np.ndarray:
    """A picture as Pillow's `tobytes` gives it, after width, height, length of the mode and the mode: HWC u8."""
    width, height, length = uint32s(data, 0, 3)
    if length > 16 or length > len(data) - 12:
        raise ValueError(f"expected the mode of a picture, got {length} bytes of it")
    mode = text(data[12 : 12 + length])
    if mode not in _MODES:
        raise ValueError(f"expected a picture of mode {', '.join(_MODES)}, got {mode!r}")
    return array_of(data[12 + length :], np.uint8, [height, width, _MODES[mode]])


def listed(decode: Callable[[np.ndarray], Any], start: int) -> Callable[[np.ndarray], list[Any]]:
    """Several values: after `start` bytes come their number, their sizes, and the values."""

    def values(data: np.ndarray) -> list[Any]:
        (count,) = uint32s(data, start, 1)
        at, decoded = start + 4 + 4 * count, []
        for size in uint32s(data, start + 4, count):
            if size > len(data) - at:
                raise ValueError(f"expected {size} bytes at {at} of a list, got {len(data)}")
            decoded.append(decode(data[at : at + size]))
            at += size
        return decoded

    return values


def as_bytes(data: np.ndarray) -> np.ndarray:
    """An encoded picture in a list."""
    return data.copy()
