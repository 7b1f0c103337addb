"""The backends that decode the common files of a batch in compiled code on the CPU. A new one is a line in `_OTHERS`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._tensor.memory import memory_at
from ndd.decoders.jpeg.batch_headers import FORMAT

if TYPE_CHECKING:
    from ndd.decoders.picture_batch import PictureBatch

Backends = list[tuple[str, Any]]
"""Names and modules of type `BatchBackend`."""
# By their names: how their files begin, and the modules, which are imported when such a file comes. The last of several
# modules reads the headers for all of them.
_OTHERS: dict[str, tuple[tuple[bytes, ...], tuple[str, ...]]] = {
    "png": ((b"\x89PNG",), ("png.backend",)),
    "tiff": ((b"II*\0", b"MM\0*"), ("tiff.jpeg_backend", "tiff.backend")),
    "bmp": ((b"BM",), ("bmp.backend",)),
    "pnm": ((b"P5", b"P6"), ("pnm.backend",)),
}
_LONGEST_SIGNATURE = 4
_U8 = np.dtype(np.uint8)


def describe_others(batch: PictureBatch) -> None:
    """Reads the headers of the common files other than JPEGs, and adds their backends to the batch. A format's kernel is asked,
    and compiled, if a file has its signature."""
    if 0 not in batch.facts[:, FORMAT]:
        return
    addresses, sizes = batch.operand.pointers().tolist(), batch.operand.sizes.tolist()
    for i in np.flatnonzero(batch.facts[:, FORMAT] == 0).tolist():
        if batch.facts[i, FORMAT]:
            continue
        text = memory_at(addresses[i], min(sizes[i], _LONGEST_SIGNATURE), _U8).tobytes()
        for name, (signatures, modules) in _OTHERS.items():
            if text.startswith(signatures) and not any(known == name for known, _ in batch.backends):
                backends = [importlib.import_module(f"ndd.decoders.{module}") for module in modules]
                backends[-1].describe(batch)
                batch.backends += [(name, backend) for backend in backends]
