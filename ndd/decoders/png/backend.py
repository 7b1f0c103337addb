"""The backend for the common PNGs of a batch: libdeflate and libpng, called from compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ndd._tensor.memory import host_empty
from ndd.decoders.backend import Decoded, Options
from ndd.decoders.jpeg.batch_headers import CHANNELS, GOOD, HEIGHT, PNG, WIDTH
from ndd.decoders.picture_table import largest_first, picture_table
from ndd.decoders.png import kernels, libdeflate, libpng
from ndd.types import DALIImageType

if TYPE_CHECKING:
    from ndd.decoders.picture_batch import PictureBatch

SIGNATURES = (b"\x89PNG",)
_WORK = 8  # about as many bytes are moved for one encoded byte
_ANY = np.zeros(1, np.uint8)


def describe(batch: PictureBatch) -> None:
    """Reads the headers of the common PNGs among the files that no other backend has read. A picture that is too large is an
    error of its sample."""
    if libpng.library() is not None:
        addresses, sizes = np.ascontiguousarray(batch.operand.pointers()), np.ascontiguousarray(batch.operand.sizes)
        kernels.look(addresses, sizes, _ANY, batch.facts)
        batch.refuse_large()


def suitable(facts: np.ndarray, options: Options) -> np.ndarray:
    """The numbers of the pictures that libpng can decode to the requested output, unless they are damaged."""
    if options.output_type == DALIImageType.YCbCr or options.dtype != np.uint8:
        return np.empty(0, np.int64)
    return np.flatnonzero(facts[:, GOOD] == PNG)


def decode_batch(batch: PictureBatch, samples: np.ndarray, decoded: Decoded) -> None:
    """Decodes the `suitable` pictures among `samples` on the CPU's threads, u8. It decodes none while the kernel is being
    compiled."""
    call, order, facts = batch.call, largest_first(batch, samples), batch.facts
    sizes = batch.operand.sizes
    room = int((sizes[order] + _filtered_bytes(facts[order])).max())
    seats = min(call.threads, len(order))
    scratch, taken = host_empty((seats * room,), np.uint8).reshape(seats, room), np.zeros(seats, np.int64)
    work = _WORK * int(np.add.reduce(sizes[order]))
    arguments = (order, picture_table(batch, decoded), scratch, taken, libdeflate.available(), decoded.done)
    call.parallel_for(kernels.decode_loop, arguments, len(order), work, (batch.operand, decoded.memory))


def _filtered_bytes(facts: np.ndarray) -> np.ndarray:
    """Bytes of the pixels as stored, with the filter of each row; interlaced files have less than two in a row, and eight more."""
    return facts[:, HEIGHT] * (facts[:, WIDTH] * facts[:, CHANNELS] + 2) + 8
