"""`ndd.decoders.inflate`: compressed bytes to arrays."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ndd._operator import PerSample, Plan, Values, bad_sample, operator, output
from ndd._tensor.dtype import DType, uint8
from ndd._tensor.small_arrays import numbers_below
from ndd._tensor.store import volumes
from ndd.decoders.lz4 import inflate_loop

_WARP = 32
_WORK = 16  # about as many bytes are copied in the time that inflating one takes


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
    """Inflates LZ4 blocks, as `lz4.block.compress(data, store_size=False)` makes them.

    Args:
        input: compressed bytes, u8 of any shape.
        shape: the shape of the result, or of each chunk: all chunks of a sample have the same shape. Elements beyond the data
            are zeros.
        chunk_offsets: where each chunk begins, in bytes; without `chunk_sizes` a chunk ends where the next one begins.
        chunk_sizes: the bytes of each chunk; without `chunk_offsets` chunks lie one after the other.
        dtype: the element type of the result.
        layout: the layout of the result, or of each chunk.
        sequence_axis_name: the name of the axis of chunks, in front of `layout`.
        check_output_size: raise for a chunk that gives less than `shape` says. On a GPU it also raises for a chunk that is
            damaged or gives more, and waits for the check; without it such a chunk gives zeros. The CPU always raises for those.
        algorithm: "LZ4".

    Runs on the CPU and the GPU; DALI's runs on the GPU only. A GPU inflates all chunks of a batch in one launch, with a warp
    for each chunk: many small chunks are faster than a large one.

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
    extents = _extents(shape)
    for i in np.flatnonzero((extents < 0).any(axis=1))[:1].tolist():
        raise bad_sample(i, f"shape: expected extents from 0, got {tuple(extents[i].tolist())}")
    begins, sizes, counts = _chunks(input.sizes, chunk_offsets, chunk_sizes)
    chunked = chunk_offsets is not None or chunk_sizes is not None
    shapes = np.concatenate((counts[:, None], extents), axis=1) if chunked else extents
    numbers = {"begins": begins, "sizes": sizes, "check": check_output_size}
    return Plan(shapes, {"rooms": volumes(extents) * dtype.numpy.itemsize, "counts": counts}, numbers)


def _extents(shape: Values) -> np.ndarray:
    """`shape` of each sample, int64 `[N, ndim]`."""
    rows = shape.distinct()
    for i, row in enumerate(rows):
        if row.ndim > 1:
            raise bad_sample(i, f"shape: expected one number for each axis, got {row.ndim}-D numbers")
        if row.size != rows[0].size:
            raise bad_sample(i, f"shape: expected {rows[0].size} numbers as in sample 0, got {row.size}")
    extents = np.array(rows, np.int64).reshape(len(rows), -1)
    return extents if shape.varies else np.repeat(extents, shape.n, axis=0)


def _chunks(
    totals: np.ndarray, offsets: Values | None, lengths: Values | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The offsets of the chunks of all samples within their samples, their sizes, and the number of chunks of each sample."""
    if offsets is None and lengths is None:
        return np.zeros(len(totals), np.int64), totals, np.ones(len(totals), np.int64)
    begins, counts = _flat(offsets or lengths)  # type: ignore[arg-type]
    sizes, known = _flat(lengths or offsets)  # type: ignore[arg-type]
    for i in np.flatnonzero(counts != known)[:1].tolist():
        raise bad_sample(i, f"expected a size for each of {counts[i]} chunk offsets, got {known[i]}")
    first = np.add.accumulate(counts) - counts
    if offsets is None:
        before = np.concatenate(([0], np.add.accumulate(sizes)))
        begins = before[:-1] - np.repeat(before[first], counts)
    elif lengths is None:
        ends = np.append(begins[1:], 0)
        ends[(first + counts - 1)[counts > 0]] = totals[counts > 0]
        sizes = ends - begins
    # A difference of numbers from 0 cannot wrap; their sum can.
    outside = (begins < 0) | (sizes < 0) | (begins > np.repeat(totals, counts) - sizes)
    for k in np.flatnonzero(outside)[:1].tolist():
        i, c = _place(k, counts)
        text = f"chunk {c}, {sizes[k]} bytes from {begins[k]} on, lies outside the {totals[i]} bytes of data"
        raise bad_sample(i, text)
    return begins, sizes, counts


def _flat(values: Values) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of all samples, concatenated, and how many each sample has."""
    rows = [row.reshape(-1) for row in values.arrays()]
    return np.concatenate(rows).astype(np.int64), np.array([row.size for row in rows], np.int64)


def _place(k: int, counts: np.ndarray) -> tuple[int, int]:
    """The sample that has chunk `k` of the batch, and the chunk's number in that sample."""
    ends = np.add.accumulate(counts)
    i = int(np.searchsorted(ends, k, "right"))
    return i, int(k - ends[i] + counts[i])


# A batch: threads share the chunks; a sample may have one or thousands.
@inflate.batch
def _(call, plan, input, out):
    shared = plan.shared
    rooms, counts = plan.per_sample["rooms"], plan.per_sample["counts"]
    chunk = numbers_below(len(shared["begins"])) - np.repeat(np.add.accumulate(counts) - counts, counts)
    each = np.repeat(rooms, counts)
    sources = np.repeat(np.broadcast_to(input.pointers(), counts.shape), counts) + shared["begins"]
    targets, written = np.repeat(out.pointers(), counts) + chunk * each, np.empty(len(each), np.int64)
    call.parallel_for(
        inflate_loop, (sources, shared["sizes"], targets, each, written),
        len(each), _WORK * out.nbytes(), (input, out),
    )  # fmt: skip
    _check(written, (written < 0) | (written < each) & shared["check"], rooms, counts)


def _check(written: np.ndarray, wrong: np.ndarray, rooms: np.ndarray, counts: np.ndarray) -> None:
    """Raises an error about the first chunk that is `wrong`. `written` has the number of bytes that each chunk gave."""
    for k in np.flatnonzero(wrong)[:1].tolist():
        i, c = _place(k, counts)
        raise bad_sample(i, _refused(c, int(rooms[i]), int(written[k])))


def _refused(chunk: int, room: int, written: int) -> str:
    got = "data that is damaged, or gives more" if written < 0 else f"{written}"
    return f"chunk {chunk}: expected {room} bytes of LZ4 data as `shape` says, got {got}"


@inflate.cuda("inflate.cu")
def _(launch, input, out, begins, sizes, rooms, counts, check):
    memory = launch.scratch(counts, np.int64)
    launch(
        "inflate",
        counts * _WARP,
        per_sample={
            "begins": launch.table(begins), "sizes": launch.table(sizes),
            "first": np.cumsum(counts) - counts, "chunks": counts, "room": rooms, "made": memory,
        },
    )  # fmt: skip
    if check:
        each = np.repeat(rooms, counts)
        written = memory.tensor.cpu().numpy()[: len(each)]
        _check(written, written != each, rooms, counts)
