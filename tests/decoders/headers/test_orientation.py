"""Turned pictures: every format, kind of pixels, window and element type gives the turned pixels of the picture as it is
stored, and never a byte of memory that nobody wrote."""

from __future__ import annotations

import ctypes
import itertools
import sys

import numpy as np
import pytest
from encoded import KINDS, banded_tiff, encode, photo
from picture_writers import avif, png, webp
from PIL import Image

import ndd
from ndd._tensor.memory import host_empty
from ndd.decoders import pixels
from ndd.decoders.backends import libwebp, opencv, pillow, simplejpeg
from ndd.decoders.headers import avif as _avif
from ndd.decoders.jpeg import backend as _jpeg
from ndd.decoders.nvimgcodec import python_api

PHOTO = photo(24, 31, 7)
RGB, GRAY, TWO = (np.ascontiguousarray(PHOTO[..., c]) for c in (slice(3), slice(1), slice(2)))
DEEP = PHOTO.astype(np.uint16) * 257 ^ 0x0531
PALETTE = np.random.default_rng(2).integers(0, 256, (16, 3), np.uint8)


def of_png(pixels, colour, depth=8, **arguments):
    return lambda o: png.png(pixels, colour, depth, before=[png.orientation(o)], **arguments)


def of_webp(pixels, **options):
    chunks = [c for c in webp.chunks(encode(pixels, "WEBP", **options)) if c.name != b"VP8X"]
    flags = webp.EXIF | (webp.ALPHA if pixels.shape[2] == 4 else 0)
    height, width = pixels.shape[:2]
    return lambda o: webp.riff([webp.extended(width, height, flags), *chunks, webp.Chunk(b"EXIF", png.exif(o, "<"))])


TURNS = {
    1: [], 2: [avif.imir(1)], 3: [avif.irot(2)], 4: [avif.imir(0)], 5: [avif.irot(1), avif.imir(0)], 6: [avif.irot(3)],
    7: [avif.irot(3), avif.imir(0)], 8: [avif.irot(1)],
}  # fmt: skip


def of_avif(pixels):
    stored = encode(pixels, "AVIF", quality=90)
    return lambda o: avif.avif(stored, TURNS[o])


def of_tiff(pixels, **arguments):
    return lambda o: banded_tiff(pixels, orientation=o, **arguments)


# What makes a file of an orientation, by name; and what the pixels are, where these are kept exactly.
FILES = {
    "rgba.png": (of_png(PHOTO, png.RGBA), PHOTO),
    "rgba_16.png": (of_png(DEEP, png.RGBA, 16), DEEP),
    "rgba_interlaced.png": (of_png(PHOTO, png.RGBA, interlaced=True), PHOTO),
    "rgb.png": (of_png(RGB, png.RGB), RGB),
    "rgb_16.png": (of_png(DEEP[..., :3], png.RGB, 16), DEEP[..., :3]),
    "gray.png": (of_png(GRAY, png.GRAY), GRAY),
    "gray_16.png": (of_png(DEEP[..., :1], png.GRAY, 16), DEEP[..., :1]),
    "gray_alpha.png": (of_png(TWO, png.GRAY_ALPHA), TWO),
    "palette.png": (of_png(GRAY >> 4, png.PALETTE, 4, palette=PALETTE), PALETTE[GRAY[..., 0] >> 4]),
    "rgba.webp": (of_webp(PHOTO, lossless=True, exact=True), PHOTO),
    "rgb.webp": (of_webp(RGB, lossless=True), RGB),
    "lossy.webp": (of_webp(RGB), None),
    "lossy_rgba.webp": (of_webp(PHOTO), None),
    "rgb.tif": (of_tiff(RGB, colours=2), RGB),
    "rgb_16.tif": (of_tiff(DEEP[..., :3], colours=2), DEEP[..., :3]),
    "rgba.tif": (of_tiff(PHOTO, colours=2, extra=2), PHOTO),
    "rgba_16.tif": (of_tiff(DEEP, colours=2, extra=2), DEEP),
    "planes.tif": (of_tiff(PHOTO, colours=2, extra=2, planes=True), PHOTO),
    "gray.tif": (of_tiff(GRAY), GRAY),
    "rgb.jpg": (lambda o: encode(RGB, "JPEG", orientation=o), None),
    "gray.jpg": (lambda o: encode(GRAY[..., 0], "JPEG", orientation=o), None),
    "cmyk.jpg": (lambda o: encode(PHOTO, "JPEG", mode="CMYK", orientation=o), None),
}
Image.init()
if "AVIF" in Image.SAVE:
    FILES |= {"rgb.avif": (of_avif(RGB), None), "rgba.avif": (lambda o: encode(PHOTO, "AVIF", orientation=o), None)}

WINDOWS = {
    "image": {},
    "image_crop": {"crop": [9, 13], "crop_pos_x": 0.25, "crop_pos_y": 1},
    "image_slice": {"start": [2, 5], "end": [17, 12]},  # x, y
}


def turned(pixels, orientation):
    """By the definition: where the stored rows and columns 0 are seen."""
    across = pixels.swapaxes(0, 1)
    return {
        1: pixels, 2: pixels[:, ::-1], 3: pixels[::-1, ::-1], 4: pixels[::-1], 5: across, 6: across[:, ::-1],
        7: across[::-1, ::-1], 8: across[::-1],
    }[orientation]  # fmt: skip


def seen(pixels, name):
    """What a decoder of that name leaves of a picture."""
    if name == "image_slice":
        return pixels[5:12, 2:17]
    if name == "image_crop":
        y, x = (int(np.floor(p * (e - s) + 0.5)) for p, e, s in zip((1, 0.25), pixels.shape[:2], (9, 13), strict=True))
        return pixels[y : y + 9, x : x + 13]
    return pixels


def decoded(data, name="image", **arguments):
    return np.asarray(getattr(ndd.decoders, name)(ndd.tensor(data), **WINDOWS[name], **arguments))


def same(result, expected, levels):
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    full = 1 if result.dtype.kind == "f" else np.iinfo(result.dtype).max
    assert np.abs(result.astype(float) - expected).max() <= levels * full / 255


@pytest.mark.drawn(1)
@pytest.mark.parametrize("file", FILES)
def test_turned_pictures(file):
    make, pixels = FILES[file]
    calls = [
        *itertools.product(KINDS, [ndd.uint8]),
        ("ANY_DATA", ndd.uint16),
        ("RGB", ndd.float32),
        ("GRAY", ndd.uint16),
    ]
    for kind, dtype in calls:
        arguments = {"output_type": getattr(ndd.types, kind), "dtype": dtype}
        stored = decoded(make(1), **arguments)
        if kind == "ANY_DATA" and pixels is not None and stored.dtype == pixels.dtype:
            np.testing.assert_array_equal(stored, pixels)
        for orientation in range(1, 9):
            data, upright = make(orientation), turned(stored, orientation)
            levels = int(kind == "GRAY" and file.endswith(".tif"))  # DALI mixes gray of turned ones in other numbers
            if file == "cmyk.jpg" and kind != "ANY_DATA" and orientation != 1:
                levels = 3  # OpenCV makes the colours of turned ones, as in DALI
            for name in WINDOWS:
                same(decoded(data, name, **arguments), seen(upright, name), levels)
            same(decoded(data, adjust_orientation=False, **arguments), stored, levels)
            peeked = ndd.peek_image_shape(data, image_type=arguments["output_type"])
            assert tuple(np.asarray(peeked)) == upright.shape


M_PERTURB = -6  # of glibc's mallopt: what fresh memory is filled with


@pytest.fixture
def fresh_memory(monkeypatch):
    """Sets what memory holds that nobody has written: malloc's, and what is kept here to be used again."""
    if not sys.platform.startswith("linux") or not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"):
        pytest.skip("fills memory as glibc does")
    mallopt, pattern = ctypes.CDLL(None).mallopt, [0]

    def filled(shape, dtype):
        array = host_empty(shape, dtype)
        array.view(np.uint8).fill(pattern[0])
        return array

    def set_to(value):
        pattern[0] = value
        mallopt(M_PERTURB, value)
        assert not value or (np.empty(1 << 20, np.uint8) != 0).any()

    for module in (_jpeg, libwebp, python_api, simplejpeg):
        monkeypatch.setattr(module, "host_empty", filled)
    yield set_to
    set_to(0)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("file", FILES)
def test_no_memory_that_nobody_wrote(file, fresh_memory):
    """The same call gives the same bytes, whatever was in memory before."""
    make = FILES[file][0]
    for orientation, kind, name in itertools.product((1, 6), ("RGB", "GRAY", "ANY_DATA"), WINDOWS):
        for data in (make(orientation), make(orientation)[:-60]):  # whole, and cut off
            result = []
            for pattern in (0x55, 0xC3):
                fresh_memory(pattern)
                batch = getattr(ndd.decoders, name)(
                    ndd.batch([data]), **WINDOWS[name], output_type=getattr(ndd.types, kind), on_error="fill"
                )
                result.append(np.asarray(batch.tensors[0]).copy())
            np.testing.assert_array_equal(*result, err_msg=f"{orientation} {kind} {name}")


def test_a_wrong_shape_is_never_handed_over(monkeypatch):
    """Whatever a library does."""
    data = FILES["rgba.png"][0](6)
    for shape in ((31, 24, 4), (24, 31, 4)):
        monkeypatch.setattr(opencv, "decode", lambda *_, shape=shape: np.zeros(shape, np.uint8))
        assert decoded(data).shape == (31, 24, 3)  # Pillow's
        with monkeypatch.context() as both:
            both.setattr(pillow, "decode", lambda *_, shape=shape: np.zeros(shape, np.uint8))
            with pytest.raises(RuntimeError, match="Failed to decode the image of 24x31"):
                decoded(data)


# ---- where the orientation stands

LOSSY = list(webp.chunks(encode(RGB, "WEBP")))
ALPHA = [c for c in webp.chunks(encode(PHOTO, "WEBP")) if c.name != b"VP8X"]


def extended(flags, *chunks):
    return webp.riff([webp.extended(31, 24, flags), *chunks])


@pytest.mark.parametrize("odd", range(1, 6))
@pytest.mark.parametrize("mark", [b"", b"Exif\0\0"])
def test_webp_chunks_of_odd_length(odd, mark):
    """A byte pads them. DALI refuses what stands behind one in front of the picture."""
    exif = webp.Chunk(b"EXIF", mark + png.exif(6) + bytes(odd))
    profile, text = webp.Chunk(b"ICCP", bytes(odd)), webp.Chunk(b"XMP ", bytes(odd))
    plain = decoded(webp.riff(LOSSY))
    for data in (
        extended(webp.EXIF | webp.ICC, profile, *LOSSY, exif),
        extended(webp.EXIF, exif, *LOSSY),
        extended(webp.EXIF | webp.XMP, *LOSSY, text, exif),
        extended(webp.EXIF, webp.Chunk(b"ABCD", bytes(odd)), *LOSSY, exif),
    ):
        np.testing.assert_array_equal(decoded(data), turned(plain, 6))
        assert np.asarray(ndd.peek_image_shape(data)).tolist() == [31, 24, 3]
    held = extended(webp.EXIF | webp.ALPHA | webp.ICC, profile, *ALPHA, exif)
    result = decoded(held, output_type=ndd.types.ANY_DATA)
    np.testing.assert_array_equal(result[..., 3], turned(PHOTO, 6)[..., 3])
    assert np.asarray(ndd.peek_image_shape(held, image_type=ndd.types.ANY_DATA)).tolist() == [31, 24, 4]


@pytest.mark.oracle
def test_webp_of_any_flags(dali):
    """VP8X says whether there is an EXIF and alpha; chunks that it does not announce do not count, as in DALI."""
    exif = webp.Chunk(b"EXIF", png.exif(6))
    lossless = list(webp.chunks(encode(PHOTO, "WEBP", lossless=True)))
    even = [c._replace(body=c.body + bytes(len(c.body) & 1)) for c in ALPHA]  # DALI finds nothing behind an odd one
    for parts in (LOSSY, even, lossless):
        for flags in (0, webp.EXIF, webp.ALPHA, webp.EXIF | webp.ALPHA):
            data = extended(flags, *parts, exif)
            for kind in ("RGB", "ANY_DATA"):
                with dali.EvalMode.sync_cpu:
                    number = int(getattr(ndd.types, kind))
                    plain = dali.decoders.image(dali.tensor(data), output_type=number, adjust_orientation=False)
                    shape = dali.peek_image_shape(dali.tensor(data), image_type=number)
                    plain, shape = np.asarray(plain).copy(), np.asarray(shape).tolist()
                result = decoded(data, output_type=getattr(ndd.types, kind))
                np.testing.assert_array_equal(result, turned(plain, 6 if flags & webp.EXIF else 1))
                assert list(result.shape) == shape


def test_png_with_a_mark_in_front_of_its_exif():
    for mark in (b"", b"Exif\0\0"):
        data = png.png(RGB, png.RGB, after=[png.orientation(5, mark)])
        np.testing.assert_array_equal(decoded(data), turned(RGB, 5))


needs_avif = pytest.mark.skipif("rgb.avif" not in FILES, reason="this Pillow has no AVIF")


@needs_avif
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("in_idat", [False, True])
def test_where_an_avif_says_how_it_is_turned(wide, in_idat):
    stored = encode(RGB, "AVIF", quality=90)
    plain, form = decoded(stored), {"wide": wide, "in_idat": in_idat}
    for turns, exif, expected in (
        ([], bytes(4) + png.exif(8), 8),
        ([], b"\0\0\0\6Exif\0\0" + png.exif(7, "<"), 7),
        ([avif.irot(1)], bytes(4) + png.exif(8), 8),  # said twice
        ([avif.irot(0)], bytes(4) + png.exif(8), 1),  # boxes go before
        ([avif.imir(1), avif.irot(1)], b"", 5),  # one after the other
        ([avif.irot(1), avif.imir(1)], b"", 7),
    ):
        data = avif.avif(stored, turns, exif, **form)
        np.testing.assert_array_equal(decoded(data), turned(plain, expected), err_msg=str((turns, exif)))
        shape = np.asarray(ndd.peek_image_shape(data)).tolist()
        assert shape == list(turned(plain, expected).shape)


@needs_avif
@pytest.mark.parametrize(
    "exif", [b"", b"\0", bytes(4) + b"damaged", b"\xff\xff\xff\xff" + png.exif(8), bytes(4) + png.exif(9)]
)
def test_a_damaged_exif_of_an_avif_says_nothing(exif):
    data = avif.avif(encode(RGB, "AVIF"), [], exif)
    for end in range(len(data)):
        assert _avif.orientation(data[:end].data) == 1


@needs_avif
def test_avif_by_a_compatible_brand():
    data = avif.avif(encode(RGB, "AVIF"), [avif.irot(1)], brands=(b"mif1", b"miaf", b"avif"))
    assert decoded(data).shape == (31, 24, 3)
    with pytest.raises(RuntimeError, match="no known format"):
        decoded(avif.avif(encode(RGB, "AVIF"), brands=(b"heic", b"mif1")))


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "f4", "f8"])
def test_opencv_turns_as_numpy(dtype, monkeypatch):
    """Pixels of any width, also of pictures that are not contiguous."""
    for shape in ((5, 7, 3), (1, 1, 1), (1, 9, 4), (9, 1, 2), (6, 4, 40), (6, 4)):
        image = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        for stored in (image, image[::-1, ::-1]):
            for orientation in range(1, 9):
                turned = pixels.upright(stored, orientation)
                with monkeypatch.context() as patch:
                    patch.setattr(pixels, "opencv", lambda: None)
                    expected = pixels.upright(stored, orientation)
                np.testing.assert_array_equal(turned, expected, strict=True)
                assert turned.flags.c_contiguous or orientation == 1
