"""Mutated pictures and sounds: files of encoders whose fields are changed one by one, so that they still look right.

Fields of sounds are what our own parsers read of a good file: their functions that take bits are watched once, while Python
runs the parsers' text. So a new field of a parser is mutated as soon as it is read.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import os
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import soundfile
from hostile.bounds_checked import Parser, fenced, fenced_copy
from PIL import Image

import ndd
from ndd._compiled.sample_loops import of_sample
from ndd.decoders import registry
from ndd.decoders.jpeg import (
    baseline as jpeg,
    batch_headers,
    header as jpeg_header,
    progressive,
    segments as segments_of,
)
from ndd.decoders.png import kernels as png
from ndd.decoders.sound import batch_kernels as sound_batch, decode as _sound_file, flac, ogg, vorbis_setup
from ndd.decoders.video import nvdec_calls

PATTERNS = (0x11, 0xEE)  # of memory before it is written: results must not depend on it


class LeftError(ValueError):
    """Our parser leaves a file to another library."""


# ---- numbers that harm


def odd(rng: random.Random, bits: int, value: int) -> int:
    """A number of so many bits that a careless parser would stumble over."""
    top = (1 << bits) - 1
    near = value + 1, value - 1, value * 2, value ^ 1 << rng.randrange(bits)
    choice = rng.choice([0, 1, top, top >> 1, (top >> 1) + 1, *near, rng.randint(0, top)])
    return choice & top


def cut(rng: random.Random, data: bytes, borders: list[int]) -> bytes:
    """The file up to one of its borders, or near it."""
    end = rng.choice(borders) + rng.choice([0, 0, -1, 1, 2, -8])
    return data[: min(max(end, 0), len(data))]


# ---- JPEG


EXIF = b"Exif\0\0" + struct.pack(">2sHIHHHIHHI", b"MM", 42, 8, 1, 274, 3, 1, 6, 0, 0)


@functools.cache
def pictures() -> list[bytes]:
    rng = np.random.default_rng(0)
    coarse = Image.fromarray(rng.integers(0, 255, (5, 7, 3), np.uint8))
    rgb = coarse.resize((57, 43), Image.Resampling.BICUBIC)
    kinds: list[dict[str, Any]] = [
        {"subsampling": 0}, {"subsampling": 1}, {"subsampling": 2}, {"subsampling": 2, "restart_marker_blocks": 3},
        {"progressive": True}, {"progressive": True, "subsampling": 0}, {"progressive": True, "subsampling": 1, "quality": 98},
        {"subsampling": 2, "quality": 99}, {"subsampling": 2, "exif": EXIF},
    ]  # fmt: skip
    cases = [(picture, options) for options in kinds for picture in (rgb, rgb.convert("L"))]
    result = []
    for picture, options in (*cases, (rgb.convert("CMYK"), {}), (rgb, {"keep_rgb": True})):
        file = io.BytesIO()
        picture.save(file, "JPEG", **{"quality": 80, **options})
        result.append(file.getvalue())
    return result


def segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Marker, begin and end of each segment, and of the codes of each scan, whose marker is 0; the end of the picture last."""
    at = 2
    while data[at + 1] != 0xD9:
        marker, (length,) = data[at + 1], struct.unpack_from(">H", data, at + 2)
        yield marker, at, at + 2 + length
        at += 2 + length
        if marker == 0xDA:
            begin = at
            while data[at] != 0xFF or data[at + 1] in (0, *range(0xD0, 0xD8)):
                at += 1
            yield 0, begin, at
    yield 0xD9, at, len(data)


# Places of fields behind a segment's length, of one byte each; those of 16 bits are two of them.
_FIELDS = {
    0xDB: [0, 1, 65], 0xC4: range(18), 0xDD: range(2), 0xDA: range(10), 0xE1: range(6, 30), 0xE0: range(12),
    0xEE: range(12),
}  # fmt: skip
_FRAME = range(15)


def make_jpeg(rng: random.Random) -> bytes:
    """Segments left out, doubled, exchanged, cut; lengths, counts, table numbers, sampling factors, restart intervals, scan
    parameters; changed codes."""
    data = rng.choice(pictures())
    parts = [bytearray(data[begin:end]) for _, begin, end in segments(data)]
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        k = rng.randrange(len(parts))
        part, case = parts[k], rng.random()
        if case < 0.5 and part[:1] == b"\xff" and len(part) > 5:
            fields = _FRAME if part[1] in (0xC0, 0xC2) else _FIELDS.get(part[1], range(4))
            place = min(4 + rng.choice(fields), len(part) - 1)
            part[place] = odd(rng, 8, part[place])
        elif case < 0.6 and len(part) > 3:
            part[2:4] = odd(rng, 16, len(part)).to_bytes(2, "big")
        elif case < 0.65:
            del parts[k]
        elif case < 0.7:
            parts.insert(rng.randrange(len(parts)), bytearray(part))
        elif case < 0.75:
            parts[k:k] = [bytearray(rng.choice([b"\0\1", b"\xff", b"\xff\xd9", b"\xff\xdd\0\4\0\2", b"\xff\xc4\0\2"]))]
        elif case < 0.8:
            parts[k] = bytearray(part[: rng.randint(0, len(part))])
        else:
            scan = rng.choice([part for part in parts if part[:1] != b"\xff" or part[1:2] == b"\0"] or parts)
            place = rng.randrange(max(1, len(scan)))
            scan[place : place + 1] = rng.randbytes(rng.choice([1, 1, 3]))
        if not parts:
            break
    file = data[:2] + b"".join(parts)
    borders = [sum(map(len, parts[:k])) + 2 for k in range(len(parts) + 1)]
    return cut(rng, file, borders) if rng.random() < 0.15 else file


def read_jpeg(content: bytes) -> None:
    """By the kernels: what headers say, whole and in windows. In Python: segments and headers."""
    data = fenced_copy(content)
    places, sizes = np.array([data.ctypes.data]), np.array([data.size])
    facts, seen = np.zeros((1, batch_headers.FACTS), np.int64), np.zeros((1, 3), np.int64)
    batch_headers.read_headers(places, sizes, np.empty(0, np.uint8), facts)
    batch_headers.peek(places, sizes, np.empty(batch_headers.PEEKED, np.uint8), seen)
    copy = fenced(data.size)
    batch_headers.take(places[0], data.size, 0, copy, np.zeros(batch_headers.FACTS, np.int64))
    header = jpeg_header.read_header(data.data)
    segments_of.without_junk(data)
    segments_of.lacks_scans(data.data)
    if facts[0, batch_headers.FORMAT]:
        assert header is not None
        assert (header.height, header.width) == tuple(facts[0, batch_headers.HEIGHT : batch_headers.WIDTH + 1])
        assert header.orientation == facts[0, batch_headers.ORIENTATION]
        if seen[0].any():
            assert (header.height, header.width, header.channels, header.orientation) == (*seen[0], 1)
    if header is None or header.height * header.width > 1 << 16:
        raise LeftError("no header, or of too many pixels")
    whole = [decoded_by_kernel(data, header, (0, 0, header.height, header.width), channels) for channels in (3, 1)]
    y, x = header.height // 3, header.width // 3
    part = decoded_by_kernel(data, header, (y, x, header.height - y // 2, header.width - x // 2), 3)
    if whole[0] is None:
        raise LeftError("left to libjpeg-turbo")
    if part is not None:
        np.testing.assert_array_equal(part, whole[0][y : header.height - y // 2, x : header.width - x // 2])


def lookups() -> tuple[np.ndarray, ...]:
    """The tables of `jpeg.decode` as they are before the first picture."""
    looks = jpeg.LOOKS
    return (
        np.empty((4, looks), np.int64), np.empty((2, 2 * looks), np.uint8), np.empty((2, 4 * looks), np.uint8),
        np.empty((2, 2 * looks), np.int16), np.zeros((4, 16 + jpeg.SYMBOLS), np.uint8), np.zeros(4, np.int64),
    )  # fmt: skip


KEPT = lookups()  # go from file to file


def decoded_by_kernel(data: np.ndarray, header: Any, window: tuple[int, ...], channels: int) -> np.ndarray | None:
    y0, x0, y1, x1 = window
    result = []
    for pattern, tables in zip(PATTERNS, (lookups(), KEPT), strict=True):  # tables of other files change nothing
        out, scratch = fenced((y1 - y0) * (x1 - x0) * channels), fenced(jpeg.room(data.size, x1 - x0))
        out[:], scratch[:] = pattern, pattern
        place = np.array([*window, y0, x0, x1 - x0, channels, header.coded_rgb])
        if header.progressive:
            made = progressive._decode(data, out, place, scratch)
        else:
            made = jpeg.decode(data, out, place, scratch, *tables)
        if not made:
            return None
        result.append(out.reshape(y1 - y0, x1 - x0, channels))
    np.testing.assert_array_equal(*result)
    return result[0]


def read_picture(content: bytes) -> None:
    """By the operators, whole and a window of it."""
    data = ndd.tensor(np.frombuffer(content, np.uint8))
    kind = [ndd.types.RGB, ndd.types.GRAY, ndd.types.ANY_DATA][len(content) % 3]
    whole = np.asarray(ndd.decoders.image(data, output_type=kind, max_pixels=1 << 18))
    height, width = (max(1, n // 2) for n in whole.shape[:2])
    part = ndd.decoders.image_slice(
        data, [height // 2, width // 2], [height, width], axes=[0, 1], normalized_anchor=False, normalized_shape=False,
        output_type=kind, max_pixels=1 << 18,
    )  # fmt: skip
    np.testing.assert_array_equal(np.asarray(part), whole[height // 2 :, width // 2 :][:height, :width])


# ---- headers of other pictures, which Python reads


@functools.cache
def others() -> list[bytes]:
    rgb = Image.open(io.BytesIO(pictures()[0]))
    result = []
    for kind, mode in (
        ("BMP", "RGB"),
        ("BMP", "P"),
        ("PPM", "RGB"),
        ("TIFF", "RGB"),
        ("TIFF", "L"),
        ("PNG", "RGB"),
        ("WEBP", "RGB"),
        ("JPEG2000", "RGB"),
    ):
        file = io.BytesIO()
        with contextlib.suppress(OSError, KeyError):  # this Pillow has no such format
            rgb.convert(mode).save(file, kind)
            result.append(file.getvalue())
    return result


def make_header(rng: random.Random) -> bytes:
    """Numbers of two and four bytes in the first hundred bytes, and in a TIFF's directory, which stands at the end."""
    data = bytearray(rng.choice(others()))
    for _ in range(rng.choice([1, 1, 2, 4])):
        size, order = rng.choice([1, 2, 4]), rng.choice(["little", "big"])
        place = (
            rng.randrange(min(100, len(data) - 4))
            if rng.random() < 0.6
            else len(data) - rng.randrange(4, min(200, len(data)))
        )
        value = int.from_bytes(data[place : place + size], order)
        data[place : place + size] = odd(rng, 8 * size, value).to_bytes(size, order)
    return cut(rng, bytes(data), [8, 12, 26, 54, 100, len(data)]) if rng.random() < 0.2 else bytes(data)


def read_header(content: bytes) -> None:
    data = fenced_copy(content)
    name = registry.format_of(data)
    if name not in ("", "jpeg", "gif", "avif") and registry.header_as(data, name) is None:
        raise LeftError("no header")
    if name == "png":
        facts = np.zeros((1, batch_headers.FACTS), np.int64)
        png.read_headers(np.array([data.ctypes.data]), np.array([data.size]), np.empty(0, np.uint8), facts)
        if facts[0, batch_headers.FORMAT]:
            header = registry.header_as(data, name)
            assert header is not None
            assert (header.height, header.width) == tuple(facts[0, batch_headers.HEIGHT : batch_headers.WIDTH + 1])
            assert (header.channels, header.orientation) == (facts[0, batch_headers.CHANNELS], 1)
    read_picture(content)


# ---- sounds


def _eight_bytes(data: np.ndarray, at: np.uint64) -> np.uint64:
    return np.uint64(int.from_bytes(data[int(at) : int(at) + 8].tobytes(), "big"))


# What has no text of its own for Python to run.
_IN_PYTHON: dict[Any, Callable[..., Any]] = {
    flac.load_bits: _eight_bytes,
    flac.leading_zeros: lambda word: 64 - int(word).bit_length(),
    flac.copy_bytes: ctypes.memmove,
}


def watched(kernels: dict[Any, Callable[..., Any]], run: Callable[[], object]) -> list[tuple[int, int]]:
    """What (bit, bits) the text of a parser reads, run by Python, where `kernels` take numbers from data."""
    seen: dict[tuple[int, int], None] = {}

    def watching(call: Callable[..., Any], field: Callable[..., tuple[int, int]]) -> Callable[..., Any]:
        def note(*args: Any) -> Any:
            seen[field(*args)] = None
            return call(*args)

        return note

    for kernel, field in kernels.items():
        kernel.interpreted_as(watching(kernel, field))
    for compiled, function in _IN_PYTHON.items():
        compiled._python = function
    try:
        with np.errstate(all="ignore"):
            run()
    finally:
        for kernel in kernels:
            kernel.interpreted_as(None)
        for compiled in _IN_PYTHON:
            compiled._python = None
    return [(int(at), int(count)) for at, count in seen if 0 < count <= 64]


def with_field(data: bytes, at: int, count: int, value: int, lowest_first: bool) -> bytes:
    """Other bits at bit `at`."""
    bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little" if lowest_first else "big")
    number = [value >> k & 1 for k in range(count)]
    number = number if lowest_first else number[::-1]
    room = bits[at : at + count]
    room[:] = number[: room.size]
    return np.packbits(bits, bitorder="little" if lowest_first else "big").tobytes()


def mutated_field(rng: random.Random, data: bytes, fields: list[tuple[int, int]], lowest_first: bool) -> bytes:
    at, count = rng.choice(fields)
    return with_field(data, at, count, odd(rng, count, rng.getrandbits(count)), lowest_first)


def tone(n: int, channels: int) -> np.ndarray:
    t = np.arange(n)[:, None] * np.array([0.05, 0.31, 0.11])[:channels]
    return 0.4 * np.sin(t) + 0.05 * np.random.default_rng(n).standard_normal((n, channels))


def sound(format: str, subtype: str, n: int = 3000, channels: int = 1, rate: int = 8000) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, tone(n, channels), rate, format=format, subtype=subtype)
    return file.getvalue()


@functools.cache
def wavs() -> list[bytes]:
    kinds = [("WAV", "PCM_U8"), ("WAV", "PCM_16"), ("WAV", "PCM_24"), ("WAV", "FLOAT"), ("WAVEX", "PCM_16")]
    return [sound(*kind, n=500, channels=1 + k % 2) for k, kind in enumerate(kinds)]


def make_wav(rng: random.Random) -> bytes:
    data = bytearray(rng.choice(wavs()))
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        place, size = rng.choice(
            [(4, 4), (16, 4), (20, 2), (22, 2), (24, 4), (28, 4), (32, 2), (34, 2), (36, 4), (40, 4), (44, 4), (64, 4)]
        )
        value = int.from_bytes(data[place : place + size], "little")
        data[place : place + size] = odd(rng, 8 * size, value).to_bytes(size, "little")
    if rng.random() < 0.2:  # another chunk before
        name = rng.choice([b"LIST", b"fmt ", b"data", b"\0\0\0\0"])
        data[12:12] = name + odd(rng, 32, 4).to_bytes(4, "little") + bytes(rng.choice([0, 4, 5]))
    return cut(rng, bytes(data), [12, 20, 36, 44, len(data)]) if rng.random() < 0.2 else bytes(data)


_WATCHED_FLAC = {
    flac._unsigned: lambda data, at, count: (at, count),
    flac._signed: lambda data, at, count: (at, count),
}


@functools.cache
def flacs() -> list[tuple[bytes, list[tuple[int, int]]]]:
    """Files, and the fields of their frames, with those of the header."""
    result = []
    for subtype, channels in (("PCM_16", 1), ("PCM_24", 2), ("PCM_S8", 1)):
        file = sound("FLAC", subtype, 5000, channels)
        fields = flac_fields(file)
        header = [
            (8 * place, 8 * size)
            for place, size in ((4, 1), (5, 3), (8, 2), (10, 2), (18, 4), (20, 1), (21, 5), (42, 1), (43, 3))
        ]
        result.append((file, header * max(1, len(fields) // 40) + fields))
    return result


def flac_fields(file: bytes) -> list[tuple[int, int]]:
    facts = np.zeros((1, sound_batch.FACTS), np.int64)
    data = np.frombuffer(file, np.uint8)
    sound_batch.headers(np.array([[data.ctypes.data, data.size]]), np.zeros(1), facts)
    begin, length, bits, channels = facts[
        0, [sound_batch.BEGIN, sound_batch.FRAMES, sound_batch.BITS, sound_batch.CHANNELS]
    ].tolist()
    words = np.zeros(len(file) // 8 + 4, np.uint64)
    case = data.ctypes.data, words, begin, len(file), length, bits, np.zeros((channels, flac.LINE), np.int64)
    out = np.zeros((length, channels), np.int32)
    return watched(_WATCHED_FLAC, lambda: flac.frames.in_python()(*case, out))


def number_of_bits(rng: random.Random, count: int) -> str:
    return format(odd(rng, count, 1), f"0{count}b")


def flac_subframe(rng: random.Random, bits: int) -> str:
    """Constant, plain, fixed or predicted numbers, with any order, precision, shift, and partitions, up to anywhere."""
    kind = rng.choice([0, 0, 0, 0, 1, *range(8, 13), *range(32, 64, 6), 63, 63, 63, 63])
    order = kind - 8 if 8 <= kind < 32 else kind - 31 if kind >= 32 else 0
    text = f"0{kind:06b}" + rng.choice(["0", "0", "1" + "0" * rng.randrange(4) + "1"])
    text += "".join(number_of_bits(rng, bits) for _ in range(1 if kind == 0 else order))
    if kind >= 32:
        precision = rng.choice([0, 1, 13, 14, 14, 15])
        text += f"{precision:04b}{rng.choice([0, 5, 15, 16, 31]):05b}"
        if rng.random() < 0.6:  # the file may end here
            return text
        text += "".join(
            number_of_bits(rng, precision + 1) for _ in range(rng.choice([order, order, rng.randint(0, order)]))
        )
    if kind >= 8:
        text += f"{rng.choice([0, 0, 1, 1, 2]):02b}{rng.choice([0, 0, 1, 4, 8, 15]):04b}"
        text += "".join(number_of_bits(rng, rng.choice([4, 5, 9])) for _ in range(rng.choice([0, 0, 3, 40])))
    return text


def make_flac(rng: random.Random) -> bytes:
    if rng.random() < 0.5:  # one frame that ends with the file
        channels, size, bits = rng.choice([1, 2, 8, 8]), 4096, rng.choice([16, 24])
        info = (size << 112 | size << 96 | 16000 << 44 | channels - 1 << 41 | bits - 1 << 36 | size).to_bytes(18, "big")
        head = bytes([0xFF, 0xF8, 0xC8, channels - 1 << 4, 0, 0])
        text = "".join(flac_subframe(rng, bits) for _ in range(rng.choice([1, 1, rng.randint(1, channels)])))
        body = int("1" + text + "0" * (-len(text) % 8), 2).to_bytes((len(text) + 7) // 8 + 1, "big")[1:]
        return b"fLaC\x80\0\0\x22" + info + bytes(16) + head + body
    file, fields = rng.choice(flacs())
    for _ in range(rng.choice([0, 1, 1, 2])):
        file = mutated_field(rng, file, fields, lowest_first=False)
    return (
        cut(rng, file, [42, 46, *(at // 8 for at, _ in rng.sample(fields, 5)), len(file)])
        if rng.random() < 0.2
        else file
    )


@functools.cache
def vorbis_file(rate: int, channels: int) -> list[tuple[bytes, int, int]]:
    """Packets of an Ogg file, each with its position and the flags of its page."""
    data, at, packet, result = sound("OGG", "VORBIS", 2000, channels, rate), 0, b"", []
    while at < len(data):
        count = data[at + 26]
        place = at + 27 + count
        (position,) = struct.unpack_from("<q", data, at + 6)
        for size in data[at + 27 : at + 27 + count]:
            packet += data[place : place + size]
            place += size
            if size < 255:
                result.append((packet, -1, data[at + 5]))
                packet = b""
        if not packet:
            result[-1] = (result[-1][0], position, result[-1][2])
        at = place
    return result


@functools.cache
def setup_fields(rate: int, channels: int) -> list[tuple[int, int]]:
    header = vorbis_file(rate, channels)[2][0]
    data = np.frombuffer(header + bytes(8), np.uint8)
    table, values = np.zeros(1 << 18, np.int32), np.zeros(1 << 18, np.float32)
    read = lambda: vorbis_setup.read_setup._by_python()(data, len(header), channels, table, values)  # noqa: E731
    return watched({vorbis_setup._bits: lambda data, at, count: (at, count)}, read)


def paged(rng: random.Random, packets: list[tuple[bytes, int, int]]) -> bytes:
    """Ogg pages with right checksums, mostly as an encoder makes them: three packets of headers in a page each."""
    result, number, strange = [], 0, rng.random() < 0.3
    for k, (packet, position, _) in enumerate(packets):
        lacing = [255] * (len(packet) // 255) + [len(packet) % 255]
        flags = (2 if k == 0 else 0) | (4 if k + 1 == len(packets) else 0)
        if strange and rng.random() < 0.2:
            lacing[rng.randrange(len(lacing))] = odd(rng, 8, 255)
        while lacing:
            part, lacing = lacing[:255], lacing[255:]
            body, packet = packet[: sum(part)], packet[sum(part) :]
            where = position if not lacing else -1
            head = bytearray(struct.pack("<4sBBqIIIB", b"OggS", 0, flags, where, 7, number, 0, len(part)) + bytes(part))
            if strange and rng.random() < 0.1:
                place, size = rng.choice([(4, 1), (5, 1), (6, 8), (14, 4), (18, 4), (26, 1)])
                head[place : place + size] = odd(rng, 8 * size, 1).to_bytes(size, "little")
            result.append(head + body)
            number, flags = number + 1, 1 if lacing else 0
    for page in result:
        with contextlib.suppress(IndexError):
            page[22:26] = int(ogg._crc(np.frombuffer(bytes(page) + bytes(40), np.uint8), 0, len(page))).to_bytes(
                4, "little"
            )
    return b"".join(map(bytes, result))


def make_vorbis(rng: random.Random) -> bytes:
    which = rng.choice([(8000, 1), (44100, 2)])
    packets = list(vorbis_file(*which))
    for _ in range(rng.choice([0, 1, 1, 1, 2])):
        k = rng.choice([0, 1, 2, 2, 2, 2, rng.randrange(3, len(packets))])
        packet, position, flags = packets[k]
        if k == 2:
            packet = mutated_field(rng, packet, setup_fields(*which), lowest_first=True)
        elif k == 0:
            place, size = rng.choice([(7, 4), (11, 1), (12, 4), (28, 1), (29, 1)])
            packet = with_field(packet, 8 * place, 8 * size, odd(rng, 8 * size, packet[place]), True)
        elif k == 1:
            place = rng.choice([7, 11, 30, len(packet) - 5])
            packet = with_field(packet, 8 * place, 32, odd(rng, 32, 1), True)
        elif len(packet) > 1:
            packet = mutated_field(rng, packet, [(8 * rng.randrange(len(packet)), 8), (0, 1), (1, 2), (3, 8)], True)
            packet = packet[: rng.choice([len(packet), len(packet), rng.randrange(len(packet))])]
        if rng.random() < 0.1:
            position = odd(rng, 63, position)
        packets[k] = packet, position, flags
    if rng.random() < 0.1:
        del packets[rng.randrange(len(packets))]
    file = paged(rng, packets)
    return cut(rng, file, [28, 58, 100, len(file) - 1, len(file)]) if rng.random() < 0.1 else file


_WANTED = [
    _sound_file.Wanted(np.dtype(np.float32), False, 0.0, 50.0), _sound_file.Wanted(np.dtype(np.int16), True, 0.0, 50.0),
    _sound_file.Wanted(np.dtype(np.float32), True, 16000.0, 50.0), _sound_file.Wanted(np.dtype(np.int32), False, 11025.0, 10.0),
    _sound_file.Wanted(np.dtype(np.float32), False, 0.0, 50.0, 0.05, 0.1),
]  # fmt: skip


def read_sound(content: bytes) -> None:
    """By our own decoders, in memory between fences; by the operator, which asks others too, every 16th."""
    data, wanted = fenced_copy(content), _WANTED[len(content) % len(_WANTED)]
    if sum(content[-64:]) % 16 == 0:
        more: Any = {"sample_rate": 16000.0} if len(content) % 2 else {}
        ndd.decoders.audio(ndd.tensor(np.frombuffer(content, np.uint8)), **more)[0].evaluate()
    result = [_decoded(data, wanted, pattern) for pattern in PATTERNS]
    if result[0] is None:
        raise LeftError("left to libsndfile")
    assert result[0].tobytes() == result[1].tobytes(), "the samples are those of memory that was not written"


def _decoded(data: np.ndarray, wanted: Any, pattern: int) -> np.ndarray | None:
    def memory(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if size > 1 << 27:
            raise MemoryError(f"{size} bytes for a file of {data.size}")
        room = fenced(size) if size < 1 << 22 else np.empty(size, np.uint8)
        room[:] = pattern
        return room.view(dtype).reshape(shape)

    shape = lambda extents: extents if isinstance(extents, tuple) else (extents,)  # noqa: E731
    kept = _sound_file.host_empty, _sound_file._connected, _sound_file.joined
    _sound_file.host_empty = lambda extents, dtype: memory(shape(extents), dtype)  # type: ignore[assignment]
    _sound_file._connected = lambda: False  # type: ignore[assignment]
    if os.environ.get("NUMBA_BOUNDSCHECK") == "1":
        # One after the other by Python, which is told of an index that is out of bounds; who joins a team is not. Without these
        # checks the loops of every day are called: to compile both takes 12 s.
        _sound_file.joined = lambda loop: functools.partial(_one_by_one, loop)  # type: ignore[assignment]
    try:
        duration = np.array([np.nan if wanted.duration is None else wanted.duration])
        return _sound_file.decode_several([data], wanted, np.array([wanted.start]), duration).parts()[0]
    finally:
        _sound_file.host_empty, _sound_file._connected, _sound_file.joined = kept


def _one_by_one(loop: Any, team: Any, helpers: int, counter: Any, limit: int, arguments: tuple[Any, ...]) -> bool:
    order, fields = arguments
    for i in order[int(counter[0]) :].tolist():
        loop.kernel(*of_sample.in_python()(fields, i))
    counter[0] = len(order)
    return True


# ---- packets of videos


def make_units(rng: random.Random) -> bytes:
    """Units of H.264 and HEVC behind their lengths, of which some are wrong."""
    result = b""
    for _ in range(rng.randint(0, 4)):
        unit = rng.randbytes(rng.choice([0, 1, 2, 40]))
        length = len(unit) if rng.random() < 0.7 else odd(rng, 32, len(unit))
        result += struct.pack(">I", length) + unit
    return result[: rng.choice([len(result), rng.randint(0, len(result))])]


def read_units(content: bytes) -> None:
    for codec in (nvdec_calls.H264, nvdec_calls.HEVC):
        data = fenced_copy(b"head" + content)
        size, _ = nvdec_calls.with_start_codes(data, 0, 4, data.size, codec)
        assert 0 <= size <= data.size
    if len(content) < 4:
        raise LeftError("no unit")


PARSERS = {
    "JPEG by the kernel": Parser(make_jpeg, read_jpeg),
    "JPEG by the operators": Parser(make_jpeg, read_picture),
    "headers of pictures": Parser(make_header, read_header),
    "WAV": Parser(make_wav, read_sound),
    "FLAC": Parser(make_flac, read_sound),
    "Vorbis": Parser(make_vorbis, read_sound),
    "units of video": Parser(make_units, read_units),
}
