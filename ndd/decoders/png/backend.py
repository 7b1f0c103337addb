"""The backend for the common PNGs of a batch: libdeflate and libpng, called from compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ndd.decoders.backend import Decoded, Options
from ndd.decoders.jpeg.batch_headers import CHANNELS, GOOD, HEIGHT, PNG, WIDTH
from ndd.decoders.picture_table import decode_by, describe_by, largest_first, seats
from ndd.decoders.png import kernels, libdeflate, libpng
from ndd.types import DALIImageType

if TYPE_CHECKING:
    from ndd.decoders.picture_batch import PictureBatch

_WORK = 8  # about as many bytes are moved for one encoded byte


def describe(batch: PictureBatch) -> None:
    """Reads the headers of the common PNGs among the files that no other backend has read."""
    if libpng.library() is not None:
        describe_by(kernels.look, batch)


def suitable(facts: np.ndarray, options: Options) -> np.ndarray:
    """The numbers of the pictures that libpng can decode to the requested output, unless they are damaged."""
    if options.output_type == DALIImageType.YCbCr or options.dtype != np.uint8:
        return np.empty(0, np.int64)
    return np.flatnonzero(facts[:, GOOD] == PNG)


def decode_batch(batch: PictureBatch, samples: np.ndarray, decoded: Decoded) -> None:
    """Decodes the `suitable` pictures among `samples` on the CPU's threads, u8. It decodes none while the kernel is being
    compiled."""
    order, facts = largest_first(batch, samples), batch.facts
    room = int((batch.operand.sizes[order] + _filtered_bytes(facts[order])).max())
    decode_by(kernels.decode_loop, batch, order, decoded, _WORK, *seats(batch, order, room), libdeflate.available())


def _filtered_bytes(facts: np.ndarray) -> np.ndarray:
    """Bytes of the pixels as stored, with the filter of each row; interlaced files have less than two in a row, and eight more."""
    return facts[:, HEIGHT] * (facts[:, WIDTH] * facts[:, CHANNELS] + 2) + 8
