"""`ZipMembers`: files in zip archives, read one by one."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Sequence

import numpy as np

from ndd.readers.output import Record
from ndd.readers.stores.container import ContainerStore

# The header of a member: magic, version, flags, method, time, date, CRC, sizes, lengths of name and extra field.
_HEAD = struct.Struct("<4s5H3I2H")
_MOST_EXTRA = 1 << 16
_MOST_SAVED = 1100  # the largest factor by which deflated data may grow: the format's limit is 1032


class ZipMembers(ContainerStore):
    """Members of archives. `rows`: folder, name, archive, description and the offset of the next member."""

    def __init__(self, archives: list[str], rows: list[tuple[str, str, int, zipfile.ZipInfo, int]], classes: list[str]):
        infos = [row[3] for row in rows]
        numbers = np.array([(i.header_offset, i.compress_size, i.file_size, i.CRC) for i in infos], np.int64)
        self._packed, self._plain, self._crcs = numbers[:, 1], numbers[:, 2], numbers[:, 3]
        heads = np.array([_HEAD.size + len(i.orig_filename.encode()) + _MOST_EXTRA for i in infos], np.int64)
        room = np.maximum(np.array([row[4] for row in rows], np.int64) - numbers[:, 0], _HEAD.size)
        sizes = np.where(room - heads < self._packed, room, self._packed + heads)
        super().__init__(archives, np.array([row[2] for row in rows], np.int64), numbers[:, 0], sizes)
        labels = {name: label for label, name in enumerate(classes)}
        self._labels = np.array([labels.get(row[0], 0) for row in rows], np.int32)
        self._names = [info.filename for info in infos]

    def sources(self, numbers: Sequence[int]) -> list[str]:
        """The archive and the name in it."""
        return [f"{self.paths[self.containers[number]]} {self._names[number]}" for number in numbers]

    def parse(self, number: int, data: np.ndarray) -> Record:
        """The file and its label."""
        magic, _, flags, method, _, _, _, _, _, name, extra = _HEAD.unpack(data[: _HEAD.size].tobytes())
        if magic != b"PK\3\4" or flags & 1 or method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            got = "an encrypted one" if flags & 1 else f"compression {method}" if magic == b"PK\3\4" else repr(magic)
            raise ValueError(f"expected a member of a zip archive, stored or deflated, got {got}")
        begin, packed, plain = _HEAD.size + name + extra, int(self._packed[number]), int(self._plain[number])
        if begin > len(data) - packed:
            raise ValueError(f"expected {packed} bytes of the member, got {max(len(data) - begin, 0)}")
        content = data[begin : begin + packed]
        if method == zipfile.ZIP_DEFLATED:
            content = _inflated(content, plain)
        if len(content) != plain or zlib.crc32(content.data) != self._crcs[number]:
            raise ValueError(f"expected {plain} bytes with the CRC in the archive, got {len(content)}: it is damaged")
        return content, self._labels[number : number + 1]


def _inflated(data: np.ndarray, size: int) -> np.ndarray:
    if size > _MOST_SAVED * len(data) + 64:
        raise ValueError(f"expected data that grows to {size} bytes, got {len(data)} bytes")
    try:
        return np.frombuffer(bytearray(zlib.decompressobj(-zlib.MAX_WBITS).decompress(data.data, size + 1)), np.uint8)
    except zlib.error as error:
        raise ValueError(f"the member is damaged: {error}") from None
