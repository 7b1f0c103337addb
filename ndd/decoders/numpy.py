"""`ndd.decoders.numpy`: the bytes of `.npy` files to arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cpu.gather import PIECE, gather_loop
from ndd._operator import Operand, bad_sample, operator, output
from ndd._operator.naming import raise_first
from ndd._tensor import DType, Store
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import dtype as to_dtype
from ndd._tensor.memory import host_empty
from ndd._tensor.store import volumes
from ndd.decoders.headers.npy import Header, read_header, read_shapes


@operator(reads="cpu", types=("u8", "i8"))
def numpy(data, /, *, dtype: DType | None = None):
    """Decodes the bytes of files that `numpy.save` wrote.

    The result has the shape of the saved array, C order, the machine's byte order, and no layout. Its number of axes, and
    without `dtype` its element type, are known only after it has run: reading them waits.

    Args:
        data: the bytes, u8 or i8 of any shape on the CPU, as `readers.File`, `readers.Webdataset` and `io.file.read` give
            them.
        dtype: the element type of the result, converted as `ndd.cast` does (rounded, saturated). Default: that of the
            arrays, which must then be the same for all samples of a batch.

    Reads bool, integers and floats of up to 64 bits in versions 1, 2 and 3 of the format, in either byte order and order
    of axes; DALI reads version 1 and the machine's byte order only. DALI's operator also refuses an element type that differs
    from an earlier call's, and an empty array after others; here calls are independent.

    Raises RuntimeError for input that is not bytes, for bytes that are not such a file, for batches of several element types
    (without `dtype`) or numbers of axes, and for a file that is longer or shorter than its header says. The error names
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


# A batch: the shapes follow from the data, and one loop copies all of it.
@numpy.batch
def _(call, data, *, dtype) -> Any:
    headers, which, starts, shapes = _headers(data, dtype)
    kind = _native(headers[0])
    target, counts = dtype or to_dtype(kind), volumes(shapes)
    ends = np.add.accumulate(counts)
    out = host_empty((int(ends[-1]),), target.numpy)
    form: dict[str, Any] = {"flat": out} if (shapes != shapes[0]).any() else {"whole": out.reshape(data.n, *shapes[0])}
    store = Store(target, None, call.outs[0].device, shapes, **form)
    if all([h.in_order and (dtype is None or to_dtype(_native(h)) is target) for h in headers]):
        places, nbytes = data.pointers() + starts, ends * out.itemsize
        count = -(-int(nbytes[-1]) // PIECE)
        call.parallel_for(gather_loop, (places, nbytes, out.ctypes.data), count, 2 * out.nbytes, (data, out))
        return store

    def decode_sample(i: int) -> None:
        header, place = headers[which[i]], out[ends[i] - counts[i] : ends[i]].reshape(shapes[i])
        order: Any = "F" if header.fortran else "C"
        stored = np.ndarray(tuple(shapes[i]), header.dtype, _file(data, i), starts[i], order=order)
        if dtype is None:
            place[...] = stored
        else:
            part = host_empty(stored.shape, _native(header))
            part[...] = stored
            convert_array(part, _name(header), dtype.name, place)

    raise_first(call.spread(decode_sample, data.n, int(data.sizes.sum())))
    return store


def _headers(data: Operand, dtype: DType | None) -> tuple[list[Header], np.ndarray, np.ndarray, np.ndarray]:
    """The headers, one for all samples that differ only in their shape; the number of each sample's header; the byte where its
    elements begin; and the shapes, int64 `[N, ndim]`."""
    text = _file(data, 0)
    first = _header(data, 0)
    headers, which, starts = [first], np.zeros(data.n, np.int64), np.full(data.n, first.start)
    shapes = np.empty((data.n, len(first.shape)), np.int64)
    shapes[0] = first.shape
    known = read_shapes(first, text, data.pointers(), data.sizes, shapes) if data.n > 1 else np.ones(1, np.bool_)
    for i in np.flatnonzero(~known).tolist():
        header = _header(data, i)
        if dtype is None and _native(header) != _native(first):
            raise bad_sample(i, f"expected {_name(first)} as in sample 0, got {_name(header)}; `dtype=` converts all")
        if len(header.shape) != len(first.shape):
            raise bad_sample(i, f"expected {len(first.shape)} axes as in sample 0, got shape {header.shape}")
        which[i], starts[i], shapes[i] = len(headers), header.start, header.shape
        headers.append(header)
    return headers, which, starts, shapes


def _file(data: Operand, i: int) -> np.ndarray:
    return data.arrays[i].reshape(-1).view(np.uint8)


def _native(header: Header) -> np.dtype:
    return header.dtype.newbyteorder("=")


def _name(header: Header) -> str:
    return to_dtype(_native(header)).name


def _header(data: Operand, i: int) -> Header:
    """The header of sample i. The file must be as long as it says."""
    file = _file(data, i)
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
