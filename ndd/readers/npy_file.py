"""`.npy` files: the header (element type, shape, order), and regions of the arrays behind it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ndd._tensor import Packed
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import dtype as to_dtype
from ndd.readers.container import rows_at
from ndd.readers.file_reading import OpenFiles, read_files
from ndd.readers.output import Record
from ndd.readers.records import Records, samples_of
from ndd.readers.region import Bounds, Region

_PREFIX = 256  # bytes that hold most headers: NumPy writes 128
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
        raise ValueError(f"expected elements of a bool, integer or float type of up to 64 bits, got {dtype}")
    return Header(start, dtype, shape, fortran)


class _Span(NamedTuple):
    """What is to be read of a file."""

    place: int
    header: Header
    bounds: Bounds
    offset: int
    size: int


def read_arrays(paths: Sequence[str], region: Region | None, fill: float) -> Records:
    """The arrays in some files, or the region of each. An OSError or ValueError for what cannot be read."""
    return _whole_arrays(paths) if region is None else Records.of(_regions(paths, region, fill))


def _whole_arrays(paths: Sequence[str]) -> Records:
    contents, errors = read_files(paths)
    if isinstance(contents, Packed):
        alike = _alike(contents)
        if alike is not None:
            return Records.found([alike])
    found: list[Record | Exception] = []
    for place, content in enumerate(samples_of(contents)):
        try:
            if place in errors:
                raise errors[place]
            header = parse_header(content[: header_length(content[:12].tobytes())].tobytes())
            _check_size(header, len(content))
            piece = content[header.start : header.start + header.size]
            found.append((_native(np.ndarray(header.shape, header.dtype, piece, strides=header.strides)),))
        except (OSError, ValueError) as error:
            found.append(error)
    return Records.of(found)


def _alike(files: Packed) -> Packed | None:
    """The arrays in files that all have the header of the first, where they lie; None if there are others, or if their
    elements must be moved."""
    (buffer,), starts, sizes = files.buffers, files.starts, files.shapes[:, 0]
    try:
        length = header_length(buffer[starts[0] : starts[0] + 12].tobytes())
        headers = rows_at(buffer, starts, length)
        header = parse_header(headers[0].tobytes())
    except ValueError:
        return None
    dtype, shape = header.dtype, header.shape
    simple = dtype.isnative and not (header.fortran and len(shape) > 1) and header.start % dtype.itemsize == 0
    if not simple or (sizes < header.start + header.size).any() or (headers != headers[0]).any():
        return None
    places = (starts + header.start) // dtype.itemsize
    return Packed([buffer.view(dtype)], files.which, places, np.tile(np.array(shape, np.int64), (len(places), 1)))


def _regions(paths: Sequence[str], region: Region, fill: float) -> list[Record | Exception]:
    """The beginnings of all files are read together, then of each the bytes from the region's first element to its last."""
    found: list[Record | Exception] = [ValueError("not read")] * len(paths)
    with OpenFiles(paths) as files:
        sizes = np.minimum(files.sizes, _PREFIX)
        spans: list[_Span] = []
        for place, beginning in enumerate(files.read(np.arange(len(paths)), np.zeros(len(paths)), sizes)):
            try:
                spans.append(_span(files, place, beginning, region))
            except (OSError, ValueError) as error:
                found[place] = error
        pieces = files.read([s.place for s in spans], [s.offset for s in spans], [s.size for s in spans])
        for span, piece in zip(spans, pieces, strict=True):
            found[span.place] = piece if isinstance(piece, OSError) else (_array(span, piece, fill),)
    return found


def _check_size(header: Header, size: int) -> None:
    end = header.start + header.size
    if 0 <= size < end:
        raise ValueError(f"expected {end} bytes for shape {header.shape} of {header.dtype}, the file has {size}")


def _span(files: OpenFiles, place: int, beginning: np.ndarray | OSError, region: Region) -> _Span:
    if isinstance(beginning, OSError):
        raise beginning
    length = header_length(beginning[:12].tobytes())
    if length > len(beginning):
        longer = files.read([place], [0], [length])[0]
        if isinstance(longer, OSError):
            raise longer
        beginning = longer
    header = parse_header(beginning[:length].tobytes())
    _check_size(header, int(files.sizes[place]))
    bounds = region.of(header.shape)
    inside = _inside(header, bounds)
    if any(first >= after for first, after in inside):
        return _Span(place, header, bounds, header.start, 0)
    first = sum(first * stride for (first, _), stride in zip(inside, header.strides, strict=True))
    last = sum((after - 1) * stride for (_, after), stride in zip(inside, header.strides, strict=True))
    return _Span(place, header, bounds, header.start + first, last - first + header.dtype.itemsize)


def _inside(header: Header, bounds: Bounds) -> Bounds:
    """The part of a region that lies in the array; empty ranges as (0, 0)."""
    cut = [(max(first, 0), min(after, extent)) for (first, after), extent in zip(bounds, header.shape, strict=True)]
    return [(first, after) if first < after else (0, 0) for first, after in cut]


def _array(span: _Span, piece: np.ndarray, fill: float) -> np.ndarray:
    """The region as a C-contiguous array of the machine's byte order, padded where it lies outside."""
    header, inside = span.header, _inside(span.header, span.bounds)
    shape = tuple(after - first for first, after in inside)
    strides = header.strides if span.size else None
    stored = np.ndarray(shape, header.dtype, buffer=piece, strides=strides)
    kind = header.dtype.newbyteorder("=")
    wanted = tuple(after - first for first, after in span.bounds)
    if wanted == shape:
        return _native(stored)
    padding = convert_array(np.array(fill, np.float64), "f64", to_dtype(kind).name)
    array = np.full(wanted, padding, kind)
    to = tuple(slice(a - first, b - first) for (a, b), (first, _) in zip(inside, span.bounds, strict=True))
    if span.size:
        array[to] = stored
    return array


def _native(stored: np.ndarray) -> np.ndarray:
    """The elements as a C-contiguous array of the machine's byte order."""
    if stored.flags.c_contiguous and stored.dtype.isnative:
        return stored
    return stored.astype(stored.dtype.newbyteorder("="), order="C")
