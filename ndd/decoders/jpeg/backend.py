"""The backend for common JPEGs: the kernels of `baseline.py` and `progressive.py`, for a batch and for one picture, whole or a
window."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from ndd._compiled.jit import Kernel
from ndd._compiled.thread_team import ALONE, joined
from ndd._tensor.memory import host_empty
from ndd.decoders import turning
from ndd.decoders.backend import Decoded, Options, Window
from ndd.decoders.headers.header import Header
from ndd.decoders.headers.orientation import swaps_axes
from ndd.decoders.jpeg import baseline, batch_headers, progressive
from ndd.decoders.jpeg.batch_headers import (
    CHANNELS,
    COLOUR_JPEG,
    GOOD,
    HEIGHT,
    JPEG,
    ORIENTATION,
    PROGRESSIVE,
    SCANS,
    WHOLE,
    WIDTH,
)
from ndd.decoders.picture_table import describe_by, largest_first, seats
from ndd.decoders.pixels import as_stored
from ndd.types import DALIImageType

if TYPE_CHECKING:
    from ndd.decoders.picture_batch import PictureBatch

_KEPT = 1 << 20  # bytes of scratch memory that a thread keeps, at most
_WORK = 8  # about as many bytes are moved for one encoded byte
_LOOPS = {WHOLE: baseline.decode_loop, PROGRESSIVE: progressive.decode_loop}
_ANY = np.zeros(1, np.uint8)
_threads = threading.local()


def _scratch(nbytes: int) -> np.ndarray:
    """Scratch memory of this thread. Taking it from the pool would cost 8 us a picture."""
    kept: np.ndarray | None = getattr(_threads, "scratch", None)
    if kept is None or kept.size < nbytes:
        if nbytes > _KEPT:
            return host_empty((nbytes,), np.uint8)
        kept = _threads.scratch = np.empty(_KEPT, np.uint8)
    return kept


def describe(batch: PictureBatch) -> None:
    """Reads the headers of the common JPEGs."""
    describe_by(batch_headers.look, batch)


def _can_make(options: Options) -> bool:
    return not options.fast_idct and options.output_type != DALIImageType.BGR


def suitable(facts: np.ndarray, options: Options) -> np.ndarray:
    """The numbers of the pictures that the kernels can decode to the requested output, unless they are damaged."""
    if not _can_make(options) or options.output_type == DALIImageType.YCbCr or options.dtype != np.uint8:
        return np.empty(0, np.int64)
    pixels = facts[:, HEIGHT] * facts[:, WIDTH]
    fits = (facts[:, SCANS] == WHOLE) | ((facts[:, SCANS] == PROGRESSIVE) & (pixels <= progressive.MOST_PIXELS))
    fits &= facts[:, GOOD] == JPEG
    if options.output_type != DALIImageType.GRAY and COLOUR_JPEG in facts[:, GOOD]:
        channels = facts[:, CHANNELS]
        as_rgb = channels == 3
        if options.output_type == DALIImageType.RGB:  # DALI decodes turned CMYK with OpenCV, whose colours differ
            as_rgb |= (channels == 4) & ((facts[:, ORIENTATION] == 1) | (not options.adjust_orientation))
        fits |= (facts[:, GOOD] == COLOUR_JPEG) & as_rgb
    return np.flatnonzero(fits)


def decode_batch(batch: PictureBatch, samples: np.ndarray, decoded: Decoded) -> None:
    """Decodes the `suitable` pictures among `samples` on the CPU's threads, u8. A kernel decodes none while it is being
    compiled."""
    facts = batch.facts
    part = np.zeros((len(facts), 4), np.int64)
    if batch.windows is not None:
        part[:] = batch.windows
    elif batch.seen is not None:
        part[:] = batch.seen
    else:
        part[:, 2:] = facts[:, HEIGHT : WIDTH + 1]
    is_turned = facts[samples, ORIENTATION] != 1
    if batch.options.adjust_orientation and True in is_turned:
        turned, samples = samples[is_turned], samples[~is_turned]
        if batch.windows is None and batch.seen is None:
            part[:, 2:] = batch.extents()  # upright
        _decode_turned(batch, turned, decoded, part)
    _decode_stored(batch, samples, decoded, part)


def _decode_stored(batch: PictureBatch, samples: np.ndarray, decoded: Decoded, part: np.ndarray) -> None:
    """Decodes a part of each of these pictures, y0, x0, y1, x1, as they are stored."""
    scans = batch.facts[samples, SCANS]
    for kind, loop in _LOOPS.items():
        chosen = samples[scans == kind]
        if len(chosen):
            _decode_by(loop, batch, chosen, decoded, part)


def _decode_turned(batch: PictureBatch, samples: np.ndarray, decoded: Decoded, part: np.ndarray) -> None:
    """The same for pictures that are turned upright: first as they are stored, to memory of their own."""
    facts, shapes, part = batch.facts, decoded.shapes.copy(), part.copy()
    table = np.zeros((len(batch), turning.NUMBERS), np.int64)
    for i in samples.tolist():
        turn = int(facts[i, ORIENTATION])
        size = facts[i, WIDTH : HEIGHT - 1 : -1] if swaps_axes(turn) else facts[i, HEIGHT : WIDTH + 1]
        part[i] = as_stored(tuple(part[i].tolist()), tuple(size.tolist()), turn)
        if swaps_axes(turn):
            shapes[i, :2] = shapes[i, 1::-1]
    lengths = np.zeros(len(batch), np.int64)
    lengths[samples] = shapes[samples, 0] * shapes[samples, 1] * shapes[samples, 2]
    ends = np.add.accumulate(lengths)
    stored = Decoded(host_empty((int(ends[-1]),), np.uint8), shapes, ends - lengths, decoded.done)
    _decode_stored(batch, samples, stored, part)
    table[:, turning.STORED] = stored.memory.ctypes.data + stored.starts
    table[:, turning.UPRIGHT] = decoded.memory.ctypes.data + decoded.starts
    table[:, turning.HEIGHT : turning.PIXEL + 1], table[:, turning.ORIENTATION] = shapes, facts[:, ORIENTATION]
    arguments, held = (samples, table, _ANY, decoded.done), (stored.memory, decoded.memory)
    if not batch.call.parallel_for(turning.turn_loop, arguments, len(samples), int(ends[-1]), held):
        decoded.done[samples] = False


def _decode_by(loop: Kernel, batch: PictureBatch, samples: np.ndarray, decoded: Decoded, part: np.ndarray) -> None:
    call, operand, shapes = batch.call, batch.operand, decoded.shapes
    sizes = operand.sizes
    pictures = np.zeros((operand.n, baseline.NUMBERS), np.int64)
    pictures[:, 0], pictures[:, 1], pictures[:, 2], pictures[:, 3] = (
        operand.pointers(),
        sizes,
        decoded.memory.ctypes.data + decoded.starts,
        shapes[:, 0] * shapes[:, 1] * shapes[:, 2],
    )
    places = pictures[:, baseline.PLACE :]
    places[:, :4] = part
    if batch.windows is not None:
        places[:, 4:6] = part[:, :2]
    places[:, 6:8] = shapes[:, 1:]
    places[:, 8] = (batch.facts[:, GOOD] == COLOUR_JPEG) & (batch.facts[:, CHANNELS] == 3)
    order = largest_first(batch, samples)
    room = baseline.room(int(sizes[order[0]]), int((places[samples, 3] - places[samples, 1]).max()))
    arguments = (order, pictures, *seats(batch, order, room), decoded.done)
    work = _WORK * int(np.add.reduce(sizes[samples]))
    call.parallel_for(loop, arguments, len(order), work, (operand, decoded.memory))


def decode(data: np.ndarray, header: Header, options: Options, window: Window | None) -> np.ndarray | None:
    """The backend for one picture. Returns None while its kernel is being compiled."""
    if header.coded_rgb:
        fits = not header.progressive and options.output_type in (DALIImageType.RGB, DALIImageType.ANY_DATA)
    else:
        is_ink = header.format == "jpeg" and header.channels == 4
        fits = header.plain_jpeg or (
            is_ink and options.output_type == DALIImageType.RGB and not options.is_turned(header)
        )
    if not fits or header.damaged or not _can_make(options):
        return None
    if header.progressive and header.height * header.width > progressive.MOST_PIXELS:
        return None
    y0, x0, y1, x1 = window or (0, 0, header.height, header.width)
    # Our memory is reused: fresh memory costs a page fault for every 4 kB, 5 % of the time.
    out = host_empty((y1 - y0, x1 - x0, header.out_channels(options.output_type)), np.uint8)
    data = np.require(data, requirements=["C"])
    y, x = y0, x0
    if options.seen is not None and window is None:
        y0, x0, y1, x1 = options.seen
    place = [y0, x0, y1, x1, y, x, out.shape[1], out.shape[2], header.coded_rgb]
    picture = [data.ctypes.data, data.size, out.ctypes.data, out.size, *place]
    return out if decode_all([picture], PROGRESSIVE if header.progressive else WHOLE) else None


def decode_all(pictures: list[list[int]], scans: int = WHOLE) -> bool:
    """Decodes pictures on this thread, given as rows of `baseline.decode_loop`. Returns whether it could decode all of them."""
    rows = np.array(pictures, np.int64)
    sizes, widths = rows[:, 1], rows[:, baseline.PLACE + 3] - rows[:, baseline.PLACE + 1]
    scratch = _scratch(baseline.room(int(sizes.max()), int(widths.max())))[None]
    done = np.zeros(len(rows), np.bool_)
    arguments = np.arange(len(rows)), rows, scratch, np.array([0]), done
    joined(_LOOPS[scans])(ALONE, 0, np.array([0]), len(rows), arguments)
    return bool(done.all())
