"""PNGs of a batch, which compiled code decodes with libdeflate and libpng: every kind, in every output type, gives what it
gives alone."""

from __future__ import annotations

import struct
import zlib
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from encoded import KINDS
from picture_writers import png
from picture_writers.png import CHANNELS, DEPTHS, GRAY, PALETTE, RGB, RGBA, Chunk
from pictures_alone import alone, check_batch, check_damage, check_windows

import ndd
from ndd._compiled.background import background
from ndd.decoders import picture_batch
from ndd.decoders.png import backend, libdeflate, libpng, rows

COLOURS = np.random.default_rng(1).integers(0, 256, (256, 3), np.uint8)
AROUND = {
    "plain": [],
    "gamma": [png.gamma(0.5), png.srgb(), Chunk(b"tEXt", b"a\0b")],
    "turned": [png.orientation(6)],
    "unknown": [Chunk(b"ABCD", b"what is this")],
}


@pytest.fixture(autouse=True, params=["libdeflate", "libpng"])
def _library(request, monkeypatch):
    monkeypatch.setattr(background, "allowed", False)
    if libpng.library() is None:
        pytest.skip("no wheel here has libpng")
    if request.param == "libpng":
        monkeypatch.setattr(backend.libdeflate, "available", lambda: False)
    elif not libdeflate.available():
        pytest.skip("no wheel here has libdeflate")


def file(colour, depth, interlaced=False, before=(), size=(19, 23)):
    pixels = np.random.default_rng(depth).integers(0, 1 << depth, (*size, CHANNELS[colour])).astype(np.uint16)
    palette = COLOURS[: 1 << depth] if colour == PALETTE else None
    return png.png(pixels, colour, depth, interlaced=interlaced, palette=palette, before=before)


def files():
    every = [(c, d, i) for c in CHANNELS for d in DEPTHS[c] for i in (False, True)]
    actual = [file(*kind, size=(5 + 3 * k, 30 - k)) for k, kind in enumerate(every)]
    return actual + [
        file(c, 8, before=AROUND[name]) for c in (RGB, RGBA, PALETTE) for name in AROUND if name != "unknown"
    ]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.drawn(2)
def test_every_kind_as_alone(kind, threads, monkeypatch):
    data = files()
    _, by_python = check_batch(monkeypatch, data, threads, output_type=getattr(ndd.types, kind))
    rare = [item for item in data if item[24] == 16 or b"eXIf" in item.tobytes()]
    assert by_python == (len(data) if kind == "YCbCr" else len(rare))


@pytest.mark.parametrize("kind", ["RGB", "BGR", "GRAY", "ANY_DATA"])
def test_windows_as_alone(kind, monkeypatch):
    data = [file(c, 8, size=(20 + k, 30 - k)) for k, c in enumerate(CHANNELS)]
    check_windows(monkeypatch, data, [(3, 2, 9, 11)], output_type=getattr(ndd.types, kind))


def test_large_ones_among_jpegs():
    """One block of memory has the pixels of both formats."""
    from encoded import encode, photo

    rgb = np.ascontiguousarray(photo(300, 200)[..., :3])
    data = [encode(rgb, "JPEG"), encode(rgb, "PNG"), encode(photo(100, 90), "PNG"), encode(rgb[:50], "JPEG")]
    actual: Any = ndd.decoders.image(ndd.batch(data))
    for item, image in zip(data, actual.tensors, strict=True):
        np.testing.assert_array_equal(np.asarray(image), alone(item))


def filtered(colour, size, seed, chunks=1, more=b"", filters=5, wrong_sum=False, interlaced=False):
    """A file whose rows have any filters, made of noise."""
    rng, stored = np.random.default_rng(seed), b""
    for part in png.parts(np.empty(size), interlaced):
        rows = rng.integers(0, 256, (len(part), part.shape[1] * CHANNELS[colour] + 1), np.uint8)
        rows[:, 0] = rng.integers(0, filters, len(part))
        stored += rows.tobytes()
    packed = zlib.compress(stored, 1)
    packed = packed[:-1] + bytes([packed[-1] ^ wrong_sum]) + more
    cuts = np.linspace(0, len(packed), chunks + 1).astype(int)
    header = Chunk(b"IHDR", struct.pack(">IIBBBBB", size[1], size[0], 8, colour, 0, 0, interlaced))
    body = [Chunk(b"IDAT", packed[a:b]) for a, b in pairwise(cuts)]
    return np.frombuffer(png.SIGNATURE + b"".join(c.packed() for c in (header, *body, Chunk(b"IEND"))), np.uint8)


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("kind", ["RGB", "BGR", "GRAY", "ANY_DATA"])
def test_every_filter_in_any_number_of_chunks(kind, interlaced, monkeypatch):
    sizes = (1, 1), (9, 1), (1, 17), (40, 33), (64, 5)
    data = [
        filtered(c, size, 7 + k, chunks=1 + k, interlaced=interlaced)
        for c in CHANNELS if c != PALETTE for k, size in enumerate(sizes)
    ]  # fmt: skip
    arguments = {"output_type": getattr(ndd.types, kind)}
    images, by_python = check_batch(monkeypatch, data, 2, **arguments)
    assert not by_python
    large = [item for item, image in zip(data, images, strict=True) if len(image) == 40]
    check_windows(monkeypatch, large, [(31, 2, 9, 11)], **arguments)


def test_the_plainest_files_need_no_libpng(request):
    if "libpng" in request.node.callspec.id:
        pytest.skip("needs libdeflate")
    decompressor = libdeflate.alloc.in_python()()
    try:
        for colour, depth, interlaced in ((c, d, i) for c in CHANNELS for d in DEPTHS[c] for i in (False, True)):
            data, channels = file(colour, depth, interlaced), 3 if colour == PALETTE else CHANNELS[colour]
            filters = 3 + 3 + 2 + 5 + 5 + 10 + 9 if interlaced else 19  # one for each row of each pass
            scratch = np.empty(len(data) + 19 * 23 * channels + filters, np.uint8)
            out = np.empty(19 * 23 * channels, np.uint8)
            plain = colour != PALETTE and depth == 8
            assert rows.read_rows(data, 19, 23, channels, out, scratch, decompressor) == plain
            assert not plain or not rows.read_rows(data, 19, 23, channels, out[1:], scratch, decompressor)
            assert not plain or not rows.read_rows(data, 19, 23, channels, out, scratch[1:], decompressor)
    finally:
        libdeflate.free.in_python()(decompressor)


@pytest.mark.drawn(1)
def test_interlaced_files_of_any_size():
    for colour in (GRAY, RGB, RGBA):
        data = [filtered(colour, (k // 9 + 1, k % 9 + 1), k, interlaced=True) for k in range(81)]
        result: Any = ndd.decoders.image(ndd.batch(data), output_type=ndd.types.ANY_DATA)
        for item, image in zip(data, result.tensors, strict=True):
            np.testing.assert_array_equal(np.asarray(image), alone(item, output_type=ndd.types.ANY_DATA))


def damaged_files():
    whole = file(RGB, 8, before=[png.gamma(0.5)])
    text = whole.tobytes()
    idat, iend = text.index(b"IDAT"), text.index(b"IEND")
    yield from (whole[:k] for k in (0, 7, 20, 32, 33, 40, idat, idat + 20, iend, iend + 4, len(text) - 1))
    for k in (9, 17, 21, 24, 25, 26, 28, 30, idat - 2, idat + 5, idat + 30, iend - 6, iend - 1, iend + 5):
        changed = whole.copy()
        changed[k] ^= 0x41
        yield changed
    for name, body in ((b"ABCD", b"x"), (b"IHDR", text[16:29]), (b"PLTE", b"\1\2\3\4"), (b"IDAT", b"behind the end")):
        yield np.frombuffer(text[: iend - 4] + Chunk(name, body).packed() + text[iend - 4 :], np.uint8)
    yield filtered(RGB, (9, 7), 1, filters=256)
    yield filtered(RGB, (9, 7), 1, wrong_sum=True)
    yield filtered(RGB, (9, 7), 1, more=b"behind the end", chunks=3)
    for interlaced in (0, 1):
        header = struct.pack(">IIBBBBB", 23, 19, 8, 2, 0, 0, interlaced)
        chunks = Chunk(b"IHDR", header), Chunk(b"IDAT", zlib.compress(bytes(300))), Chunk(b"IEND")
        yield np.frombuffer(png.SIGNATURE + b"".join(c.packed() for c in chunks), np.uint8)
    yield file(RGB, 8, True)[:-30]


def test_damage_is_what_it_is_alone():
    data = [item for bad in damaged_files() for item in (bad, file(PALETTE, 4))]
    check_damage(data, 20)


def test_a_few_bytes_do_not_claim_gigabytes(monkeypatch):
    """A header of 16,000 x 16,000 with no pixels behind it: no memory is asked for before libpng has seen them."""
    lies = file(RGB, 8).copy()
    lies[16:24] = np.frombuffer(struct.pack(">II", 16000, 16000), np.uint8)
    lies[29:33] = np.frombuffer(struct.pack(">I", zlib.crc32(lies[12:29].tobytes())), np.uint8)
    asked, room = [], picture_batch.host_empty
    monkeypatch.setattr(picture_batch, "host_empty", lambda shape, dtype: asked.append(shape[0]) or room(shape, dtype))
    result: Any = ndd.decoders.image(ndd.batch([lies, file(RGB, 8), file(RGB, 8)]), on_error="skip")
    assert result.batch_size == 2
    assert max(asked) < 10_000
