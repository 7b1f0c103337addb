"""TIFF, BMP, PNM and JPEG 2000: rarer kinds against the oracle, and headers that no library may see."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from encoded import KINDS, banded_tiff, encode, made, photo, rare

import ndd
from ndd.decoders.backends import opencv, pillow
from ndd.decoders.headers.orientation import with_plain_exif
from ndd.decoders.jpeg.header import read_header as jpeg
from ndd.decoders.nvimgcodec import python_api
from ndd.decoders.registry import may_be_decoded


def pixels(data, kind="RGB", **arguments):
    return np.asarray(ndd.decoders.image(ndd.tensor(data), output_type=getattr(ndd.types, kind), **arguments))


@pytest.mark.oracle
@pytest.mark.parametrize("name", sorted(rare().keys() - {"565.bmp"}))  # five bits of white are 248 there
@pytest.mark.drawn(3)
def test_against_the_oracle(dali, name):
    data = rare()[name]
    compared = 0
    for kind in KINDS:
        for dtype in ("uint8", "uint16"):
            number = int(getattr(ndd.types, kind))
            with dali.EvalMode.sync_cpu:
                try:
                    theirs = dali.decoders.image(dali.tensor(data), output_type=number, dtype=getattr(dali, dtype))
                    expected = np.asarray(theirs).astype(int)
                except RuntimeError:  # colours of a gray codestream, alpha of a BMP: ours decodes them
                    continue
            result = pixels(data, kind, dtype=getattr(ndd, dtype)).astype(int)
            assert result.shape == expected.shape, (kind, dtype)
            # YCbCr: a matrix in 32-bit floats, where the order of additions decides ties
            assert np.abs(result - expected).max() <= (kind == "YCbCr"), (kind, dtype)
            compared += 1
    assert compared >= 4
    if not name.endswith(".j2k"):
        with dali.EvalMode.sync_cpu:
            shape = np.asarray(dali.peek_image_shape(dali.tensor(data), image_type=int(ndd.types.ANY_DATA)))
        peeked = ndd.peek_image_shape(data, image_type=ndd.types.ANY_DATA)
        assert np.asarray(peeked).tolist() == shape.tolist() == list(pixels(data, "ANY_DATA").shape)


def test_no_library_but_ours_sees_them(monkeypatch):
    """nvImageCodec dies of damaged files of these formats, in its parser or in its decoder."""

    def dies(*_arguments, **_named):
        raise AssertionError("nvImageCodec got the bytes")

    for name in ("_stream", "decode"):
        monkeypatch.setattr(python_api, name, dies)
    of_these = ("tif", "tiff", "bmp", "ppm", "pgm", "jp2", "png", "webp")
    for name, data in (rare() | {n: d for n, d in made().items() if n.endswith(of_these)}).items():
        assert pixels(data).ndim == 3, name
        assert np.asarray(ndd.peek_image_shape(data)).all()
        assert pixels(data[: len(data) // 2], on_error="fill").ndim == 3


@pytest.mark.parametrize(("name", "chunk"), [("rgb.png", ">I4s"), ("turned_6.webp", "<4sI")])
def test_a_chunk_that_ends_where_it_begins(name, chunk, monkeypatch):
    """nvImageCodec would look at it for ever."""
    monkeypatch.setattr(python_api, "_stream", lambda *_: pytest.fail("nvImageCodec got the bytes"))
    data = made()[name].tobytes()
    values = (2**32 - 12, b"eXIf") if chunk[0] == ">" else (b"ICCP", 2**32 - 8)
    place = 33 if chunk[0] == ">" else 30
    endless = np.frombuffer(data[:place] + struct.pack(chunk, *values) + data[place:], np.uint8)
    with pytest.raises(RuntimeError, match="Failed to decode the image"):
        pixels(endless)
    assert np.asarray(ndd.peek_image_shape(endless))[2] == 3


def test_nvimagecodec_sees_of_exif_the_orientation_alone():
    """Its parser writes behind its memory if an entry claims too many values."""
    data = made()["turned_6.jpg"]
    turned = bytearray(data.tobytes())
    place = turned.index(b"MM\0*")
    turned[place + 8 : place + 10] = b"\0\x41"  # 65 entries
    turned[place + 14 : place + 18] = b"\0\2\0\1"  # 131073 values
    damaged = np.frombuffer(bytes(turned), np.uint8)
    plain = with_plain_exif(damaged).tobytes()
    assert len(plain) == len(damaged)
    assert plain[place : place + 18] == b"MM\0*\0\0\0\x08\0\1\x01\x12\0\3\0\0\0\1"
    np.testing.assert_array_equal(pixels(damaged), pixels(data))
    assert with_plain_exif(made()["420.jpg"]) is made()["420.jpg"]


def test_what_the_oracle_gets_wrong():
    rgba = photo()
    two = np.ascontiguousarray(rgba[..., :2])
    result = pixels(encode(two, "TIFF"))  # DALI takes gray, alpha, gray for red, green, blue
    np.testing.assert_array_equal(result, np.repeat(two[..., :1], 3, axis=2))
    words = (rgba[::-1, :, :3].astype(np.uint16) >> 3) @ np.array([1 << 10, 1 << 5, 1], np.uint16)
    head = struct.pack("<2sIHHI", b"BM", 54 + words.nbytes, 0, 0, 54)
    head += struct.pack("<IiiHHIIiiII", 40, 56, 40, 1, 16, 0, words.nbytes, 0, 0, 0, 0)
    result = pixels(np.frombuffer(head + words.astype("<u2").tobytes(), np.uint8))  # DALI cannot say what type this has
    np.testing.assert_array_equal(result, (rgba[..., :3].astype(int) >> 3) * 255 // 31)
    np.testing.assert_array_equal(pixels(rare()["rgba.j2k"], "ANY_DATA"), rgba)
    np.testing.assert_array_equal(pixels(rare()["gray.j2k"]), np.repeat(rgba[..., :1], 3, axis=2))


def changed(name, find, offset, new):
    data = bytearray({**made(), **rare()}[name].tobytes())
    place = data.index(find) + offset
    data[place : place + len(new)] = new
    return np.frombuffer(bytes(data), np.uint8)


def pnm(text):
    return np.frombuffer(text + bytes(100), np.uint8)


SIZ = b"\xff\x51"
REFUSED = {
    "JPEG 2000, no rows": changed("rgb.jp2", b"ihdr", 4, bytes(4)),
    "JPEG 2000, its box and its stream disagree": changed("rgb.jp2", b"ihdr", 4, b"\0\0\0\1"),
    "JPEG 2000, a stream of 2^31 columns": changed("rgb.j2k", SIZ, 6, b"\x80\0\0\0"),
    "JPEG 2000, subsampling 0": changed("rgb.j2k", SIZ, 41, b"\0"),
    "JPEG 2000, tiles of 0 columns": changed("rgb.j2k", SIZ, 22, bytes(4)),
    "JPEG 2000, 2240 tiles become 2^31": changed(
        "rgb.j2k", SIZ, 6, b"\0\1\0\0\0\1\0\0" + bytes(8) + b"\0\0\0\1\0\0\0\1"
    ),
    "JPEG 2000, 16384 components": changed("rgb.j2k", SIZ, 38, b"\x40\0"),
    "BMP, no columns": changed("rgb.bmp", b"BM", 18, bytes(4)),
    "BMP, 3 bits": changed("rgb.bmp", b"BM", 28, b"\3"),
    "BMP, rows of -2^31": changed("rgb.bmp", b"BM", 22, b"\0\0\0\x80"),
    "TIFF, no directory": changed("rgb.tif", b"II", 4, b"\xff\xff\xff\x7f"),
    "PNM, no rows": pnm(b"P5 3 0 255 "),
    "PNM, negative": pnm(b"P5 3 -2 255 "),
    "PNM, 20 digits": pnm(b"P5 3 99999999999999999999 255 "),
    "PNM, largest value 0": pnm(b"P5 3 2 0 "),
    "PNM, largest value 70000": pnm(b"P5 3 2 70000 "),
    "PNM, no end of a number": np.frombuffer(b"P2 " + b"1" * 5000, np.uint8),
    "EPS, which Pillow has a program for": np.frombuffer(
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n" * 9, np.uint8
    ),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused_headers(name, monkeypatch):
    def dies(*_arguments, **_named):
        raise AssertionError("a library got the bytes")

    for module, function in ((python_api, "_stream"), (opencv, "_imdecode"), (pillow, "opened")):
        monkeypatch.setattr(module, function, dies)
    with pytest.raises(RuntimeError, match=r"image: sample 0: expected (an encoded image|at most)"):
        pixels(REFUSED[name])


def test_a_pnm_shorter_than_its_pixels_is_damaged():
    data = rare()["16.ppm"]
    with pytest.raises(RuntimeError, match="the image of 40x56 pixels: the data is damaged"):
        pixels(data[:-1])
    assert np.asarray(ndd.peek_image_shape(data[:-1])).tolist() == [40, 56, 3]


def test_numbers_of_a_pnm_may_begin_with_zeros():
    data = rare()["16.ppm"].tobytes()
    other = np.frombuffer(data.replace(b"56 40", b"%s56 0040" % (b"0" * 30), 1), np.uint8)
    assert len(other) == len(data) + 32
    np.testing.assert_array_equal(pixels(other), pixels(np.frombuffer(data, np.uint8)))


def test_pillows_own_limit_has_no_say(monkeypatch):
    from PIL import Image

    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    for name in ("rgb.tif", "rgba.tif"):
        assert pixels(made()[name], "ANY_DATA").shape[:2] == (40, 56)


def test_thousands_of_scans_are_refused():
    data = made()["422_progressive.jpg"].tobytes()
    scan = data.rindex(b"\xff\xda")
    many = np.frombuffer(data[:scan] + data[scan:-2] * 600 + data[-2:], np.uint8)
    with pytest.raises(RuntimeError, match="Failed to decode the image of 40x56"):
        pixels(many)
    large = jpeg(made()["422_progressive.jpg"].data)._replace(height=16000, width=16000)
    assert may_be_decoded(np.frombuffer(data[:scan] + data[scan:-2] * 20 + data[-2:], np.uint8).data, large)
    assert not may_be_decoded(np.frombuffer(data[:scan] + data[scan:-2] * 40 + data[-2:], np.uint8).data, large)


def test_scans_behind_a_complete_sequential_one_are_not_counted():
    data = made()["420.jpg"].tobytes()
    scan = data.rindex(b"\xff\xda")
    header = jpeg(memoryview(data))
    behind = data[:scan] + data[scan:-2] * 600 + data[-2:]
    assert may_be_decoded(memoryview(behind), header)
    table = behind.index(b"\xff\xdb")
    filled = behind[:table] + b"\xff" + behind[table:]  # a fill byte: frames could hide behind what looks like lengths
    assert not may_be_decoded(memoryview(filled), header)
    fewer = behind[: scan + 4] + b"\1" + behind[scan + 5 :]  # one component in the first scan: others are in later ones
    assert not may_be_decoded(memoryview(fewer), header)


def test_a_jpeg_without_a_scan_is_refused():
    data = made()["420.jpg"].tobytes()
    assert not may_be_decoded(memoryview(data[: data.rindex(b"\xff\xda")]), jpeg(memoryview(data)))


BYTES = np.random.default_rng(5).integers(0, 256, (37, 29, 6), np.uint8)
WORDS = BYTES.astype(np.uint16) * 257 ^ 0x0F31
BANDED = {
    "six": (BYTES, {}),
    "six words, big-endian, differences": (WORDS, {"compression": 8, "differences": True, "order": ">"}),
    "six words in tiles, LZW": (WORDS, {"tile": 16, "compression": 5}),
    "thirteen": (np.repeat(BYTES, 3, axis=2)[:, :, :13], {"compression": 5, "differences": True}),
    "five floats": (BYTES[:, :, :5].astype(np.float32) / 255, {}),
    "colours and two more": (WORDS[:, :, :5], {"colours": 2}),
    "colours, multiplied by alpha": (BYTES[:, :, :4], {"colours": 2, "extra": 1}),
    "gray and two more": (BYTES[:, :, :3], {}),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", BANDED)
def test_tiffs_of_many_channels(dali, name):
    stored, arguments = BANDED[name]
    data = banded_tiff(stored, **arguments)
    everything = {"dtype": getattr(ndd, str(stored.dtype)), "adjust_orientation": False}
    np.testing.assert_array_equal(pixels(data, "ANY_DATA", **everything), stored)
    assert np.asarray(ndd.peek_image_shape(data, image_type=ndd.types.ANY_DATA)).tolist() == list(stored.shape)
    for kind in KINDS:
        with dali.EvalMode.sync_cpu:
            expected = np.asarray(dali.decoders.image(dali.tensor(data), output_type=int(getattr(ndd.types, kind))))
        result = pixels(data, kind)
        assert result.shape == expected.shape
        assert np.abs(result.astype(int) - expected).max() <= (kind == "YCbCr"), kind


@pytest.mark.oracle
def test_turned_tiffs_of_words(dali):
    """OpenCV mirrors them, asked or not."""
    data = banded_tiff(WORDS[:, :, :3], colours=2, orientation=2)
    for kind in ("RGB", "GRAY"):
        with dali.EvalMode.sync_cpu:
            number = int(getattr(ndd.types, kind))
            theirs = dali.decoders.image(dali.tensor(data), output_type=number, dtype=dali.uint16)
        np.testing.assert_array_equal(pixels(data, kind, dtype=ndd.uint16), np.asarray(theirs))
    np.testing.assert_array_equal(pixels(data, dtype=ndd.uint16, adjust_orientation=False), WORDS[:, :, :3])


@pytest.mark.parametrize("arguments", [{}, {"tile": 16, "compression": 5}, {"compression": 8, "differences": True}])
@pytest.mark.parametrize("stored", [BYTES, WORDS[:, :, :3], BYTES[:, :, :1]], ids=["bytes", "words", "one"])
def test_tiffs_of_planes(stored, arguments):
    """DALI reads some of their planes from memory that it never wrote, and refuses the others."""
    data = banded_tiff(stored, planes=True, **arguments)
    np.testing.assert_array_equal(pixels(data, "ANY_DATA", dtype=getattr(ndd, str(stored.dtype))), stored)
    for end in (len(data) // 2, len(data) - 9):
        with pytest.raises(RuntimeError, match="image: sample 0"):
            pixels(data[:end], "ANY_DATA")


def test_a_tiff_cannot_claim_more_channels_than_it_can_hold():
    data = bytearray(banded_tiff(BYTES).tobytes())
    place = data.index(struct.pack("<HHIH", 277, 3, 1, 6)) + 8
    data[place : place + 2] = b"\xff\xff"
    result = pixels(np.frombuffer(bytes(data), np.uint8), "ANY_DATA", on_error="fill")
    assert result.shape == (37, 29, 4)
    assert not result.any()


@pytest.mark.oracle
def test_an_orientation_of_one_byte(dali):
    """Of EXIF it is a SHORT; some writers store a BYTE."""
    data = bytearray(made()["turned_6.jpg"].tobytes())
    place = data.index(b"MM\0*")
    data[place : place + 22] = b"II*\0\x08\0\0\0\1\0\x12\1\1\0\1\0\0\0\6\0\0\0"
    encoded = np.frombuffer(bytes(data), np.uint8)
    with dali.EvalMode.sync_cpu:
        expected = np.asarray(dali.decoders.image(dali.tensor(encoded)))
    np.testing.assert_array_equal(pixels(encoded), expected)
    assert np.asarray(ndd.peek_image_shape(encoded)).tolist() == [56, 40, 3]
