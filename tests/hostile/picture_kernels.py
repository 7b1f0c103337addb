"""Mutated pictures and their parts for kernels that write through pointers: PNG, TIFF, PNM and BMP of a batch; LZW, PackBits and
JPEG of TIFF; run lengths of BMP; in memory between fences."""

from __future__ import annotations

import functools
import io
import math
import random
import struct
import zlib
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
from hostile.bounds_checked import Parser, fenced, fenced_copy
from hostile.media import PATTERNS, LeftError, cut, odd
from picture_writers.bmp import bmp, packed
from picture_writers.png import parts
from picture_writers.tiff import CMYK, DEFLATE, GRAY, JPEG, LZW, NONE, PACKBITS, RGB, YCBCR, tiff
from PIL import Image

from ndd._compiled.thread_team import ALONE, joined
from ndd.decoders.backend import Options, Unreadable
from ndd.decoders.backends import (
    bmp as bmp_backend,
    libzstd,
    opencv as opencv_backend,
    tiff as tiff_backend,
    tiff_jpeg,
    tiff_lzw,
    tiff_packbits,
)
from ndd.decoders.backends.bmp_runs import unpack_runs
from ndd.decoders.bmp import kernels as bmp_kernels
from ndd.decoders.headers import bmp as bmp_headers, png as headers, pnm as pnm_headers, tiff as tiff_headers
from ndd.decoders.headers.tiff_directory import STRIP_BYTES, STRIPS, Directory
from ndd.decoders.jpeg.baseline import room as jpeg_room
from ndd.decoders.picture_table import LIBDEFLATE, LIBZSTD
from ndd.decoders.png import kernels, libdeflate, libpng
from ndd.decoders.pnm import kernels as pnm_kernels
from ndd.decoders.tiff import jpeg_kernels, kernels as tiff_kernels
from ndd.decoders.tiff.directory import MOST_TABLES
from ndd.types import DALIImageType

# ---- PNG


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def make_png(rng: random.Random) -> bytes:
    """Rows of any filters, too few or too many, in some chunks; a header that lies; checksums that are right or not."""
    kind, channels = rng.choice([(0, 1), (2, 3), (4, 2), (6, 4), (2, 3), (3, 1)])
    width, height = rng.choice([1, 2, 7, 33]), rng.choice([1, 2, 9])
    depth, interlaced = rng.choice([8] * 8 + [1, 4, 16]), rng.choice([0] * 3 + [1])
    rows = b"".join(
        bytes([rng.choice([0, 1, 2, 3, 4, 4, 5])]) + rng.randbytes(part.shape[1] * channels)
        for part in parts(np.empty((height, width)), interlaced) for _ in part
    )  # fmt: skip
    rows = rows[: len(rows) + rng.choice([0, 0, 0, 0, -1, -7])] + bytes(rng.choice([0, 0, 0, 1, 400]))
    packed = zlib.compress(rows)
    if rng.random() < 0.2:
        place = rng.randrange(len(packed))
        packed = packed[:place] + rng.randbytes(1) + packed[place + 1 :]
    extents = [width, height]
    if rng.random() < 0.2:
        which = rng.randrange(2)
        extents[which] = odd(rng, 32, extents[which])
    chunks = [chunk(b"IHDR", struct.pack(">IIBBBBB", *extents, depth, kind, 0, 0, interlaced))]
    if kind == 3 or rng.random() < 0.1:
        chunks.append(chunk(b"PLTE", rng.randbytes(3 * rng.choice([1, 16, 256]))))
    borders = sorted(rng.randrange(len(packed) + 1) for _ in range(rng.choice([0, 0, 1, 3])))
    chunks += [chunk(b"IDAT", packed[a:b]) for a, b in zip([0, *borders], [*borders, len(packed)], strict=True)]
    chunks.insert(
        rng.randrange(1, len(chunks) + 1), chunk(rng.choice([b"tEXt", b"tRNS", b"IDAT", b"abcd"]), rng.randbytes(3))
    )
    chunks.append(chunk(b"IEND", b""))
    if rng.random() < 0.3:
        k = rng.randrange(len(chunks))
        part = bytearray(chunks[k])
        part[:4] = odd(rng, 32, len(part) - 12).to_bytes(4, "big")
        chunks[k] = bytes(part)
    if rng.random() < 0.1:
        del chunks[rng.randrange(len(chunks))]
    file = b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
    return cut(rng, file, [8, 33, 57, len(file)]) if rng.random() < 0.15 else file


def look(kernels: Any, data: np.ndarray, read_header: Callable[[memoryview], Any]) -> Any:
    """The header by the kernel of a batch, which equals what Python reads."""
    facts = np.zeros((1, 6), np.int64)
    kernels.look(np.array([data.ctypes.data]), np.array([data.size]), np.empty(0, np.uint8), facts)
    height, width, channels = facts[0, 1:4].tolist()
    if not facts[0, 0] or height * width > 1 << 16:
        raise LeftError("left to Python")
    header = read_header(data.data)
    assert (header.height, header.width, header.channels) == (height, width, channels)
    return header


def by_loop(
    loop: Any,
    data: np.ndarray,
    header: Any,
    part: tuple[int, int, int, int],
    depth: int,
    is_bgr: bool,
    room: int,
    libraries: int,
) -> np.ndarray:
    """A part of a picture by the loop of a batch; no byte of the result is left out."""
    y0, x0, y1, x1 = part
    high, wide, result = y1 - y0, x1 - x0, []
    for pattern in PATTERNS:
        out, scratch = fenced(high * wide * depth), fenced(room)
        out[:], scratch[:] = pattern, pattern
        row = [
            data.ctypes.data, data.size, out.ctypes.data, out.size, header.height, header.width, y0, x0, high, wide, depth,
            is_bgr, *part,
        ]  # fmt: skip
        done = np.zeros(1, np.bool_)
        case = np.zeros(1, np.int64), np.array([row]), scratch[None], np.array([0]), libraries, done
        joined(loop)(ALONE, 0, np.array([0]), 1, case)
        result.append(out if done[0] else None)
    assert (result[0] is None) == (result[1] is None)
    if result[0] is None:
        raise LeftError("refused")
    np.testing.assert_array_equal(*result)
    return result[0]


def read_png(content: bytes) -> None:
    data = fenced_copy(content)
    header = look(kernels, data, headers.read_header)
    libpng.library()
    height, width, libraries = header.height, header.width, LIBDEFLATE * libdeflate.available()
    room = data.size + height * (width * header.channels + 2) + 8
    for depth, is_bgr, y, x in ((3, False, 0, 0), (1, False, 0, 0), (3, True, height // 3, width // 3)):
        by_loop(kernels.decode_loop, data, header, (y, x, height, width), depth, is_bgr, room, libraries)


# ---- TIFF and BMP


@functools.cache
def common_tiffs() -> list[bytes]:
    rng = np.random.default_rng(4)
    pixels = np.repeat(rng.integers(0, 256, (21, 5, 4), np.uint8), 5, axis=1)
    layouts: list[dict[str, Any]] = [{"rows": 4}, {"rows": 21}, {"tile": 16}]
    return [
        tiff(pixels[..., :channels], colours=colours, compression=kind, order=order, **layout).tobytes()
        for channels, colours in ((1, GRAY), (3, RGB), (4, CMYK)) for kind in (NONE, LZW, DEFLATE, PACKBITS)
        for order in ("<", ">") for layout in layouts
    ]  # fmt: skip


@functools.cache
def common_bmps() -> list[bytes]:
    rng = np.random.default_rng(5)
    words, colours = rng.integers(0, 1 << 32, (9, 11), np.uint32), rng.integers(0, 256, (256, 3), np.uint8)
    deep = [bmp(packed(words, bits), 11, 9, bits, top_down=t).tobytes() for bits in (24, 32) for t in (False, True)]
    return deep + [
        bmp(packed(words % n, 8), 11, 9, 8, palette=p[:n]).tobytes()
        for n in (3, 256)
        for p in (colours, np.repeat(colours[:, :1], 3, axis=1))
    ]


def changed(rng: random.Random, files: list[bytes], first: int) -> bytes:
    """Numbers of a header that lie, anywhere from byte `first` on or in the directory at the end of a TIFF; then a file that ends
    early."""
    data = bytearray(rng.choice(files))
    directory = int.from_bytes(data[4:8], "little" if data[:2] == b"II" else "big")
    head = range(first, 54) if data[:2] == b"BM" else range(directory, len(data))
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        place, size = rng.choice(head), rng.choice([1, 2, 4])
        order = rng.choice(["little", "big"])
        value = int.from_bytes(data[place : place + size], order)  # type: ignore[arg-type]
        data[place : place + size] = odd(rng, 8 * size, value).to_bytes(size, order)  # type: ignore[arg-type]
    if rng.random() < 0.1:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return cut(rng, bytes(data), [8, 54, directory, len(data)]) if rng.random() < 0.1 else bytes(data)


def make_pnm(rng: random.Random) -> bytes:
    """White space, comments and numbers that lie."""
    width, height, kind = rng.choice([1, 3, 23]), rng.choice([1, 2, 19]), rng.choice([5, 6, 6, 3])
    numbers = [width, height, 255]
    if rng.random() < 0.3:
        which = rng.randrange(3)
        numbers[which] = odd(rng, 32, numbers[which])
    space = [rng.choice([b" ", b"\n", b"\t", b"\r\n", b"#a\n", b"# 1 2\r", b"#", b"", b" " * 4000]) for _ in range(4)]
    space = [text if rng.random() < 0.3 else b" " for text in space]
    head = b"".join(text + b"%d" % number for text, number in zip(space, numbers, strict=False))
    body = rng.randbytes(width * height * 3 - rng.choice([0, 0, 0, 1]))
    return b"P%d" % kind + head + rng.choice([b"\n", b" ", b"\r\n", b"#\n"]) + body


def read_common(kernels: Any, backend: Any, read_header: Callable[[memoryview], Any], content: bytes) -> None:
    """A picture by the kernel of a batch equals what Python decodes."""
    data = fenced_copy(content)
    header = look(kernels, data, read_header)
    header = header._replace(format="pnm" if kernels is pnm_kernels else "")
    height, width = header.height, header.width
    libraries = LIBDEFLATE * libdeflate.available() + LIBZSTD * libzstd.available()
    room = height * width * header.channels + (1 << 20)
    for kind, depth, y, x in ((DALIImageType.RGB, 3, 0, 0), (DALIImageType.GRAY, 1, height // 3, width // 3)):
        part = y, x, height, width
        actual = by_loop(kernels.decode_loop, data, header, part, depth, False, room, libraries)
        by_python = backend.decode(data, header, Options(kind, np.dtype(np.uint8), True, None), part)
        np.testing.assert_array_equal(actual, by_python.reshape(-1))


# ---- LZW


@functools.cache
def strips() -> list[bytes]:
    rng = np.random.default_rng(3)
    result = []
    for picture in (
        rng.integers(0, 256, (60, 60), np.uint8),
        np.zeros((200, 300), np.uint8),
        rng.integers(0, 3, (99, 99), np.uint8),
    ):
        file = io.BytesIO()
        Image.fromarray(picture).save(file, "tiff", compression="tiff_lzw", tiffinfo={278: picture.shape[0]})
        directory = Directory(memoryview(file.getvalue()))
        places = {
            entry.tag: directory.number(entry.code, entry.place)
            for entry in directory.entries()
            if entry.code in ("H", "I")
        }
        begin, size = places[STRIPS], places[STRIP_BYTES]
        result.append(file.getvalue()[begin : begin + size])
    return result


def coded(rng: random.Random) -> bytes:
    """Any codes, of growing width, as an encoder would write them, more or less."""
    text, width, free = format(256, "09b"), 9, 258
    for _ in range(rng.choice([3, 40, 300, 4200])):
        code = rng.choice(
            [rng.randrange(256), rng.randrange(258, max(free, 259)), free, free, free + rng.choice([0, 0, 0, 1])]
        )
        code = 256 if rng.random() < 0.002 else min(code, (1 << width) - 1)
        text, free = text + format(code, f"0{width}b"), free + 1
        if code == 256:
            width, free = 9, 258
        elif free == (1 << width) - 1 and width < 12:
            width += 1
    text += "0" * (-len(text) % 8)
    return int("1" + text, 2).to_bytes(len(text) // 8 + 1, "big")[1:]


def make_lzw(rng: random.Random) -> tuple[bytes, int]:
    data = bytearray(coded(rng) if rng.random() < 0.5 else rng.choice(strips()))
    for _ in range(rng.choice([0, 0, 1, 3])):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data[: rng.choice([len(data), rng.randrange(len(data) + 1)])]), rng.choice(
        [0, 1, 3, 7, 8, 9, 100, 3600, 60_000]
    )


def make_packbits(rng: random.Random) -> tuple[bytes, int]:
    text = b"".join(
        rng.choice([bytes([n := rng.randrange(128)]) + rng.randbytes(n + 1), bytes([rng.randrange(128, 256)]), rng.randbytes(2)])
        for _ in range(rng.randrange(40))
    )  # fmt: skip
    return text, rng.choice([0, 1, 3, 100, 600])


def read_chunk(unpack: Callable[..., bool], made: tuple[bytes, int]) -> None:
    result = []
    for pattern in PATTERNS:
        out = fenced(made[1])
        out[:] = pattern
        result.append(out if unpack(fenced_copy(made[0]), out) else None)
    if result[0] is None:
        raise LeftError("left to libtiff")
    np.testing.assert_array_equal(*result)


# ---- JPEG in TIFF


@functools.cache
def jpeg_tiffs() -> list[bytes]:
    rgb = np.asarray(Image.fromarray(np.random.default_rng(0).integers(0, 255, (5, 7, 3), np.uint8)).resize((57, 43)))
    forms: list[dict[str, Any]] = [
        {"colours": RGB}, {"colours": YCBCR, "tags": {530: [2, 2]}}, {"colours": YCBCR, "tags": {530: [2, 1]}},
        {"colours": YCBCR, "tags": {347: None}}, {"colours": GRAY, "pixels": rgb[..., :1]},
    ]  # fmt: skip
    layouts = {"rows": 16}, {"rows": 43}, {"tile": 32}
    return [tiff(**{"pixels": rgb, "compression": JPEG, **a, **b}).tobytes() for a in forms for b in layouts]


def make_jpeg_tiff(rng: random.Random) -> bytes:
    """Changed tables and chunks; then places, sizes and extents that lie."""
    data = bytearray(rng.choice(jpeg_tiffs()))
    marks = [k for k in range(8, len(data) - 20) if data[k] == 0xFF and data[k + 1] not in (0, 0xFF)]
    end = int.from_bytes(data[4:8], "little")
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        near = rng.choice(marks) + rng.randrange(20), rng.randrange(8, end), rng.randrange(end, len(data))
        place = rng.choice(near)
        data[place] = odd(rng, 8, data[place])
    return bytes(data)


def read_jpeg_tiff(content: bytes) -> None:
    data = fenced_copy(content)
    header = tiff_headers.read_header(data.data)
    if header is None or header.height * header.width > 1 << 16 or header.channels not in (1, 3):
        raise LeftError("no header, or of too many pixels")
    options = Options(DALIImageType.ANY_DATA, np.dtype(np.uint8), True, None)
    y, x = header.height // 3, header.width // 3
    window = y, x, header.height - y // 2, header.width - x // 2
    results: list[list[np.ndarray | None]] = []
    for pattern in PATTERNS:

        def taken(shape: tuple[int, ...], dtype: Any, pattern: int = pattern) -> np.ndarray:
            memory = fenced(math.prod(shape)).reshape(shape)
            memory[...] = pattern
            return memory

        try:
            with mock.patch.object(tiff_jpeg, "host_empty", taken):
                results.append([tiff_backend.decode(data, header, options, part) for part in (None, window)])
        except Unreadable:
            raise LeftError("refused") from None
    whole, part = results[0]
    if whole is None:
        raise LeftError("left to libtiff")
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    if part is not None:
        np.testing.assert_array_equal(part, whole[window[0] : window[2], window[1] : window[3]])


def read_jpeg_tiff_of_batch(content: bytes) -> None:
    """By the kernel of a batch as Python decodes it."""
    data = fenced_copy(content)
    header = look(tiff_kernels, data, tiff_headers.read_header)
    height, width, size = header.height, header.width, data.size + MOST_TABLES
    room = size + jpeg_room(size, width) + 3 * height * width
    for kind, depth in ((DALIImageType.RGB, 3), (DALIImageType.ANY_DATA, header.channels), (DALIImageType.GRAY, 1)):
        for y, x in ((0, 0), (height // 3, width // 3)):
            part = y, x, height - y // 2, width - x // 2
            actual = by_loop(jpeg_kernels.decode_loop, data, header, part, depth, False, room, 0)
            by_python = tiff_backend.decode(data, header, Options(kind, np.dtype(np.uint8), True, None), part)
            np.testing.assert_array_equal(actual, by_python.reshape(-1))


# ---- run lengths


def make_runs(rng: random.Random) -> tuple[bytes, int, bool, tuple[int, int]]:
    text = b"".join(
        rng.choice(
            [
                bytes([rng.randrange(1, 256), rng.randrange(256)]), b"\0\0", b"\0\0", bytes([0, 2, odd(rng, 8, 1), odd(rng, 8, 1)]),
                bytes([0, n := rng.randrange(3, 256)]) + rng.randbytes(n + (n & 1)), rng.randbytes(rng.randrange(4)),
            ]
        )
        for _ in range(rng.randrange(40))
    )  # fmt: skip
    ended = text + rng.choice([b"\0\1", b"\0\1", b""])
    return ended, rng.choice([4, 8]), rng.random() < 0.5, (rng.choice([0, 1, 5, 60]), rng.choice([0, 1, 7, 300]))


def read_runs(made: tuple[bytes, int, bool, tuple[int, int]]) -> None:
    content, bits, wraps, shape = made
    out = fenced(shape[0] * shape[1]).reshape(shape)
    ended, is_whole = unpack_runs(fenced_copy(content), bits, wraps, out)
    assert 0 <= ended <= max(shape[0], len(content))
    if not is_whole:
        raise LeftError("cut off")


PARSERS = {
    "PNG by the kernel": Parser(make_png, read_png),
    "TIFF by the kernel": Parser(
        lambda rng: changed(rng, common_tiffs(), 0),
        functools.partial(read_common, tiff_kernels, tiff_backend, tiff_headers.read_header),
    ),
    "PNM by the kernel": Parser(
        make_pnm, functools.partial(read_common, pnm_kernels, opencv_backend, pnm_headers.read_header)
    ),
    "BMP by the kernel": Parser(
        lambda rng: changed(rng, common_bmps(), 2),
        functools.partial(read_common, bmp_kernels, bmp_backend, bmp_headers.read_header),
    ),
    "LZW of TIFF": Parser(make_lzw, functools.partial(read_chunk, tiff_lzw.unpack)),
    "PackBits of TIFF": Parser(make_packbits, functools.partial(read_chunk, tiff_packbits.unpack)),
    "JPEG of TIFF": Parser(make_jpeg_tiff, read_jpeg_tiff),
    "JPEG of TIFF in a batch": Parser(make_jpeg_tiff, read_jpeg_tiff_of_batch),
    "run lengths of BMP": Parser(make_runs, read_runs),
}
