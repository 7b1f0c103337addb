"""`ndd.segmentation.random_mask_pixel`: a random pixel of a mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._cpu.draws import below
from ndd._cpu.philox import new_cursor, seek
from ndd._operator import PerSample, Plan, Values, View, bad_sample, operator, output
from ndd._tensor.dtype import int64

_CHUNK = 64  # pixels that a GPU thread counts
_BLOCK = 1024  # pixels that the CPU counts before it checks them one by one


@operator(types=("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "bool"), random=True)
def random_mask_pixel(
    input,
    /,
    *,
    foreground: PerSample[int] = 0,
    threshold: PerSample[float] = None,
    value: PerSample[int] = None,
):
    """Draws a pixel of a mask, from all of them or from its foreground.

    Args:
        input: a mask of any rank: integers, bool or float32. An axis of channels counts as any other.
        foreground: draw from the foreground unless 0. A mask without foreground is treated as with 0.
        threshold: the foreground exceeds this number. Default: 0.
        value: the foreground equals this number; excludes `threshold`.
        rng: an `RNG`; without it the thread's default one. A call advances it by seven words.

    The result is int64 with an entry for each axis: an anchor for `slice` or `crop` around an object. Every pixel, or every
    one of the foreground, is equally likely. The numbers are DALI's, equal on CPU and GPU.

    Raises RuntimeError for other types, both `threshold` and `value`, and masks without pixels (DALI gives any number).

    >>> import ndd
    >>> mask = ndd.tensor([[0, 0, 0], [0, 0, 7]])
    >>> ndd.segmentation.random_mask_pixel(mask, foreground=1).torch()
    tensor([1, 2])
    """
    if threshold is not None and value is not None:
        raise RuntimeError("`threshold` and `value` exclude each other")
    return output(int64, 1)


@random_mask_pixel.plan
def _(call, input, *, foreground, threshold, value):
    shapes = input.shapes
    for i in np.flatnonzero((shapes == 0).any(axis=1))[:1]:
        raise bad_sample(int(i), f"expected a mask with pixels, got shape {tuple(shapes[i].tolist())}")
    against = _bounds(threshold if value is None else value, input.n, np.float32 if value is None else np.int64)
    kind = np.dtype(np.uint8) if input.dtype.name == "bool" else input.dtype.numpy
    lowest, highest = _foreground(against, value is not None, kind)
    per_sample = {
        "extents": shapes, "stream": call.draws.streams(input.n), "foreground": (foreground.each() != 0).astype(np.int32),
        "against": against, "lowest": lowest, "highest": highest,
    }  # fmt: skip
    return Plan(
        np.full((input.n, 1), shapes.shape[1]),
        per_sample,
        {"equal": value is not None},
        view={"mask": View("flat", kind)},
    )


def _bounds(values: Values | None, n: int, kind: Any) -> np.ndarray:
    return np.zeros(n, kind) if values is None else values.each().astype(kind)


def _foreground(against: np.ndarray, equal: bool, kind: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest element of the foreground in each sample, in the type of the elements. The lowest is above the
    highest if there is no foreground."""
    if kind.kind == "f":
        if equal:
            return against.astype(kind), against.astype(kind)
        highest = np.where(against < np.inf, np.inf, -np.inf).astype(kind)
        return np.nextafter(against, kind.type(np.inf)), highest
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    if equal:
        fits = (against >= least) & (against <= most)
        lowest = np.where(fits, against, 1)
        return lowest.astype(kind), np.where(fits, lowest, 0).astype(kind)
    # An integer exceeds a number if it exceeds the number's floor.
    whole = np.floor(against.astype(np.float64))
    some = whole < np.float64(most)
    above = some & (whole >= least)
    lowest = np.full(len(whole), least, kind)
    lowest[above] = whole[above].astype(kind) + kind.type(1)
    lowest[~some] = 1
    return lowest, np.where(some, kind.type(most), kind.type(0))


@random_mask_pixel.cpu
@kernel
def _draw(mask, out, extents, foreground, lowest, highest, stream):
    if foreground == 0 or not _place_of(mask, lowest, highest, stream, extents, out):
        _place(stream, extents, out)


_draw.fallback()


@kernel
def _place_of(x, lowest, highest, stream, extents, out):
    """Draws one of the elements from `lowest` to `highest`. Returns False, and draws no word, if there is none."""
    blocks, count = (x.size + _BLOCK - 1) // _BLOCK, np.int64(0)
    counts = empty(blocks, np.int64)
    for b in range(blocks):
        block = x[b * _BLOCK : (b + 1) * _BLOCK]
        chosen = np.int32(0)  # int32 is vectorised more often than int64
        for i in range(block.size):
            chosen = np.int32(chosen + ((block[i] >= lowest) & (block[i] <= highest)))
        counts[b] = chosen
        count += chosen
    if not count:
        return False
    cursor = new_cursor()
    seek(cursor, stream, 0)
    left, b = np.int64(below(cursor, np.uint64(count))), 0
    while left >= counts[b]:
        left -= counts[b]
        b += 1
    i = b * _BLOCK - 1
    while left >= 0:
        i += 1
        left -= (x[i] >= lowest) & (x[i] <= highest)
    for k in range(out.size - 1, -1, -1):
        out[k], i = i % extents[k], i // extents[k]
    return True


@_place_of.interpreted_as
def _(x, lowest, highest, stream, extents, out):
    places = np.flatnonzero((x >= lowest) & (x <= highest))
    if not places.size:
        return False
    _place.in_python()(stream, np.array([places.size]), picked := np.empty(1, np.int64))
    out[:] = np.unravel_index(places[picked[0]], extents)
    return True


@kernel
def _place(stream, extents, out):
    cursor = new_cursor()
    seek(cursor, stream, 0)
    for k in range(out.size):
        out[k] = below(cursor, np.uint64(extents[k]))


@random_mask_pixel.cuda("random_mask_pixel.cu")
def _(launch, input, out):
    """The first launch counts the foreground of chunks; in the second a block of threads for each mask finds the pixel."""
    chunks = -(-input.sizes // _CHUNK)
    fields = {"counts": launch.scratch(chunks, np.int32), "chunks": chunks, "size": input.sizes}
    macros = {"CHUNK": _CHUNK, "AXES": input.ndim}
    launch("count_foreground", chunks, per_sample=fields, macros=macros)
    launch("random_mask_pixel", 1, per_sample=fields, macros=macros)
