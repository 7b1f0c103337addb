"""Zstandard, from Pillow's wheel."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from ndd.decoders.bundled import PILLOW, copies


@functools.cache
def _decompress() -> Any:
    """`ZSTD_decompress(out, out_bytes, source, source_bytes)`; None where Pillow's wheel has no library of its own."""
    for file in copies("libzstd", PILLOW):
        try:
            function = ctypes.CDLL(str(file)).ZSTD_decompress
        except (OSError, AttributeError):
            continue
        function.argtypes = [ctypes.c_void_p, ctypes.c_size_t] * 2
        function.restype = ctypes.c_size_t
        return function
    return None


def unpack(data: np.ndarray, out: np.ndarray) -> bool:
    """Fills `out`, u8, from a chunk, u8. Returns whether the chunk is valid and has exactly these bytes."""
    function = _decompress()
    # An error is a number near the largest one.
    return function is not None and function(out.ctypes.data, out.size, data.ctypes.data, data.size) == out.size
