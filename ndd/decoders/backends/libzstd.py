"""Zstandard, from Pillow's wheel: it is loaded once, and compiled code can call its function."""

from __future__ import annotations

import ctypes
import functools

import numpy as np

from ndd._compiled.jit import External, connect_first
from ndd.decoders.bundled import PILLOW, copies

decompress: External = External("ZSTD_decompress", "uintp(uintp, uintp, uintp, uintp)")
"""`decompress(out, out_bytes, source, source_bytes)`: the number of bytes written, or of an error, near the largest number."""


@functools.cache
def available() -> bool:
    """Whether Pillow's wheel has a library of its own. Then its function is connected. Otherwise a placeholder is, so that code
    with its name can be linked; it must not be called."""
    if connect_first((decompress,), copies("libzstd", PILLOW)) is not None:
        return True
    decompress.connect(ctypes.pythonapi.Py_IsInitialized)
    return False


def unpack(data: np.ndarray, out: np.ndarray) -> bool:
    """Fills `out`, u8, from a chunk, u8. Returns whether the chunk is valid and has exactly these bytes."""
    if not available():
        return False
    return decompress.in_python()(out.ctypes.data, out.size, data.ctypes.data, data.size) == out.size
