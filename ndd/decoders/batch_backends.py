"""The backends that decode the common files of a batch in compiled code on the CPU. A new one is a line in `BACKENDS`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._tensor.memory import memory_at
from ndd.decoders.bmp import backend as _bmp
from ndd.decoders.jpeg import backend as _jpeg
from ndd.decoders.jpeg.batch_headers import GOOD
from ndd.decoders.png import backend as _png
from ndd.decoders.pnm import backend as _pnm
from ndd.decoders.tiff import backend as _tiff, jpeg_backend as _tiff_jpeg

if TYPE_CHECKING:
    from ndd.decoders.picture_batch import PictureBatch

BACKENDS: dict[str, Any] = {
    "jpeg": _jpeg,
    "png": _png,
    "tiff": _tiff,
    "tiff of jpegs": _tiff_jpeg,
    "bmp": _bmp,
    "pnm": _pnm,
}
"""By name; each is a `BatchBackend`."""
_LONGEST_SIGNATURE = 4
_U8 = np.dtype(np.uint8)


def describe_others(batch: PictureBatch) -> None:
    """Reads the headers of the common files other than JPEGs. A format's kernel is asked, and compiled, if a file has its
    signature."""
    tried: list[Any] = [_jpeg]
    for i in np.flatnonzero(batch.facts[:, GOOD] == 0).tolist():
        if batch.facts[i, GOOD]:
            continue
        start = memory_at(int(batch.operand.pointers()[i]), min(int(batch.operand.sizes[i]), _LONGEST_SIGNATURE), _U8)
        for backend in BACKENDS.values():
            if backend not in tried and start.tobytes().startswith(backend.SIGNATURES):
                backend.describe(batch)
                tried.append(backend)
