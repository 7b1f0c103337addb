"""PackBits, the run lengths of TIFF. The format: TIFF 6.0, section 9."""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel


@kernel
def unpack(data, out):
    """Fills `out`, u8, from a chunk, u8. Returns whether the chunk is long enough. What does not fit into `out` is dropped."""
    at, written, size, total = np.int64(0), np.int64(0), np.int64(data.size), np.int64(out.size)
    while written < total:
        if at >= size:
            return False
        code = np.int64(data[at])
        at += 1
        if code == 128:  # no operation
            continue
        count = min(code + 1 if code < 128 else 257 - code, total - written)
        if (count if code < 128 else 1) > size - at:
            return False
        target = out[written : written + count]
        if code < 128:
            source = data[at : at + count]
            for k in range(count):
                target[k] = source[k]
            at += count
        else:
            value = data[at]
            for k in range(count):
                target[k] = value
            at += 1
        written += count
    return True


unpack.fallback(lambda data, out: False)
