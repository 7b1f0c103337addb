"""The backend for the common PNMs of a batch, in compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ndd.decoders.backend import Decoded, Options
from ndd.decoders.jpeg.batch_headers import PNM
from ndd.decoders.picture_table import decode_by, describe_by, suitable_for
from ndd.decoders.pnm import kernels

if TYPE_CHECKING:
    from ndd.decoders.picture_batch import PictureBatch

_WORK = 2  # about as many bytes are moved for one encoded byte


def describe(batch: PictureBatch) -> None:
    """Reads the headers of the common PNMs among the files that no other backend has read."""
    describe_by(kernels.look, batch)


def suitable(facts: np.ndarray, options: Options) -> np.ndarray:
    """The numbers of the pictures that the kernel can decode to the requested output, unless they are damaged."""
    return np.flatnonzero(suitable_for(PNM, facts, options))


def decode_batch(batch: PictureBatch, samples: np.ndarray, decoded: Decoded) -> None:
    """Decodes the `suitable` pictures among `samples` on the CPU's threads, u8. It decodes none while the kernel is being
    compiled."""
    decode_by(kernels.decode_loop, batch, samples, decoded, _WORK)
