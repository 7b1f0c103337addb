"""Philox 4x32-10 for kernels: the words of many elements at once, or of one element in order.

A sample draws from a *stream*: uint64 `[key, counter, sequence, phase]` (see `ndd.random.philox`). Element `e` of a sample
reads from word `STRIDE * e` of the stream on, so it depends on no other element. `philox.cuh` has the same for GPU kernels.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import empty, zeros
from ndd._compiled.jit import kernel

STRIDE = 257
"""Words between the places where two neighbouring elements begin."""

SAMPLE_STRIDE = 65537
"""Sequences between the streams of two neighbouring samples."""

CHUNK = 1024
"""The most elements that `element_words` fills: a multiple of 4, so small that its buffers stay in the L1 cache."""

_PER_RESIDUE = CHUNK // 4
_U = np.uint64


@kernel(inline="always")
def philox_block(key, counter, sequence):
    """The four words (each a uint64 below 2**32) of one block."""
    low, half = _U(0xFFFFFFFF), _U(32)
    k0, k1 = key & low, key >> half
    a, b, c, d = counter & low, counter >> half, sequence & low, sequence >> half
    for _ in range(10):
        p, q = a * _U(0xD2511F53), c * _U(0xCD9E8D57)
        a, b, c, d = (q >> half) ^ b ^ k0, q & low, (p >> half) ^ d ^ k1, p & low
        k0, k1 = (k0 + _U(0x9E3779B9)) & low, (k1 + _U(0xBB67AE85)) & low
    return a, b, c, d


@kernel(inline="always")
def _two_blocks(key, counter, sequence, counter2, sequence2):
    """The words of two blocks, interleaved: each step of a block waits for its previous step, and the other block uses that
    time."""
    low, half = _U(0xFFFFFFFF), _U(32)
    k0, k1 = key & low, key >> half
    a, b, c, d = counter & low, counter >> half, sequence & low, sequence >> half
    e, f, g, h = counter2 & low, counter2 >> half, sequence2 & low, sequence2 >> half
    for _ in range(10):
        p, q, r, s = a * _U(0xD2511F53), c * _U(0xCD9E8D57), e * _U(0xD2511F53), g * _U(0xCD9E8D57)
        a, b, c, d = (q >> half) ^ b ^ k0, q & low, (p >> half) ^ d ^ k1, p & low
        e, f, g, h = (s >> half) ^ f ^ k0, s & low, (r >> half) ^ h ^ k1, r & low
        k0, k1 = (k0 + _U(0x9E3779B9)) & low, (k1 + _U(0xBB67AE85)) & low
    return a, b, c, d, e, f, g, h


@kernel
def _strided_blocks(row0, row1, row2, row3, key, base, sequence):
    """The words of the blocks at `base`, `base + STRIDE`, ...: one row for each word of a block. The number of blocks is even.

    Two blocks at a time take 2.1 ns each, one at a time 3.4.
    """
    half = row0.size >> 1
    for i in range(half):
        j = i + half
        counter, counter2 = base + _U(STRIDE) * _U(i), base + _U(STRIDE) * _U(j)
        a, b, c, d, e, f, g, h = _two_blocks(
            key, counter, sequence + _U(counter < base), counter2, sequence + _U(counter2 < base)
        )
        row0[i], row1[i], row2[i], row3[i] = a, b, c, d
        row0[j], row1[j], row2[j], row3[j] = e, f, g, h


@kernel
def element_words(out, stream, first, skip=0):
    """out[r, i] = word `skip + r` of element `first + i`; `out` is uint32 with at most CHUNK columns.

    Elements with the same residue modulo 4 begin at the same word of their blocks, 257 blocks apart. They are computed
    together, so that the compiler can compute one block in each slot of a vector register.
    """
    count, n = out.shape
    length = (n + 7) >> 3 << 1
    residues = empty((4, (count + 6) & -4, _PER_RESIDUE), np.uint32)
    phases = zeros(4, np.int64)  # views of rows that are not computed are made too, and not read
    for residue in range(min(4, n)):
        position = stream[3] + _U(STRIDE) * _U(first + residue) + _U(skip)
        phases[residue] = position & _U(3)
        base = stream[1] + (position >> _U(2))
        sequence = stream[2] + _U(base < stream[1])
        for j in range((phases[residue] + count + 3) >> 2):
            block = base + _U(j)
            _strided_blocks(
                residues[residue, 4 * j, :length], residues[residue, 4 * j + 1, :length],
                residues[residue, 4 * j + 2, :length], residues[residue, 4 * j + 3, :length],
                stream[0], block, sequence + _U(block < base),
            )  # fmt: skip
    for r in range(count):
        target = out[r]
        words0, words1 = residues[0, phases[0] + r], residues[1, phases[1] + r]
        words2, words3 = residues[2, phases[2] + r], residues[3, phases[3] + r]
        for i in range(n >> 2):
            target[4 * i], target[4 * i + 1] = words0[i], words1[i]
            target[4 * i + 2], target[4 * i + 3] = words2[i], words3[i]
        for e in range(n & -4, n):
            target[e] = residues[e & 3, phases[e & 3] + r, e >> 2]


@element_words.fallback
def _(out, stream, first, skip=0):
    key, counter, sequence, phase = stream
    words = phase + _U(STRIDE) * (_U(first) + np.arange(out.shape[1], dtype=np.uint64)) + _U(skip)
    words = words + np.arange(out.shape[0], dtype=np.uint64)[:, None]
    blocks = counter + (words >> _U(2))
    drawn = philox_block.function(key, blocks, sequence + (blocks < counter))
    out[...] = np.choose((words & _U(3)).astype(np.intp), drawn)


@kernel
def stream_words(out, stream, first):
    """out[i] = word `first + i` of a sample's first element, uint32, for callers that need few words."""
    position = stream[3] + _U(first)
    counter = stream[1] + (position >> _U(2))
    sequence = stream[2] + _U(counter < stream[1])
    start = -np.int64(position & _U(3))
    while start < out.size:
        block = philox_block(stream[0], counter, sequence)
        for k in range(max(0, -start), min(4, out.size - start)):
            out[start + k] = block[k]
        counter += _U(1)
        sequence += _U(counter == _U(0))
        start += 4


# A cursor reads the words of one element in order: uint64 [key, counter, sequence, place in the block, four words].


@kernel
def new_cursor():
    """A cursor without a position; call `seek` before reading."""
    return empty(8, np.uint64)


@kernel
def seek(cursor, stream, element):
    """Put the cursor before the first word of an element."""
    position = stream[3] + _U(STRIDE) * _U(element)
    cursor[0] = stream[0]
    cursor[1] = stream[1] + (position >> _U(2))
    cursor[2] = stream[2] + _U(cursor[1] < stream[1])
    cursor[3] = position & _U(3)
    cursor[4], cursor[5], cursor[6], cursor[7] = philox_block(cursor[0], cursor[1], cursor[2])


@kernel
def next_word(cursor):
    """The next word, a uint64 below 2**32."""
    if cursor[3] == _U(4):
        cursor[1] += _U(1)
        cursor[2] += _U(cursor[1] == _U(0))
        cursor[3] = _U(0)
        cursor[4], cursor[5], cursor[6], cursor[7] = philox_block(cursor[0], cursor[1], cursor[2])
    word = cursor[4 + np.int64(cursor[3])]
    cursor[3] += _U(1)
    return word


@kernel
def word_at(place, element, i):
    """Word `i` of an element, a uint64 below 2**32; `place` is the stream as a tuple.

    Kernels that call this for single elements take tuples, because an array is counted twice in each call.
    """
    position = place[3] + _U(STRIDE) * _U(element) + _U(i)
    counter = place[1] + (position >> _U(2))
    a, b, c, d = philox_block(place[0], counter, place[2] + _U(counter < place[1]))
    phase = position & _U(3)
    return a if phase == _U(0) else b if phase == _U(1) else c if phase == _U(2) else d


@kernel(nogil=False)
def sample_streams(place, out):
    """The streams of the samples of an operator call, from the position `place` of its generator (itself a row of this form).

    The next seven words are read as a key (2), a counter (2), a sequence (2) and a phase; sample i then has the
    sequence `SAMPLE_STRIDE * i` further on. It reads one word after the other, so that it compiles fast: every random operator
    needs it.
    """
    stream = place[0], place[1], place[2], place[3]
    key = counter = sequence = phase = _U(0)
    for r in range(7):
        word = word_at(stream, 0, r)
        half = word << _U(32) if r & 1 else word
        if r < 2:
            key |= half
        elif r < 4:
            counter |= half
        elif r < 6:
            sequence |= half
        else:
            phase = word & _U(3)
    for i in range(out.shape[0]):
        out[i, 0], out[i, 1], out[i, 2] = key, counter, sequence + _U(SAMPLE_STRIDE) * _U(i)
        out[i, 3] = phase


sample_streams.fallback()
