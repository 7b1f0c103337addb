"""`.npy` files: the arrays in them, and regions of these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ndd._tensor import Device, Packed
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import dtype as to_dtype
from ndd.decoders.headers.npy import Header, header_length, native, parse_header, read_header
from ndd.io.object_store import is_remote
from ndd.readers.files.file_reading import OpenFiles, UsualSize, read_files
from ndd.readers.files.gpudirect import Landed, Range, land
from ndd.readers.formats.region import Bounds, Region
from ndd.readers.output import Record
from ndd.readers.stores.container import rows_at
from ndd.readers.stores.records import Records, samples_of

_PREFIX = 256  # bytes that hold most headers: NumPy writes 128
_MOST_PADDING = 1 << 28  # bytes of a region around an array without elements


class _Span(NamedTuple):
    """The range to read of a file."""

    place: int
    header: Header
    bounds: Bounds
    offset: int
    size: int


def read_arrays(
    paths: Sequence[str],
    region: Region | None,
    fill: float,
    gpu: Device | None = None,
    usual: UsualSize | None = None,
) -> Records:
    """The arrays in some files, or the region of each. An OSError or ValueError stands in the place of a file that cannot be
    read. With `gpu`, local files are read to that GPU by GPUDirect, as `Landed` samples. `usual`: as of `read_files`."""
    if gpu is not None and not any(map(is_remote, paths)):
        return _landed(paths, region, fill, gpu)
    return _whole_arrays(paths, usual) if region is None else Records.of(_regions(paths, region, fill))


def _whole_arrays(paths: Sequence[str], usual: UsualSize | None) -> Records:
    contents, errors = read_files(paths, usual)
    if isinstance(contents, Packed) and len(contents.buffers) == 1:
        alike = _alike(contents)
        if alike is not None:
            return Records.from_columns([alike])
    arrays: list[Record | Exception] = []
    for place, content in enumerate(samples_of(contents)):
        try:
            if place in errors:
                raise errors[place]
            header = read_header(content)
            _check_size(header, len(content))
            piece = content[header.start : header.start + header.size]
            arrays.append((native(np.ndarray(header.shape, header.dtype, piece, strides=header.strides)),))
        except (OSError, ValueError) as error:
            arrays.append(error)
    return Records.of(arrays)


def _alike(files: Packed) -> Packed | None:
    """The arrays in files in one buffer that all have the header of the first, as views; None if headers differ or elements
    must be moved."""
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
    """Reads the beginnings of all files together, then the bytes of each from the region's first element to its last."""
    with OpenFiles(paths) as files:
        spans, arrays = _spans(files, region)
        for span, array in zip(spans, _arrays(files, spans, fill), strict=True):
            arrays[span.place] = array if isinstance(array, OSError) else (array,)
    return arrays


def _landed(paths: Sequence[str], region: Region | None, fill: float, gpu: Device) -> Records:
    """As `_regions`, to a GPU: directly from the file if the bytes lie there in the right form, otherwise through the
    CPU."""
    with OpenFiles(paths) as files:
        spans, arrays = _spans(files, region)
        straight = [_lies_as_wanted(span) for span in spans]
        others = iter(_arrays(files, [s for s, direct in zip(spans, straight, strict=True) if not direct], fill))
        pieces: list[tuple[_Span, Any]] = []
        for span, direct in zip(spans, straight, strict=True):
            handle = int(files.handles[span.place])
            piece = Range(paths[span.place], handle, span.offset, span.size) if direct else next(others)
            if isinstance(piece, OSError):
                arrays[span.place] = piece
            else:
                pieces.append((span, piece))
        if pieces:
            there, stream = land([piece for _, piece in pieces], gpu)
            for (span, _), memory in zip(pieces, there, strict=True):
                shape = tuple(after - first for first, after in span.bounds)
                kind = span.header.dtype.newbyteorder("=")
                arrays[span.place] = (
                    memory if isinstance(memory, OSError) else (Landed(memory, kind, shape, gpu, stream),)
                )
    faults = {place: record for place, record in enumerate(arrays) if isinstance(record, Exception)}
    nothing: Any = (None,)
    samples = [(nothing if place in faults else record)[0] for place, record in enumerate(arrays)]
    return Records.from_columns([samples], faults)


def _lies_as_wanted(span: _Span) -> bool:
    """Whether the file holds the bytes of the region in one piece and in order, where a GPU may use them."""
    header, whole = span.header, span.header.dtype.itemsize
    for first, after in span.bounds:
        whole *= after - first
    in_order = header.dtype.isnative and (not header.fortran or len(header.shape) < 2)
    # A region without gaps is as long as its elements, and reaches beyond the array only where it is padded.
    inside = _inside(header, span.bounds) == span.bounds
    return in_order and inside and span.size == whole > 0 and span.offset % header.dtype.itemsize == 0


def _spans(files: OpenFiles, region: Region | None) -> tuple[list[_Span], list[Any]]:
    """The range to read of each file, and a list of results with the errors of files without a range."""
    arrays: list[Any] = [None] * len(files.paths)
    spans: list[_Span] = []
    sizes = np.minimum(files.sizes, _PREFIX)
    for place, beginning in enumerate(files.read(np.arange(len(sizes)), np.zeros(len(sizes)), sizes)):
        try:
            spans.append(_span(files, place, beginning, region))
        except (OSError, ValueError) as error:
            arrays[place] = error
    return spans, arrays


def _arrays(files: OpenFiles, spans: Sequence[_Span], fill: float) -> list[np.ndarray | OSError]:
    """The regions, read by the CPU."""
    pieces = files.read([s.place for s in spans], [s.offset for s in spans], [s.size for s in spans])
    return [
        piece if isinstance(piece, OSError) else _array(span, piece, fill)
        for span, piece in zip(spans, pieces, strict=True)
    ]


def _check_size(header: Header, size: int) -> None:
    end = header.start + header.size
    if 0 <= size < end:
        raise ValueError(f"expected {end} bytes for shape {header.shape} of {header.dtype}, the file has {size}")


def _span(files: OpenFiles, place: int, beginning: np.ndarray | OSError, region: Region | None) -> _Span:
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
    bounds = [(0, extent) for extent in header.shape] if region is None else region.of(header.shape)
    inside = _inside(header, bounds)
    if any(first >= after for first, after in inside):
        _check_padding(header, bounds)
        return _Span(place, header, bounds, header.start, 0)
    first = sum(first * stride for (first, _), stride in zip(inside, header.strides, strict=True))
    last = sum((after - 1) * stride for (_, after), stride in zip(inside, header.strides, strict=True))
    return _Span(place, header, bounds, header.start + first, last - first + header.dtype.itemsize)


def _check_padding(header: Header, bounds: Bounds) -> None:
    """An array without elements may claim any other extents: no bytes have to be there."""
    nbytes = header.dtype.itemsize * math.prod(max(after - first, 0) for first, after in bounds)
    if header.size == 0 and nbytes > _MOST_PADDING:
        raise ValueError(f"expected an array to pad to {nbytes} bytes, got none: its shape is {header.shape}")


def _inside(header: Header, bounds: Bounds) -> Bounds:
    """The part of a region inside of the array; empty ranges as (0, 0)."""
    cut = [(max(first, 0), min(after, extent)) for (first, after), extent in zip(bounds, header.shape, strict=True)]
    return [(first, after) if first < after else (0, 0) for first, after in cut]


def _array(span: _Span, piece: np.ndarray, fill: float) -> np.ndarray:
    """The region as a C-contiguous array of the machine's byte order, padded where it is outside."""
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
