"""PNG: every colour type and depth against the oracle; chunks around the pixels change none of them."""

from __future__ import annotations

import itertools
import struct
import zlib

import cv2
import numpy as np
import pytest
from encoded import KINDS
from picture_writers import png
from picture_writers.png import CHANNELS, DEPTHS, GRAY, GRAY_ALPHA, PALETTE, RGB, RGBA, Chunk
from PIL import ImageCms

import ndd

KINDS_OF_FILES = [(c, d, i) for c in CHANNELS for d in DEPTHS[c] for i in (False, True)]
COLOURS = np.random.default_rng(1).integers(0, 256, (256, 3), np.uint8)
SRGB = (0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06)


def file(colour, depth, interlaced, before=(), after=()):
    rng = np.random.default_rng(depth)
    pixels = rng.integers(0, 1 << depth, (19, 23, CHANNELS[colour])).astype(np.uint16)
    palette = COLOURS[: 1 << depth] if colour == PALETTE else None
    return png.png(pixels, colour, depth, interlaced=interlaced, palette=palette, before=before, after=after)


def pixels(data, kind, dtype=ndd.uint8):
    return np.asarray(ndd.decoders.image(data, output_type=getattr(ndd.types, kind), dtype=dtype))


def chunks(colour, depth):
    """What may stand around pixels of a kind, by name."""
    numbers = 1 if colour in (GRAY, GRAY_ALPHA) else 3
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    background = b"\1" if colour == PALETTE else struct.pack(f">{numbers}H", *[1] * numbers)
    result = {
        "gAMA": [png.gamma(0.45455)], "gAMA of 1": [png.gamma(1)], "gAMA of 0": [Chunk(b"gAMA", bytes(4))], "sRGB": [png.srgb()],
        "gAMA and sRGB": [png.gamma(0.45455), png.srgb()], "cHRM": [png.chromaticities(*SRGB)],
        "gAMA and cHRM": [png.gamma(0.5), png.chromaticities(0.31, 0.33, 0.7, 0.29, 0.17, 0.79, 0.13, 0.05)],
        "iCCP": [png.profile(profile)], "sBIT": [Chunk(b"sBIT", bytes([1] * {PALETTE: 3}.get(colour, CHANNELS[colour])))],
        "bKGD": [Chunk(b"bKGD", background)], "text": [Chunk(b"tEXt", b"a\0b"), Chunk(b"zTXt", b"a\0\0" + zlib.compress(b"b"))],
        "cICP": [Chunk(b"cICP", b"\1\x0d\0\1")], "wrong checksum": [Chunk(b"gAMA", b"\0")], "pHYs": [Chunk(b"pHYs", bytes(9))],
    }  # fmt: skip
    if colour in (GRAY, RGB, PALETTE):
        seen = bytes([0, 128]) if colour == PALETTE else struct.pack(f">{numbers}H", *[1] * numbers)
        result["tRNS"] = [Chunk(b"tRNS", seen)]
        result["tRNS, bKGD and gAMA"] = [png.gamma(0.45455), *result["bKGD"], *result["tRNS"]]
    return result


@pytest.mark.parametrize(("colour", "depth", "interlaced"), KINDS_OF_FILES)
@pytest.mark.drawn(1)
def test_chunks_change_no_pixel(colour, depth, interlaced):
    """With gAMA or sRGB libpng mixes gray in linear light, and DALI with it: up to 68 of 255 off."""
    dtype = ndd.uint16 if depth == 16 else ndd.uint8
    plain = {kind: pixels(file(colour, depth, interlaced), kind, dtype) for kind in KINDS}
    for name, around in chunks(colour, depth).items():
        data = file(colour, depth, interlaced, before=around)
        for kind in KINDS:
            np.testing.assert_array_equal(pixels(data, kind, dtype), plain[kind], err_msg=f"{name} {kind}")
            peeked = ndd.peek_image_shape(data, image_type=getattr(ndd.types, kind))
            assert tuple(np.asarray(peeked)) == plain[kind].shape


@pytest.mark.oracle
@pytest.mark.parametrize(("colour", "depth", "interlaced"), KINDS_OF_FILES)
@pytest.mark.drawn(2)
def test_against_the_oracle(dali, colour, depth, interlaced):
    for seen, kind, dtype in itertools.product((False, True), KINDS, ("uint8", "uint16")):
        if colour == GRAY_ALPHA and kind == "ANY_DATA":  # DALI refuses it
            continue
        data = file(colour, depth, interlaced, before=chunks(colour, depth).get("tRNS", []) if seen else [])
        with dali.EvalMode.sync_cpu:
            number = int(getattr(ndd.types, kind))
            theirs = dali.decoders.image(dali.tensor(data), output_type=number, dtype=getattr(dali, dtype))
            expected = np.asarray(theirs).astype(int)
        result = pixels(data, kind, getattr(ndd, dtype)).astype(int)
        assert result.shape == expected.shape
        assert np.abs(result - expected).max() <= (kind == "YCbCr"), (kind, dtype)


@pytest.mark.parametrize("depth", [8, 16])
def test_gray_with_alpha_keeps_both(depth):
    rng = np.random.default_rng(3)
    stored = rng.integers(0, 1 << depth, (5, 7, 2)).astype(np.uint16 if depth == 16 else np.uint8)
    dtype = ndd.uint16 if depth == 16 else ndd.uint8
    for interlaced in (False, True):
        data = png.png(stored, GRAY_ALPHA, depth, interlaced=interlaced)
        np.testing.assert_array_equal(pixels(data, "ANY_DATA", dtype), stored)
        np.testing.assert_array_equal(pixels(data, "GRAY", dtype), stored[..., :1])
        assert np.asarray(ndd.peek_image_shape(data, image_type=ndd.types.ANY_DATA)).tolist() == [5, 7, 2]


def test_of_an_animation_the_picture_in_front():
    rgb = np.random.default_rng(4).integers(0, 256, (6, 8, 3), np.uint8)
    frame = struct.pack(">IIIIIHHBB", 1, 8, 6, 0, 0, 1, 10, 0, 0)
    moving = [Chunk(b"acTL", struct.pack(">II", 1, 0))]
    behind = [Chunk(b"fcTL", frame), Chunk(b"fdAT", struct.pack(">I", 2) + zlib.compress(bytes(6 * 25)))]
    np.testing.assert_array_equal(pixels(png.png(rgb, RGB, before=moving, after=behind), "RGB"), rgb)


def test_a_damaged_chunk_that_pixels_need_not_is_no_error():
    """Its checksum is not looked at; that of the others is, but for IEND."""
    rgba = np.random.default_rng(5).integers(0, 256, (6, 8, 4), np.uint8)
    data = png.png(rgba, RGBA, before=[png.gamma(0.5)], after=[Chunk(b"tEXt", b"a\0b")]).copy()
    for name, fails in ((b"gAMA", False), (b"tEXt", False), (b"IDAT", True), (b"IEND", False)):
        damaged = data.copy()
        damaged[data.tobytes().index(name) + 4] ^= 1  # of IEND, its checksum
        if fails:
            with pytest.raises(RuntimeError, match="Failed to decode the image of 6x8"):
                pixels(damaged, "RGB")
        else:
            np.testing.assert_array_equal(pixels(damaged, "ANY_DATA"), rgba)


def test_a_palette_that_is_missing():
    """Pillow alone reads such a file: as black."""
    index = np.random.default_rng(6).integers(0, 4, (6, 8, 1), np.uint8)
    data = png.png(index, png.PALETTE, palette=np.full((4, 3), 9, np.uint8)).tobytes()
    for name in (b"pLTE", b"fdAT"):
        chunk = data.index(b"PLTE")
        body = name + data[chunk + 4 : chunk + 16]
        other = data[:chunk] + body + struct.pack(">I", zlib.crc32(body)) + data[chunk + 20 :]
        assert cv2.imdecode(np.frombuffer(other, np.uint8), cv2.IMREAD_COLOR) is None
        with pytest.raises(RuntimeError, match="image: sample 0: Failed to decode the image of 6x8"):
            pixels(np.frombuffer(other, np.uint8), "RGB")


@pytest.mark.parametrize("length", [0, 1, 12, 2**31, 2**32 - 12, 2**32 - 1])
@pytest.mark.parametrize("name", [b"eXIf", b"tEXt", b"IDAT", b"PLTE"])
def test_lengths_that_lie(name, length):
    data = file(RGB, 8, False).tobytes()
    lying = data[:33] + struct.pack(">I4s", length, name) + data[33:]
    with pytest.raises(RuntimeError, match="Failed to decode the image of 19x23"):
        pixels(np.frombuffer(lying, np.uint8), "RGB")
