"""Common JPEGs by the kernel of `ndd.decoders.jpeg.decode`, whole or windows of them: those of a batch, or one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from ndd._compiled.thread_team import ALONE, joined
from ndd._operator import Call, Operand
from ndd._tensor.memory import host_empty
from ndd.decoders.headers.header import Header
from ndd.decoders.jpeg import decode as jpeg
from ndd.decoders.jpeg.headers import GOOD, HEIGHT, ORIENTATION, SCANS, WIDTH
from ndd.types import DALIImageType

if TYPE_CHECKING:
    from ndd.decoders._sample import Options, Window


_KEPT = 1 << 20  # bytes that a thread keeps for the next picture, at most
_WORK = 8  # bytes that are moved for one of an encoded picture, about
_FIRST = np.zeros(1, np.int64)
_threads = threading.local()


def _scratch(nbytes: int) -> np.ndarray:
    """Memory of this thread for so many bytes. To ask the pool for it took 8 us a picture."""
    kept: np.ndarray | None = getattr(_threads, "scratch", None)
    if kept is None or kept.size < nbytes:
        if nbytes > _KEPT:
            return host_empty((nbytes,), np.uint8)
        kept = _threads.scratch = np.empty(_KEPT, np.uint8)
    return kept


def _makes(options: Options) -> bool:
    """Whether the kernel makes such pixels."""
    return not options.fast_idct and options.output_type != DALIImageType.BGR


def plain(facts: np.ndarray, options: Options) -> np.ndarray:
    """The numbers of the pictures of which the kernel makes what is asked for, if they are not damaged; by `facts`, int64
    `[N, FACTS]`."""
    if not _makes(options) or options.output_type == DALIImageType.YCbCr or options.dtype != np.uint8:
        return np.empty(0, np.int64)
    fits = facts[:, GOOD] & facts[:, SCANS]
    if options.adjust_orientation:
        fits &= facts[:, ORIENTATION] == 1
    return np.flatnonzero(fits)


def decode_batch(
    call: Call,
    operand: Operand,
    chosen: np.ndarray,
    facts: np.ndarray,
    shapes: np.ndarray,
    windows: np.ndarray | None,
    seen: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decodes the pictures `chosen` on the CPU's threads, one behind the other in new memory (u8).

    Args:
        operand: all encoded pictures of the batch.
        facts: int64 `[N, FACTS]`.
        shapes: of the results, int64 `[N, 3]`.
        windows, seen: as `Encoded` has them.

    Gives that memory, where in it each picture begins, and which are done, bool `[N]`: what is not is left to other
    libraries, also while the kernel is compiled.
    """
    n, sizes = operand.n, operand.sizes
    lengths = shapes[:, 0] * shapes[:, 1] * shapes[:, 2]
    if len(chosen) != n:
        lengths = np.where(np.bincount(chosen, minlength=n), lengths, 0)
    ends = np.add.accumulate(lengths)
    starts, out = ends - lengths, host_empty((int(ends[-1]),), np.uint8)
    pictures = np.zeros((n, jpeg.NUMBERS), np.int64)
    pictures[:, 0], pictures[:, 1], pictures[:, 2], pictures[:, 3] = (
        operand.pointers(),
        sizes,
        out.ctypes.data + starts,
        lengths,
    )
    places = pictures[:, jpeg.PLACE :]
    part = windows if windows is not None else seen
    if part is None:
        places[:, 2:4] = facts[:, HEIGHT : WIDTH + 1]
    else:
        places[:, :4] = part
    if windows is not None:
        places[:, 4:6] = windows[:, :2]
    places[:, 6:] = shapes[:, 1:]
    # The large ones first, so that no thread comes to the end with one of them while the others have nothing to do.
    order = chosen[np.argsort(-sizes[chosen], kind="stable")]
    room = jpeg.room(int(sizes[order[0]]), int((places[chosen, 3] - places[chosen, 1]).max()))
    done = np.zeros(n, np.bool_)
    seats = min(call.threads, len(order))
    scratch, taken = host_empty((seats * room,), np.uint8).reshape(seats, room), np.zeros(seats, np.int64)
    what = (order, pictures, scratch, taken, done)
    call.in_turns(jpeg.decode_turns, what, len(order), _WORK * int(np.add.reduce(sizes[chosen])), (operand, out))
    return out, starts, done


def decode(
    data: np.ndarray, header: Header, options: Options, window: Window | None, seen: Window | None
) -> np.ndarray | None:
    """The pixels (of the window) as stored, HWC; None for what is left to other libraries, also while the kernel is compiled.

    Of a whole picture, what is not `seen` holds anything.
    """
    if not header.plain_jpeg or header.coded_rgb or header.damaged or not _makes(options):
        return None
    y0, x0, y1, x1 = window or (0, 0, header.height, header.width)
    # Memory of ours, which is used again: fresh memory costs a page fault for every 4 kB, 5 % of the time.
    out = host_empty((y1 - y0, x1 - x0, header.out_channels(options.output_type)), np.uint8)
    data, done = np.require(data, requirements=["C"]), np.zeros(1, np.bool_)
    y, x = y0, x0
    if seen is not None and window is None:
        y0, x0, y1, x1 = seen
    one = [data.ctypes.data, data.size, out.ctypes.data, out.size, y0, x0, y1, x1, y, x, out.shape[1], out.shape[2]]
    scratch = _scratch(jpeg.room(data.size, x1 - x0))[None]
    joined(jpeg.decode_turns)(ALONE, 0, np.array([0]), 1, (_FIRST, np.array([one]), scratch, np.array([0]), done))
    return out if done[0] else None
