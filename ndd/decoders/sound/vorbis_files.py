"""Facts about Ogg files of Vorbis, and the tables of their setup headers, for the decoder (`decoders/sound/vorbis.py`).

Files of one encoder have the same setup header, of 3 to 8 kB. Its tables take 0.2 ms to build, so they are cached.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ndd.decoders.sound import batch_kernels as sound_batch
from ndd.decoders.sound.batch_kernels import CHANNELS, KIND, SETUP, SETUP_BYTES, UNKNOWN, VORBIS
from ndd.decoders.sound.vorbis_setup import LONG, SHORT, USED, VALUES, NotReadyError, read_setup
from ndd.decoders.sound.vorbis_transform import transform_factors, transform_order

if TYPE_CHECKING:
    from ndd.decoders.sound.decode import Files

_MOST = 1 << 20  # elements of a table; those of libvorbis's own encoder have at most 0.3 million
_SIZES = 28 + 28  # the byte of a file, after its first page's header, with the sizes of blocks


class Setup(NamedTuple):
    """See `vorbis_setup.py` and `vorbis_transform.py`."""

    table: np.ndarray
    values: np.ndarray
    factors: tuple[np.ndarray, np.ndarray]
    order: tuple[np.ndarray, np.ndarray]


def setups(files: Files, which: np.ndarray, facts: np.ndarray) -> list[tuple[Setup, np.ndarray]]:
    """The tables for the files among `which` that can be decoded with them, each with the numbers of its files. Fills their
    `facts`."""
    which = np.array([i for i in which.tolist() if files.array(i)[:4].tobytes() == b"OggS"], np.int64)
    if not len(which):
        return []
    sound_batch.vorbis_headers(files.places, which, facts)
    by_setup: dict[int, tuple[Setup, list[int]]] = {}
    which = which[facts[which, KIND] == VORBIS]
    for i, row in zip(which.tolist(), facts[which].tolist(), strict=True):
        data, begin = files.array(i), row[SETUP]
        try:
            setup = _setup(row[CHANNELS], int(data[_SIZES]), data[begin : begin + row[SETUP_BYTES]].tobytes())
        except NotReadyError:  # so it is not cached
            setup = None
        if setup is None:
            facts[i, KIND] = UNKNOWN
        else:
            by_setup.setdefault(id(setup), (setup, []))[1].append(i)
    return [(setup, np.array(those, np.int64)) for setup, those in by_setup.values()]


@functools.lru_cache(maxsize=16)
def _setup(channels: int, sizes: int, header: bytes) -> Setup | None:
    """The tables of a setup header; None for files that are left to libsndfile."""
    table, values = np.zeros(_MOST, np.int32), np.zeros(_MOST, np.float32)
    data = np.frombuffer(header + bytes(8), np.uint8)
    if not read_setup(data, len(header), channels, table, values):
        return None
    table[SHORT], table[LONG] = short, long = 1 << (sizes & 15) >> 1, 1 << (sizes >> 4) >> 1
    factors, order = (
        (transform_factors(short), transform_factors(long)),
        (transform_order(short), transform_order(long)),
    )
    return Setup(table[: table[USED]].copy(), values[: table[VALUES]].copy(), factors, order)
