"""The table of pictures that a compiled loop decodes, for the formats whose common files are decoded as a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ndd._compiled.atomics import acquire_slot, atomic_store
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
LIBDEFLATE, LIBZSTD = 1, 2  # the bits of `libraries`
BY_LIBPNG, BY_OPENCV, BY_NVIMGCODEC = range(3)  # how gray is mixed
_ANY = np.zeros(1, np.uint8)
_ZERO, _ONE, _TWO, _THREE = (np.uint64(n) for n in range(4))


def describe_by(look: Kernel, batch: PictureBatch) -> None:
    """Reads the headers that a format's `look` can read. A picture that is too large is an error of its sample."""
    addresses, sizes = np.ascontiguousarray(batch.operand.pointers()), np.ascontiguousarray(batch.operand.sizes)
    look(addresses, sizes, _ANY, batch.facts)
    batch.refuse_large()


def suitable_for(kind: int, facts: np.ndarray, options: Options) -> np.ndarray:
    """Whether each picture is of the format `kind` and the output has its element type and colours, bool `[N]`."""
    fits = options.output_type != DALIImageType.YCbCr and options.dtype == np.uint8
    return (facts[:, GOOD] == kind) & fits


def decode_by(
    loop: Kernel,
    batch: PictureBatch,
    samples: np.ndarray,
    decoded: Decoded,
    work: int,
    room: int = 0,
    libraries: int = 0,
) -> None:
    """Decodes pictures by a loop of `decode_loop_of`. None while the loop is being compiled.

    Args:
        work: about as many bytes are moved for one encoded byte.
        room: bytes of scratch memory for each thread.
        libraries: those that are available, `LIBDEFLATE | LIBZSTD`.
    """
    order = largest_first(batch, samples)
    nbytes = work * int(np.add.reduce(batch.operand.sizes[order]))
    arguments = (order, picture_table(batch, decoded), *seats(batch, order, room), libraries, decoded.done)
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


@kernel(light=True)
def is_used(row, top, left, high, wide):
    """Whether any of these rows and columns of the stored picture is used."""
    below, right = top < row[USED_BOTTOM], left < row[USED_RIGHT]
    return below and right and top + high > row[USED_TOP] and left + wide > row[USED_LEFT]


@kernel
def gray_of(red, green, blue, rule):
    """Gray, u8, of a colour; see `pixels.to_gray`. libpng's is that of PNGs."""
    if rule == BY_NVIMGCODEC:
        mixed = np.float32(red) * np.float32(0.299) + np.float32(green) * np.float32(0.587)
        return np.uint8(mixed + np.float32(blue) * np.float32(0.114) + np.float32(0.5))
    if rule == BY_OPENCV:
        return np.uint8((np.uint32(red) * 4899 + np.uint32(green) * 9617 + np.uint32(blue) * 1868 + 8192) >> 14)
    return np.uint8((np.uint32(red) * 9797 + np.uint32(green) * 19234 + np.uint32(blue) * 3737) >> 15)


@kernel
def copy_pixels(pixels, at, stored, out, to, depth, count, swaps, rule):
    """Copies `count` pixels of `stored` channels, 1 to 4, from `pixels[at]` on to `out[to]` on, with `depth` channels: the same
    ones; the first three, or three copies of gray; or gray, which `rule` mixes of colours. `swaps`: the first and the third
    channel change places."""
    if depth == stored and not swaps:
        copy_bytes(out.ctypes.data + to, pixels.ctypes.data + at, count * depth)
        return
    # Indices without a sign need no check whether they count from the end.
    source, target, step = np.uint64(at), np.uint64(to), np.uint64(stored)
    first, second, last = (_TWO, _ONE, _ZERO) if swaps else (_ZERO, _ONE, _TWO)
    if stored < 3:
        first, second, last = _ZERO, _ZERO, _ZERO
    for _ in range(count):
        red, green, blue = pixels[source + first], pixels[source + second], pixels[source + last]
        if depth == 3:
            out[target], out[target + _ONE], out[target + _TWO] = red, green, blue
            target += _THREE
        else:
            out[target] = red if stored < 3 else gray_of(red, green, blue, rule)
            target += _ONE
        source += step


def look_of(read_layout: Kernel, numbers: int) -> Kernel:
    """The kernel `look(addresses, sizes, like, facts)` of a format: fills the `facts` of its common files among those that no
    other format has read, `sizes[i]` bytes at `addresses[i]`. `like` is any array of u8.

    Args:
        read_layout: `(data, layout)` fills `layout`, int64 `[numbers]`, which begins as facts do with the format, height, width
            and channels. Returns whether the file is a common one.
    """
    look = from_template(
        _look, read_layout.function, "_of_batch", {"light": True}, read_layout=read_layout, numbers=numbers
    )
    look.fallback(lambda addresses, sizes, like, facts: None)  # Python reads all of them
    return look


def decode_loop_of(read_layout: Kernel, decode: Kernel, kind: int, numbers: int) -> Kernel:
    """The loop `(counter, limit, order, pictures, scratch, taken, libraries, done)` over pictures of the format `kind`, which
    threads share: they decode up to `limit` pictures in the order `order`.

    Args:
        read_layout: see `look_of`.
        decode: `(data, layout, out, row, scratch, libraries)` writes the window of a picture, with the scratch memory of a
            thread. Returns whether it could.

    The loop's `pictures` are a `picture_table`, `scratch` and `taken` are `seats`, and `done`, bool `[N]`, is set for each
    picture that is decoded.
    """
    names = {"read_layout": read_layout, "decode": decode, "kind": kind, "numbers": numbers}
    loop = from_template(_decode_loop, decode.function, "_of_batch", {"light": True}, **names)
    loop.fallback(lambda *args: False)
    return loop


def _look(addresses, sizes, like, facts):
    layout = empty(numbers, np.int64)  # type: ignore[name-defined]  # noqa: F821
    for i in range(len(sizes)):
        row = facts[i]
        if row[GOOD] == 0 and read_layout(array_at(addresses[i], sizes[i], like), layout):  # type: ignore[name-defined]  # noqa: F821
            row[GOOD], row[HEIGHT], row[WIDTH] = layout[GOOD], layout[HEIGHT], layout[WIDTH]
            row[CHANNELS], row[ORIENTATION] = layout[CHANNELS], 1


def _decode_loop(counter, limit, order, pictures, scratch, taken, libraries, done):
    layout = empty(numbers, np.int64)  # type: ignore[name-defined]  # noqa: F821
    seat = acquire_slot(taken)
    own = scratch[seat]
    for _ in range(limit):
        turn = next_index(counter)
        if turn >= len(order):
            break
        row = pictures[order[turn]]
        data, out = array_at(row[FILE], row[FILE_BYTES], own), array_at(row[OUT], row[OUT_BYTES], own)
        # The header must not have changed since the memory for the pixels was allocated.
        same = read_layout(data, layout) and layout[GOOD] == kind  # type: ignore[name-defined]  # noqa: F821
        same = same and layout[HEIGHT] == row[ROWS] and layout[WIDTH] == row[COLUMNS] and is_inside(row, out)
        done[order[turn]] = same and decode(data, layout, out, row, own, libraries)  # type: ignore[name-defined]  # noqa: F821
    atomic_store(taken, seat, 0)
    return True
