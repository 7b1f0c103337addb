"""The header of the `.npy` format: element type, shape and order of what follows it.

The format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import NamedTuple

import numpy as np

_MAGIC = b"\x93NUMPY"
_LIMIT = 1 << 20  # a header holds a type and a shape; one that claims more is none


class Header(NamedTuple):
    """What stands in a header; `start` is where the elements begin."""

    start: int
    dtype: np.dtype
    shape: tuple[int, ...]
    fortran: bool

    @property
    def size(self) -> int:
        """Bytes of the elements."""
        count = self.dtype.itemsize
        for extent in self.shape:
            count *= extent
        return count

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from element to element along each axis, as the file holds them."""
        order = range(len(self.shape)) if self.fortran else range(len(self.shape) - 1, -1, -1)
        strides, step = [0] * len(self.shape), self.dtype.itemsize
        for axis in order:
            strides[axis] = step
            step *= self.shape[axis]
        return tuple(strides)


def header_length(beginning: bytes) -> int:
    """How many bytes the header has, from the first 12 of a file. ValueError if it is no `.npy` file."""
    if beginning[:6] != _MAGIC or len(beginning) < 12:
        raise ValueError(f"expected a .npy file, which begins with {_MAGIC!r}, got {beginning[:6]!r}")
    if beginning[6] not in (1, 2, 3):
        raise ValueError(f"expected .npy version 1, 2 or 3, got {beginning[6]}.{beginning[7]}")
    wide = beginning[6] > 1
    length = int.from_bytes(beginning[8 : 12 if wide else 10], "little")
    if length > _LIMIT:
        raise ValueError(f"expected a .npy header of at most {_LIMIT} bytes, got {length}")
    return length + (12 if wide else 10)


@lru_cache(1024)  # the files of a data set mostly have one header
def parse_header(text: bytes) -> Header:
    """The header in the first `header_length` bytes of a file. ValueError for a damaged one, or a type that ndd lacks."""
    start = header_length(text)
    encoded = text[10 if text[6] == 1 else 12 : start]
    try:
        found = ast.literal_eval(encoded.decode("utf-8" if text[6] == 3 else "latin-1").strip())
        shape, fortran, described = found["shape"], found["fortran_order"], found["descr"]
        dtype = np.dtype(described if isinstance(described, str) else [tuple(field) for field in described])
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(f"expected a .npy header, got {encoded[:80]!r}") from error
    extents = isinstance(shape, tuple) and all(type(extent) is int and extent >= 0 for extent in shape)
    if len(text) < start or not extents or not isinstance(fortran, bool):
        raise ValueError(f"expected a .npy header with shape and fortran_order, got {encoded[:80]!r}")
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise ValueError(
            f"expected elements of a bool, integer or float type of up to 64 bits, got {dtype} (Unknown Numpy type string)"
        )
    return Header(start, dtype, shape, fortran)


def native(stored: np.ndarray) -> np.ndarray:
    """The elements as a C-contiguous array of the machine's byte order."""
    if stored.flags.c_contiguous and stored.dtype.isnative:
        return stored
    return stored.astype(stored.dtype.newbyteorder("="), order="C")


def read_header(file: np.ndarray) -> Header:
    """The header of a whole file, u8. ValueError as `parse_header`."""
    return parse_header(file[: header_length(file[:12].tobytes())].tobytes())
