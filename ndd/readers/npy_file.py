"""`.npy` files: the arrays in them, and regions of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ndd._tensor import Packed
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import dtype as to_dtype
from ndd.decoders._npy_header import Header, header_length, native, parse_header, read_header
from ndd.readers.container import rows_at
from ndd.readers.file_reading import OpenFiles, read_files
from ndd.readers.output import Record
from ndd.readers.records import Records, samples_of
from ndd.readers.region import Bounds, Region

_PREFIX = 256  # bytes that hold most headers: NumPy writes 128


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
            header = read_header(content)
            _check_size(header, len(content))
            piece = content[header.start : header.start + header.size]
            found.append((native(np.ndarray(header.shape, header.dtype, piece, strides=header.strides)),))
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
        return native(stored)
    padding = convert_array(np.array(fill, np.float64), "f64", to_dtype(kind).name)
    array = np.full(wanted, padding, kind)
    to = tuple(slice(a - first, b - first) for (a, b), (first, _) in zip(inside, span.bounds, strict=True))
    if span.size:
        array[to] = stored
    return array
