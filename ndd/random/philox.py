"""Philox 4x32-10 in plain Python: maps a counter to four 32-bit words.

All random numbers of ndd come from this bijection (Salmon et al., "Parallel random numbers: as easy as
1, 2, 3", 2011). A *stream* is a 64-bit key and a position; a position counts 32-bit words, so moving is one addition and
generates nothing. A position consists, from low to high, of the word in its block (2 bits), the block counter (64 bits) and the
sequence (64 bits).
"""

from __future__ import annotations

import re

MASK_32 = (1 << 32) - 1
MASK_64 = (1 << 64) - 1
POSITIONS = 1 << 130
"""The number of words of a key; positions wrap around there."""

STATE_WORDS = 7
"""The number of words that one operator call takes from its generator (see `ndd._cpu.philox.sample_streams`)."""

_STATE_TEXT = re.compile(r"Philox_([0-9a-fA-F]{16})_([0-9a-fA-F]{16}):([0-9a-fA-F]{16})_([0-9])")
_STATE_LENGTH = len("Philox_") + 3 * 16 + len("_:_") + 1


def block(key: int, index: int) -> tuple[int, int, int, int]:
    """Return the four words of block `index` (sequence above counter, 128 bits) of `key`."""
    k0, k1 = key & MASK_32, key >> 32
    a, b, c, d = index & MASK_32, index >> 32 & MASK_32, index >> 64 & MASK_32, index >> 96
    for _ in range(10):
        p, q = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = q >> 32 ^ b ^ k0, q & MASK_32, p >> 32 ^ d ^ k1, p & MASK_32
        k0, k1 = k0 + 0x9E3779B9 & MASK_32, k1 + 0xBB67AE85 & MASK_32
    return a, b, c, d


def words(key: int, position: int, count: int) -> list[int]:
    """Return `count` consecutive words of the stream, the first one at `position`."""
    phase = position & 3
    result: list[int] = []
    index = position >> 2
    while len(result) < phase + count:
        result.extend(block(key, index))
        index = index + 1 & (1 << 128) - 1
    return result[phase : phase + count]


def branch(key: int, position: int, number: int) -> int:
    """Return the key of the stream `number` that branches off from a stream at a position."""
    a, b, c, d = block(key, position >> 2 & (1 << 128) - 1)
    here = block(b << 32 | a, d << 96 | c << 64 | (position & 3))  # the words of the stream itself are not used as keys
    a, b, _, _ = block(here[1] << 32 | here[0], number & (1 << 128) - 1)
    return b << 32 | a


def pack(sequence: int, counter: int, phase: int) -> int:
    """Return the position of a sequence, a block counter and a word of the block."""
    return sequence << 66 | counter << 2 | phase


def unpack(position: int) -> tuple[int, int, int]:
    """Return `(sequence, counter, phase)` of a position."""
    return position >> 66, position >> 2 & MASK_64, position & 3


def format_state(key: int, position: int) -> str:
    """Return a stream as text: `Philox_<key>_<sequence>:<counter>_<phase>`, 16 hexadecimal digits each."""
    sequence, counter, phase = unpack(position)
    return f"Philox_{key:016X}_{sequence:016X}:{counter:016X}_{phase}"


def parse_state(text: str) -> tuple[int, int]:
    """Return the `(key, position)` of a state text. ValueError, with the reason, for an invalid text."""
    if len(text) != _STATE_LENGTH:
        raise ValueError(f"Invalid Philox state string length: expected {_STATE_LENGTH}, got {len(text)} ({text!r}).")
    match = _STATE_TEXT.fullmatch(text)
    if match is None:
        raise ValueError(
            f"Invalid Philox state string: expected Philox_<16 hex>_<16 hex>:<16 hex>_<0..3>, got {text!r}."
        )
    key, sequence, counter, phase = (int(match.group(i), 16) for i in range(1, 5))
    if phase > 3:
        raise ValueError(f"Invalid Philox state string phase: expected 0..3, got {phase}.")
    return key, pack(sequence, counter, phase)
