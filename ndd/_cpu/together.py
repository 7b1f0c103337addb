"""Samples that lie apart in memory, copied one behind the other."""

from __future__ import annotations

import numpy as np

from ndd._cpu.jit import External, kernel

_copy = External("memcpy", "uintp(uintp, uintp, uintp)")


@kernel
def copy_together(places, sizes, out):
    """`out`: the bytes from each of these addresses on, `sizes` of them."""
    target = np.int64(out.ctypes.data)
    for i in range(len(places)):
        _copy(target, places[i], sizes[i])
        target += sizes[i]
