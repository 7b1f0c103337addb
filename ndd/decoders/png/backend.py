"""The backend for the common PNGs of a batch: libdeflate and libpng, called from compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ndd.decoders.backend import Decoded, Options
from ndd.decoders.jpeg.batch_headers import CHANNELS, HEIGHT, PNG, WIDTH
from ndd.decoders.picture_table import LIBDEFLATE, decode_by, describe_by, suitable_for
from ndd.decoders.png import kernels, libdeflate, libpng

if TYPE_CHECKING:
    from ndd.decoders.picture_batch import PictureBatch

_WORK = 8  # about as many bytes are moved for one encoded byte


def describe(batch: PictureBatch) -> None:
    """Reads the headers of the common PNGs among the files that no other backend has read."""
    if libpng.library() is not None:
        describe_by(kernels.look, batch)


def suitable(facts: np.ndarray, options: Options) -> np.ndarray:
    """The numbers of the pictures that libpng can decode to the requested output, unless they are damaged."""
    return np.flatnonzero(suitable_for(PNG, facts, options))


def decode_batch(batch: PictureBatch, samples: np.ndarray, decoded: Decoded) -> None:
    """Decodes the `suitable` pictures among `samples` on the CPU's threads, u8. It decodes none while the kernel is being
    compiled."""
    room = int((batch.operand.sizes[samples] + _filtered_bytes(batch.facts[samples])).max())
    decode_by(kernels.decode_loop, batch, samples, decoded, _WORK, room, LIBDEFLATE * libdeflate.available())


def _filtered_bytes(facts: np.ndarray) -> np.ndarray:
    """Bytes of the pixels as stored, with the filter of each row; interlaced files have less than two in a row, and eight more."""
    return facts[:, HEIGHT] * (facts[:, WIDTH] * facts[:, CHANNELS] + 2) + 8
