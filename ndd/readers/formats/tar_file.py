"""The members of a tar archive: old, ustar, GNU (long names, base-256 sizes) and pax headers. Reads no contents."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import NamedTuple

from ndd.readers.files.file_reading import RegularFile

BLOCK = 512
_WINDOW = 1 << 16  # bytes read at once where members are small; a read call costs as much as 64 kB
_REGULAR = (b"0", b"\0", b"7")
_HEADER = struct.Struct("100s24s12s12s8ss100s6s82s155s12x")  # name, ..., size, time, checksum, type, link, magic, ...


class Member(NamedTuple):
    """A regular file in an archive: its name and the position of its bytes."""

    name: str
    offset: int
    size: int


def members(path: str, report: Callable[[int, int], None] = lambda done, total: None) -> list[Member]:
    """The regular files of an archive, in order; links, folders, devices and the like are left out.

    As in other tools, the archive ends at two blocks of zeros; the rest is ignored. `report(done, total)`
    is called now and then, in bytes. OSError for a file that cannot be read; ValueError, with the path and the byte,
    for one that is not a tar archive (a compressed one, for example), is damaged (such as by a single block of zeros before
    other members), is cut off, or holds sparse members, whose bytes are not stored as they are.
    """
    with RegularFile(path) as file:
        return _Scan(path, file, report).members()


class _Scan:
    def __init__(self, path: str, file: RegularFile, report: Callable[[int, int], None]):
        self._path, self._file, self._report = path, file, report
        self._window, self._start = b"", 0

    def members(self) -> list[Member]:
        listed: list[Member] = []
        at, total = 0, self._file.size
        long_name: bytes | None = None
        pax: dict[bytes, bytes] = {}
        while True:
            header = self._bytes(at, BLOCK)
            if not header:
                text = f"blocks of zeros at the end, the file ends at byte {total} without: it is cut off"
                raise ValueError(f"{self._path}: expected {text if total else 'a tar archive, the file is empty'}")
            if header.count(0) == len(header):
                following = self._bytes(at + BLOCK, BLOCK)
                if following.count(0) != len(following):
                    raise ValueError(
                        f"{self._path} member {len(listed)}: expected a tar header at byte {at}, or two blocks of zeros as "
                        "at the end, got one: is it damaged?"
                    )
                break
            name, size, kind = self._header(at, header, len(listed))
            start = at + BLOCK
            if kind in b"123456":  # links, devices, folders: a size has no bytes
                size = 0
            elif b"size" in pax and kind not in b"xgLK":
                size = _pax_size(pax[b"size"])
                if size is None:
                    raise ValueError(
                        f"{self._path} member {len(listed)}: expected a size in the pax header before byte {at}, got "
                        f"{pax[b'size'][:32]!r}: is it damaged?"
                    )
            at = start + -(-size // BLOCK) * BLOCK
            if start + size > total:
                raise ValueError(
                    f"{self._path} member {len(listed)} ({os.fsdecode(name)!r}): expected {size} bytes at byte {start}, "
                    f"the file ends at {total}: it is cut off"
                )
            if kind == b"L":
                long_name = self._bytes(start, size).partition(b"\0")[0]
                continue
            if kind in b"xg":
                pax.update(_records(self._bytes(start, size)) if kind == b"x" else {})
                continue
            if kind == b"K":
                continue
            if kind == b"S" or any(key.startswith(b"GNU.sparse") for key in pax):
                raise ValueError(
                    f"{self._path} member {len(listed)} ({os.fsdecode(name)!r}): expected plain files, got a sparse one: "
                    "pack it without --sparse"
                )
            name = pax.get(b"path", name if long_name is None else long_name)
            if kind in _REGULAR and not name.endswith(b"/"):
                listed.append(Member(os.fsdecode(name), start, size))
                if not len(listed) % 4096:
                    self._report(at, total)
            long_name, pax = None, {}
        self._report(total, total)
        return listed

    def _header(self, at: int, header: bytes, number: int) -> tuple[bytes, int, bytes]:
        """Name, size and type of a member."""
        if len(header) == BLOCK:
            name, _, size, _, checksum, kind, _, magic, _, prefix = _HEADER.unpack(header)
            if _right_checksum(header, checksum):
                name = name.partition(b"\0")[0]
                if magic == b"ustar\0" and prefix[0]:
                    name = prefix.partition(b"\0")[0] + b"/" + name
                value = _number(size)
                if value is not None:
                    return name, value, kind
        question = "is it damaged?" if number else "is this a tar archive, and not a compressed one?"
        if len(header) < BLOCK:
            question = f"the file ends at {at + len(header)}: it is cut off"
        raise ValueError(f"{self._path} member {number}: expected a tar header at byte {at}, got none: {question}")

    def _bytes(self, at: int, size: int) -> bytes:
        """Bytes of the file, through a window that is read ahead while that pays off."""
        place = at - self._start
        if place < 0 or place + size > len(self._window):
            near = 0 <= place <= len(self._window) + _WINDOW // 4
            self._window, self._start = self._file.read(at, max(size, _WINDOW if near else BLOCK)), at
            place = 0
        return self._window[place : place + size]


def is_header(block: bytes) -> bool:
    """Whether the first bytes of a file are a header."""
    return len(block) == BLOCK and _right_checksum(block, _HEADER.unpack(block)[4])


def _right_checksum(header: bytes, written: bytes) -> bool:
    """Whether the bytes of a header, those of the checksum as blanks, add up to what is written."""
    try:
        expected = int(written.strip(b" \0") or b"-1", 8)
    except ValueError:
        return False
    return expected == sum(header) - sum(written) + 8 * 32


def _number(field: bytes) -> int | None:
    """An octal number, or one of 256 (its first byte 0x80); None for anything else."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    try:
        value = int(field.strip(b" \0") or b"0", 8)
    except ValueError:
        return None
    return value if value >= 0 else None


def _pax_size(value: bytes) -> int | None:
    """A size as pax writes it, in digits; None for anything else."""
    return int(value) if value.isdigit() and len(value) < 20 else None


def _records(data: bytes) -> dict[bytes, bytes]:
    """The records "length key=value" of a pax header."""
    records, at = {}, 0
    while at < len(data):
        length, _, _ = data[at : at + 32].partition(b" ")
        if not length.isdigit() or not int(length):
            break
        key, _, value = data[at + len(length) + 1 : at + int(length) - 1].partition(b"=")
        records[key] = value
        at += int(length)
    return records
