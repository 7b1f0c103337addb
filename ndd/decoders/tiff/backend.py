"""The backend for the common TIFFs of a batch, in compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ndd.decoders.backend import Decoded, Options
from ndd.decoders.backends import libzstd
from ndd.decoders.jpeg.batch_headers import CHANNELS, HEIGHT, TIFF
from ndd.decoders.picture_table import LIBDEFLATE, LIBZSTD, decode_by, describe_by, suitable_for
from ndd.decoders.png import libdeflate
from ndd.decoders.tiff import directory, kernels

if TYPE_CHECKING:
    from ndd.decoders.picture_batch import PictureBatch

_WORK = 4  # about as many bytes are moved for one encoded byte


def describe(batch: PictureBatch) -> None:
    """Reads the headers of the common TIFFs among the files that no other backend has read."""
    describe_by(kernels.look, batch)


def suitable(facts: np.ndarray, options: Options) -> np.ndarray:
    """The numbers of the pictures that the kernel can decode to the requested output, unless they are damaged."""
    return np.flatnonzero(suitable_for(TIFF, facts, options))


def decode_batch(batch: PictureBatch, samples: np.ndarray, decoded: Decoded) -> None:
    """Decodes the `suitable` pictures among `samples` on the CPU's threads, u8. It decodes none while the kernel is being
    compiled."""
    heights, widths, channels = batch.facts[samples, HEIGHT : CHANNELS + 1].T
    room = directory.most_chunk_bytes(heights, widths, channels)
    libraries = LIBDEFLATE * libdeflate.available() + LIBZSTD * libzstd.available()
    decode_by(kernels.decode_loop, batch, samples, decoded, _WORK, room, libraries)
