"""`ndd.decoders.inflate`: compressed bytes to arrays."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ndd._cpu.lz4 import inflate_lz4
from ndd._operator import PerSample, Plan, bad_sample, operator, output
from ndd._tensor.dtype import DType, uint8

_WARP = 32


@operator(types=("u8",))
def inflate(
    input,
    /,
    *,
    algorithm: Literal["LZ4"] = "LZ4",
    check_output_size: bool = False,
    chunk_offsets: PerSample[list[int]] | None = None,
    chunk_sizes: PerSample[list[int]] | None = None,
    dtype: DType = uint8,
    layout: str = "",
    sequence_axis_name: str = "F",
    shape: PerSample[list[int]],
):
    """Inflates data that was compressed by LZ4 (blocks, as `lz4.block.compress(data, store_size=False)` makes them).

    Args:
        input: compressed bytes, u8 of any shape.
        shape: that of the result; with chunks, that of each of them. All chunks of a sample have one shape. What it has
            more than the data gives is zeros.
        chunk_offsets: where each chunk begins, in bytes; without `chunk_sizes` a chunk ends where the next one begins.
        chunk_sizes: how many bytes each chunk has; without `chunk_offsets` they lie one behind the other.
        dtype: the element type of the result.
        layout: that of the result, or of each chunk.
        sequence_axis_name: what the axis of the chunks is called, in front of `layout`.
        check_output_size: raise for a chunk that gives less than `shape` says; on a GPU also for one that is damaged or
            gives more, which waits for the result: without it, a GPU gives zeros in its place. The CPU always raises then.
        algorithm: "LZ4".

    Runs on the CPU and the GPU; DALI has it on the GPU only. A GPU inflates all chunks of a batch in one launch, a warp
    for each: many chunks are faster than a large one.

    Raises RuntimeError for chunks that lie outside the data, for a shape with negative extents or more than one axis, and
    for data that is damaged or gives more than `shape` says (see `check_output_size`).

    >>> import ndd, numpy as np
    >>> packed = np.frombuffer(b"\\x17a\\x01\\x00\\x50bcdef", np.uint8)  # "a", 11 bytes from 1 back, "bcdef"
    >>> bytes(ndd.decoders.inflate(packed, shape=[17]).torch())
    b'aaaaaaaaaaaabcdef'
    """
    chunked = chunk_offsets is not None or chunk_sizes is not None
    if len(sequence_axis_name) != 1:
        raise RuntimeError(f"sequence_axis_name: expected one letter, got {sequence_axis_name!r}")
    ndim = len(shape) + chunked if isinstance(shape, list | tuple | np.ndarray) else None
    if ndim is not None and layout and len(layout) != ndim - chunked:
        raise RuntimeError(f"layout: expected a letter for each of {ndim - chunked} axes, got {layout!r}")
    full = (sequence_axis_name + layout if chunked else layout) if layout else None
    return output(dtype, ndim, full)


@inflate.plan
def _(input, *, chunk_offsets, chunk_sizes, dtype, shape, check_output_size, **_):
    rows = shape.arrays()
    for i, row in enumerate(rows):
        if row.ndim > 1:
            raise bad_sample(i, f"shape: expected one number for each axis, got {row.ndim}-D numbers")
    rows = [row.reshape(-1) for row in rows]
    chunked = chunk_offsets is not None or chunk_sizes is not None
    begins, sizes = [], []
    for i, total in enumerate(input.sizes.tolist()):
        begin, size = _chunks(i, total, _row(chunk_offsets, i), _row(chunk_sizes, i))
        begins.append(begin)
        sizes.append(size)
    shapes = [
        (len(b), *map(int, row)) if chunked else tuple(map(int, row)) for b, row in zip(begins, rows, strict=True)
    ]
    for i, one in enumerate(shapes):
        if min(one, default=0) < 0:
            raise bad_sample(i, f"shape: expected extents from 0, got {one}")
    rooms = np.array([int(np.prod(row)) * dtype.numpy.itemsize for row in rows], np.int64)
    return Plan(shapes, {"begins": begins, "sizes": sizes, "rooms": rooms}, {"check": check_output_size})


def _row(values: Any, i: int) -> Any:
    return None if values is None else values.arrays()[i].reshape(-1).astype(np.int64)


def _chunks(i: int, total: int, begin: Any, size: Any) -> tuple[np.ndarray, np.ndarray]:
    """Where the chunks of sample `i` begin, and their sizes."""
    if begin is None:
        size = np.array([total]) if size is None else size
        begin = np.cumsum(size) - size
    elif size is None:
        size = np.diff(np.append(begin, total))
    if len(begin) != len(size):
        raise bad_sample(i, f"expected a size for each of {len(begin)} chunk offsets, got {len(size)}")
    outside = (begin < 0) | (size < 0) | (begin + size > total)
    if outside.any():
        k = int(outside.argmax())
        raise bad_sample(i, f"chunk {k}, {size[k]} bytes from {begin[k]} on, lies outside the {total} bytes of data")
    return begin, size


@inflate.cpu
def _(input, out, begins, sizes, rooms, check):
    source, flat = input.reshape(-1), out.reshape(-1).view(np.uint8)
    for k, (begin, size) in enumerate(zip(begins.tolist(), sizes.tolist(), strict=True)):
        room = flat[k * rooms : (k + 1) * rooms]
        made = inflate_lz4(source[begin : begin + size], room)
        if made < 0 or (check and made < rooms):
            raise RuntimeError(_refused(k, int(rooms), made))
        room[made:] = 0


def _refused(chunk: int, room: int, made: int) -> str:
    got = "data that is damaged, or gives more" if made < 0 else f"{made}"
    return f"chunk {chunk}: expected {room} bytes of LZ4 data as `shape` says, got {got}"


@inflate.cuda("inflate.cu")
def _(launch, input, out, begins, sizes, rooms, check):
    counts = np.array([len(b) for b in begins], np.int64)
    made = launch.scratch(counts, np.int64)
    launch(
        "inflate",
        counts * _WARP,
        per_sample={
            "begins": launch.table(np.concatenate(begins)), "sizes": launch.table(np.concatenate(sizes)),
            "first": np.cumsum(counts) - counts, "chunks": counts, "room": rooms, "made": made,
        },
    )  # fmt: skip
    if check:
        found, ends = made.tensor.cpu().numpy(), np.cumsum(counts)
        for k in np.flatnonzero(found[: ends[-1]] != np.repeat(rooms, counts)).tolist()[:1]:
            i = int(np.searchsorted(ends, k, "right"))
            raise bad_sample(i, _refused(k - int(ends[i] - counts[i]), int(rooms[i]), int(found[k])))
