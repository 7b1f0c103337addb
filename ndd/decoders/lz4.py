"""LZ4 blocks to bytes. The format: https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md

Why it is here: none of ndd's dependencies has it, and these are 40 lines for an operator that DALI has on the GPU only. The
package `lz4` is faster (`lz4.block`: 1.9 GB/s on one core for text with short repeats; this kernel: 0.2 GB/s).
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import array_at
from ndd._compiled.jit import kernel
from ndd._compiled.sample_loops import next_index


@kernel
def _length(source, at, length):
    """A length that may continue in further bytes, and the byte after it; -1 if bytes are missing."""
    if length == 15:
        while True:
            if at >= source.size:
                return -1, at
            more = np.int64(source[at])
            at += 1
            length += more
            if more != 255:
                break
    return length, at


@kernel
def inflate_lz4(source, out):
    """Inflates a block to `out`, u8. Returns the number of bytes, or -1 for a block that is damaged or does not fit."""
    at, end = 0, 0
    while at < source.size:
        token = np.int64(source[at])
        count, at = _length(source, at + 1, token >> 4)
        if count < 0 or count > source.size - at or count > out.size - end:
            return -1
        for i in range(count):
            out[end + i] = source[at + i]
        at, end = at + count, end + count
        if at == source.size:  # the last sequence is literals only
            return end
        if at + 2 > source.size:
            return -1
        back = np.int64(source[at]) | np.int64(source[at + 1]) << 8
        count, at = _length(source, at + 2, token & 15)
        if count < 0 or back == 0 or back > end or count > out.size - end - 4:
            return -1
        for i in range(end, end + count + 4):
            out[i] = out[i - back]
        end += count + 4
    return -1


@kernel
def inflate_loop(counter, limit, sources, sizes, targets, rooms, written):
    """Inflates blocks, as a loop for several threads (`Call.parallel_for`).

    Args:
        sources, sizes: address and bytes of each block, int64 like all that follow.
        targets, rooms: the address and the size of the memory for each result. Bytes that a block does not fill become 0.
        written: the result of `inflate_lz4` for each block.
    """
    like = np.empty(0, np.uint8)
    for _ in range(limit):
        k = next_index(counter)
        if k >= len(sources):
            break
        out = array_at(targets[k], rooms[k], like)
        written[k] = inflate_lz4(array_at(sources[k], sizes[k], like), out)
        for i in range(max(written[k], 0), out.size):
            out[i] = 0
    return True
