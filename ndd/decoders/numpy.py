"""`ndd.decoders.numpy`: the bytes of `.npy` files to arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._operator import bad_sample, operator, output
from ndd._operator.naming import raise_first
from ndd._tensor import DType, Store
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import dtype as to_dtype
from ndd._tensor.memory import host_empty
from ndd.decoders._npy_header import Header, read_header


@operator(reads="cpu", types=("u8", "i8"))
def numpy(data, /, *, dtype: DType | None = None):
    """Decodes arrays that `numpy.save` wrote, from the bytes of the files.

    What comes out has the shape of the array that was saved, in C order and the machine's byte order, and no layout. Its
    number of axes, and without `dtype` its element type, are known when it has run: to ask for them waits.

    Args:
        data: the bytes, u8 or i8 of any shape on the CPU, as `readers.File`, `readers.Webdataset` and `io.file.read` give
            them.
        dtype: the element type of the result, converted as `ndd.cast` does (rounded, saturated). Default: that of the
            arrays, which is then the same one for all samples of a batch.

    Takes bool, integers and floats of up to 64 bits in versions 1, 2 and 3 of the format, in either byte order and order
    of axes; DALI takes version 1 and the machine's byte order only. DALI's operator also refuses an element type, or an
    empty array, after it has seen another in an earlier call: here calls know nothing of each other.

    Raises RuntimeError for other input than bytes, for bytes that are no such file, and for batches of several element
    types (without `dtype`) or numbers of axes; for a file that is longer or shorter than its header says. The error names
    sample and file.

    >>> import ndd, io, numpy as np
    >>> file = io.BytesIO()
    >>> np.save(file, np.array([[1.5, 2.5, -300.0]], np.float32))
    >>> data = ndd.tensor(file.getvalue())
    >>> ndd.decoders.numpy(data).torch()
    tensor([[   1.5000,    2.5000, -300.0000]])
    >>> ndd.decoders.numpy(data, dtype=ndd.int8).torch()
    tensor([[   2,    3, -128]], dtype=torch.int8)
    """
    return output(dtype, None)


@numpy.batch
def _(call, data, *, dtype) -> Any:
    files = [file.reshape(-1).view(np.uint8) for file in data.arrays]
    headers = _headers(files)
    first = headers[0]
    kind = first.dtype.newbyteorder("=")
    for i, header in enumerate(headers):
        if header is first:
            continue
        if dtype is None and header.dtype.newbyteorder("=") != kind:
            raise bad_sample(i, f"expected {_name(first)} as in sample 0, got {_name(header)}; `dtype=` converts all")
        if len(header.shape) != len(first.shape):
            raise bad_sample(i, f"expected {len(first.shape)} axes as in sample 0, got shape {header.shape}")
    made = dtype or to_dtype(kind)
    shapes = [header.shape for header in headers]
    whole = shapes.count(shapes[0]) == len(shapes) and dtype is None  # else each in memory of its own
    block = host_empty((len(shapes), *shapes[0]), kind) if whole else None
    parts: list[Any] = [None] * data.n

    def one(i: int) -> None:
        header = headers[i]
        order: Any = "F" if header.fortran else "C"
        stored = np.ndarray(header.shape, header.dtype, files[i], header.start, order=order)
        if block is not None:
            block[i, ...] = stored
            return
        part = host_empty(header.shape, header.dtype.newbyteorder("="))
        part[...] = stored
        parts[i] = part if dtype is None else convert_array(part, _name(header), dtype.name)

    raise_first(call.spread(one, data.n, sum([header.size for header in headers])))
    memory: dict[str, Any] = {"parts": parts} if block is None else {"whole": block}
    return Store(made, None, call.outs[0].device, shapes, **memory)


def _headers(files: list[np.ndarray]) -> list[Header]:
    """The headers; those that are alike, of files of one length, are one object."""
    found, text, size = [], b"", -1
    for i, file in enumerate(files):
        if len(file) != size or file[: len(text)].tobytes() != text:
            header = _header(i, file)
            text, size = file[: header.start].tobytes(), len(file)
        found.append(header)
    return found


def _name(header: Header) -> str:
    return to_dtype(header.dtype.newbyteorder("=")).name


def _header(i: int, file: np.ndarray) -> Header:
    """The header of sample i, whose file must be as long as it says."""
    try:
        header = read_header(file)
    except ValueError as error:
        raise bad_sample(i, str(error)) from None
    if len(file) != header.start + header.size:
        raise bad_sample(
            i,
            f"expected {header.start + header.size} bytes for shape {header.shape} of {header.dtype}, got {len(file)}",
        )
    return header
