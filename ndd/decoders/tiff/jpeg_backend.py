"""The backend for the common TIFFs of a batch whose strips are JPEGs, in compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ndd.decoders.backend import Decoded, Options
from ndd.decoders.jpeg.baseline import room
from ndd.decoders.jpeg.batch_headers import HEIGHT, JPEG_TIFF, WIDTH
from ndd.decoders.picture_table import decode_by, suitable_for
from ndd.decoders.tiff import directory, jpeg_kernels
from ndd.types import DALIImageType

if TYPE_CHECKING:
    from ndd.decoders.picture_batch import PictureBatch

_WORK = 8  # about as many bytes are moved for one encoded byte


def suitable(facts: np.ndarray, options: Options) -> np.ndarray:
    """The numbers of the pictures that the kernel can decode to the requested output, unless they are damaged."""
    return np.flatnonzero(suitable_for(JPEG_TIFF, facts, options) & (not options.fast_idct))


def decode_batch(batch: PictureBatch, samples: np.ndarray, decoded: Decoded) -> None:
    """Decodes the `suitable` pictures among `samples` on the CPU's threads, u8. It decodes none while the kernel is being
    compiled."""
    largest = int(batch.operand.sizes[samples].max()) + directory.MOST_TABLES
    heights, widths = batch.facts[samples, HEIGHT], batch.facts[samples, WIDTH]
    nbytes = largest + room(largest, int(widths.max()))
    if batch.options.output_type in (DALIImageType.GRAY, DALIImageType.BGR):  # made of RGB
        nbytes += 3 * int((heights * widths).max())
    decode_by(jpeg_kernels.decode_loop, batch, samples, decoded, _WORK, nbytes)
