"""The table of pictures that a compiled loop decodes, for the formats whose common files are decoded as a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ndd._compiled.intrinsics import array_at, empty
from ndd._compiled.jit import Kernel, from_template, kernel
from ndd._compiled.sample_loops import next_index
from ndd._cpu.element_copies import copy_bytes
from ndd._tensor.memory import host_empty
from ndd.decoders.backend import Decoded, Options
from ndd.decoders.jpeg.batch_headers import CHANNELS, GOOD, HEIGHT, ORIENTATION, WIDTH
from ndd.types import DALIImageType

if TYPE_CHECKING:
    from ndd.decoders.picture_batch import PictureBatch

# The columns of a picture: address and bytes of the file, address and bytes of the result, the size in the header, the window
# (first row, first column, rows, columns), channels of the result, blue before red, and the part of the picture as stored that
# is used (first row, first column, the ones after the last): pixels outside it may stay undefined.
FILE, FILE_BYTES, OUT, OUT_BYTES, ROWS, COLUMNS, TOP, LEFT, HIGH, WIDE, DEPTH, IS_BGR = range(12)
USED_TOP, USED_LEFT, USED_BOTTOM, USED_RIGHT, NUMBERS = range(12, 17)
_ANY = np.zeros(1, np.uint8)
_ZERO, _ONE, _TWO, _THREE = (np.uint64(n) for n in range(4))


def describe_by(look: Kernel, batch: PictureBatch) -> None:
    """Reads the headers that a format's `look` can read. A picture that is too large is an error of its sample."""
    addresses, sizes = np.ascontiguousarray(batch.operand.pointers()), np.ascontiguousarray(batch.operand.sizes)
    look(addresses, sizes, _ANY, batch.facts)
    batch.refuse_large()


def suitable_for(kind: int, facts: np.ndarray, options: Options) -> np.ndarray:
    """Whether each picture is of the format `kind` and may come out as it is stored, bool `[N]`: each format has its own rule by
    which colours become gray."""
    if options.output_type == DALIImageType.YCbCr or options.dtype != np.uint8:
        return np.zeros(len(facts), np.bool_)
    fits = facts[:, GOOD] == kind
    return fits & (facts[:, CHANNELS] == 1) if options.output_type == DALIImageType.GRAY else fits


def decode_by(
    loop: Kernel, batch: PictureBatch, order: np.ndarray, decoded: Decoded, work: int, *more: np.ndarray | bool
) -> None:
    """Decodes pictures in this order by a loop that takes the order, the table, `more`, and the flags of what is done. None
    while the loop is being compiled.

    Args:
        work: about as many bytes are moved for one encoded byte.
    """
    nbytes = work * int(np.add.reduce(batch.operand.sizes[order]))
    arguments = (order, picture_table(batch, decoded), *(more or (_ANY,)), decoded.done)
    batch.call.parallel_for(loop, arguments, len(order), nbytes, (batch.operand, decoded.memory))


def picture_table(batch: PictureBatch, decoded: Decoded) -> np.ndarray:
    """The table of all pictures of a batch, int64 `[N, NUMBERS]`."""
    facts, shapes = batch.facts, decoded.shapes
    table = np.zeros((len(batch), NUMBERS), np.int64)
    table[:, FILE], table[:, FILE_BYTES] = batch.operand.pointers(), batch.operand.sizes
    table[:, OUT] = decoded.memory.ctypes.data + decoded.starts
    table[:, OUT_BYTES] = shapes[:, 0] * shapes[:, 1] * shapes[:, 2]
    table[:, ROWS], table[:, COLUMNS] = facts[:, HEIGHT], facts[:, WIDTH]
    if batch.windows is not None:
        table[:, [TOP, LEFT]] = batch.windows[:, :2]
    table[:, [HIGH, WIDE, DEPTH]] = shapes
    table[:, IS_BGR] = batch.options.output_type == DALIImageType.BGR
    table[:, [USED_TOP, USED_LEFT]] = table[:, [TOP, LEFT]]
    table[:, [USED_BOTTOM, USED_RIGHT]] = table[:, [TOP, LEFT]] + table[:, [HIGH, WIDE]]
    if batch.windows is None and batch.seen is not None:
        table[:, USED_TOP:] = batch.seen
    return table


def largest_first(batch: PictureBatch, samples: np.ndarray) -> np.ndarray:
    """The order of decoding, so that no thread works on a large picture at the end while the others are idle."""
    return samples[np.argsort(-batch.operand.sizes[samples], kind="stable")]


def seats(batch: PictureBatch, order: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    """Memory for the threads of a loop: u8 `[S, room]`, a row for each, and int64 `[S]`, whether a thread uses the row."""
    count = min(batch.call.threads, len(order))
    return host_empty((count * room,), np.uint8).reshape(count, room), np.zeros(count, np.int64)


@kernel(light=True)
def is_inside(row, out):
    """Whether the window of a picture lies inside it, and `out` has the bytes of the window."""
    if min(row[TOP], row[LEFT]) < 0 or row[HIGH] > row[ROWS] - row[TOP] or row[WIDE] > row[COLUMNS] - row[LEFT]:
        return False
    return row[HIGH] * row[WIDE] * row[DEPTH] == len(out)


@kernel
def copy_pixels(pixels, at, stored, out, to, depth, count, swaps):
    """Copies `count` pixels of `stored` channels, 1 to 4, from `pixels[at]` on to `out[to]` on, with `depth` channels: the same
    ones; the first three, which may swap the first and the third; or three copies of the first one."""
    if depth == stored and not swaps:
        copy_bytes(out.ctypes.data + to, pixels.ctypes.data + at, count * depth)
        return
    # Indices without a sign need no check whether they count from the end.
    source, target, step = np.uint64(at), np.uint64(to), np.uint64(stored)
    first, last = (_TWO, _ZERO) if swaps else (_ZERO, _TWO)
    if depth != 3:
        for _ in range(count):
            for c in range(np.uint64(depth)):
                out[target + c] = pixels[source + c]
            source += step
            target += np.uint64(depth)
        return
    if stored < 3:
        first, last = _ZERO, _ZERO
    second = _ONE if stored >= 3 else _ZERO
    for _ in range(count):
        red, green, blue = pixels[source + first], pixels[source + second], pixels[source + last]
        out[target], out[target + _ONE], out[target + _TWO] = red, green, blue
        source += step
        target += _THREE


def kernels_of(read_layout: Kernel, copy_rows: Kernel, kind: int, numbers: int) -> tuple[Kernel, Kernel]:
    """The kernels `look` and `decode_loop` of a format whose pixels are only copied.

    Args:
        read_layout: `(data, layout)` fills `layout`, int64 `[numbers]`, which begins with height, width and channels. Returns
            whether the file is a common one with all of its pixels.
        copy_rows: `(data, layout, out, row)` writes the window of a picture. Returns whether it could.
        kind: the format, for `facts[:, GOOD]`.
    """
    names = {"read_layout": read_layout, "copy_rows": copy_rows, "kind": kind, "numbers": numbers}
    look = from_template(_look, read_layout.function, "_of_batch", {}, **names)
    look.fallback(lambda addresses, sizes, like, facts: None)  # Python reads all of them
    loop = from_template(_decode_loop, copy_rows.function, "_of_batch", {}, **names)
    loop.fallback(lambda *args: False)
    return look, loop


def _look(addresses, sizes, like, facts):
    layout = empty(numbers, np.int64)  # type: ignore[name-defined]  # noqa: F821
    for i in range(len(sizes)):
        row = facts[i]
        if row[GOOD] == 0 and read_layout(array_at(addresses[i], sizes[i], like), layout):  # type: ignore[name-defined]  # noqa: F821
            row[GOOD], row[HEIGHT], row[WIDTH] = kind, layout[0], layout[1]  # type: ignore[name-defined]  # noqa: F821
            row[CHANNELS], row[ORIENTATION] = layout[2], 1


def _decode_loop(counter, limit, order, pictures, like, done):
    layout = empty(numbers, np.int64)  # type: ignore[name-defined]  # noqa: F821
    for _ in range(limit):
        turn = next_index(counter)
        if turn >= len(order):
            break
        row = pictures[order[turn]]
        data, out = array_at(row[FILE], row[FILE_BYTES], like), array_at(row[OUT], row[OUT_BYTES], like)
        # The header must not have changed since the memory for the pixels was allocated.
        same = read_layout(data, layout) and row[ROWS] == layout[0] and row[COLUMNS] == layout[1]  # type: ignore[name-defined]  # noqa: F821
        done[order[turn]] = same and is_inside(row, out) and copy_rows(data, layout, out, row)  # type: ignore[name-defined]  # noqa: F821
    return True
