"""The backend for the common BMPs of a batch, in compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ndd.decoders.backend import Decoded, Options
from ndd.decoders.bmp import kernels
from ndd.decoders.jpeg.batch_headers import BMP, CHANNELS
from ndd.decoders.picture_table import decode_by, describe_by, suitable_for
from ndd.types import DALIImageType

if TYPE_CHECKING:
    from ndd.decoders.picture_batch import PictureBatch

_WORK = 2  # about as many bytes are moved for one encoded byte


def describe(batch: PictureBatch) -> None:
    """Reads the headers of the common BMPs among the files that no other backend has read."""
    describe_by(kernels.look, batch)


def suitable(facts: np.ndarray, options: Options) -> np.ndarray:
    """The numbers of the pictures that the kernel can decode to the requested output, unless they are damaged."""
    fits = suitable_for(BMP, facts, options)
    if options.output_type == DALIImageType.ANY_DATA:
        fits &= facts[:, CHANNELS] != 4
    return np.flatnonzero(fits)


def decode_batch(batch: PictureBatch, samples: np.ndarray, decoded: Decoded) -> None:
    """Decodes the `suitable` pictures among `samples` on the CPU's threads, u8. It decodes none while the kernel is being
    compiled."""
    decode_by(kernels.decode_loop, batch, samples, decoded, _WORK)
