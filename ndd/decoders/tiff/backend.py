"""The backend for the common TIFFs of a batch, in compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ndd._tensor.memory import host_empty
from ndd.decoders.backend import Decoded, Options
from ndd.decoders.backends import libzstd
from ndd.decoders.jpeg.batch_headers import CHANNELS, GOOD, HEIGHT, TIFF, WIDTH
from ndd.decoders.picture_table import largest_first, picture_table
from ndd.decoders.png import libdeflate
from ndd.decoders.tiff import directory, kernels
from ndd.types import DALIImageType

if TYPE_CHECKING:
    from ndd.decoders.picture_batch import PictureBatch

SIGNATURES = (b"II*\0", b"MM\0*")
_WORK = 4  # about as many bytes are moved for one encoded byte
_ANY = np.zeros(1, np.uint8)


def describe(batch: PictureBatch) -> None:
    """Reads the headers of the common TIFFs among the files that no other backend has read. A picture that is too large is an
    error of its sample."""
    addresses, sizes = np.ascontiguousarray(batch.operand.pointers()), np.ascontiguousarray(batch.operand.sizes)
    kernels.look(addresses, sizes, _ANY, batch.facts)
    batch.refuse_large()


def suitable(facts: np.ndarray, options: Options) -> np.ndarray:
    """The numbers of the pictures that the kernel can decode to the requested output, unless they are damaged."""
    if options.output_type == DALIImageType.YCbCr or options.dtype != np.uint8:
        return np.empty(0, np.int64)
    fits = facts[:, GOOD] == TIFF
    if options.output_type == DALIImageType.GRAY:  # of colours it is computed in floats, see `pixels.to_gray`
        fits &= facts[:, CHANNELS] == 1
    return np.flatnonzero(fits)


def decode_batch(batch: PictureBatch, samples: np.ndarray, decoded: Decoded) -> None:
    """Decodes the `suitable` pictures among `samples` on the CPU's threads, u8. It decodes none while the kernel is being
    compiled."""
    call, order, facts = batch.call, largest_first(batch, samples), batch.facts
    room = directory.most_chunk_bytes(facts[order, HEIGHT], facts[order, WIDTH], facts[order, CHANNELS])
    seats = min(call.threads, len(order))
    scratch, taken = host_empty((seats * room,), np.uint8).reshape(seats, room), np.zeros(seats, np.int64)
    work = _WORK * int(np.add.reduce(batch.operand.sizes[order]))
    libraries = libdeflate.available(), libzstd.available()
    arguments = (order, picture_table(batch, decoded), scratch, taken, *libraries, decoded.done)
    call.parallel_for(kernels.decode_loop, arguments, len(order), work, (batch.operand, decoded.memory))
