"""Common JPEGs by the kernel of `ndd._cpu.jpeg`, whole or a window of them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from ndd._cpu import jpeg
from ndd._tensor.memory import host_empty
from ndd.decoders._header import Header
from ndd.types import DALIImageType

if TYPE_CHECKING:
    from ndd.decoders._sample import Options, Window


_KEPT = 1 << 20  # bytes that a thread keeps for the next picture, at most
_threads = threading.local()


def _scratch(nbytes: int) -> np.ndarray:
    """Memory of this thread for so many bytes. To ask the pool for it took 8 us a picture."""
    kept: np.ndarray | None = getattr(_threads, "scratch", None)
    if kept is None or kept.size < nbytes:
        if nbytes > _KEPT:
            return host_empty((nbytes,), np.uint8)
        kept = _threads.scratch = np.empty(_KEPT, np.uint8)
    return kept


def decode(
    data: np.ndarray, header: Header, options: Options, window: Window | None, seen: Window | None
) -> np.ndarray | None:
    """The pixels (of the window), HWC; None for what is left to other libraries, also while the kernel is compiled.

    Of a whole picture, what is not `seen` holds anything.
    """
    turned = options.adjust_orientation and header.orientation != 1
    if not header.plain_jpeg or header.coded_rgb or header.damaged or turned or options.fast_idct:
        return None
    if options.output_type == DALIImageType.BGR:
        return None
    y0, x0, y1, x1 = window or (0, 0, header.height, header.width)
    # Memory of ours, which is used again: fresh memory costs a page fault for every 4 kB, 5 % of the time.
    out = host_empty((y1 - y0, x1 - x0, header.out_channels(options.output_type)), np.uint8)
    place = np.array([*(window or seen or (y0, x0, y1, x1)), y0, x0, out.shape[1], out.shape[2]])
    flags = data.flags
    if not (flags.c_contiguous and flags.writeable):  # other kinds of arrays would be compiled for once more
        data = np.require(data, requirements=["C", "W"])
    return out if jpeg.decode(data, out.reshape(-1), place, _scratch(jpeg.room(len(data), x1 - x0))) else None
