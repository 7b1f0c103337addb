"""TIFF of any bits, byte order, layout and colours: what was stored, and what the oracle makes of it where it reads it."""

from __future__ import annotations

import numpy as np
import pytest
from encoded import KINDS
from picture_writers.tiff import (
    CMYK,
    DEFLATE,
    FLOAT,
    GRAY,
    LAB,
    LZW,
    NONE,
    OLD_DEFLATE,
    PACKBITS,
    PALETTE,
    RGB,
    SIGNED,
    WHITE_IS_ZERO,
    YCBCR,
    tiff,
)  # fmt: skip

import ndd
from ndd.decoders.backends import opencv
from ndd.decoders.headers import tiff as _tiff

HEIGHT, WIDTH = 37, 29


def numbers(channels, bits, seed=0):
    return np.random.default_rng([channels, bits, seed]).integers(0, 1 << bits, (HEIGHT, WIDTH, channels), np.uint64)


def pixels(data, kind="ANY_DATA", dtype=ndd.uint8, **arguments):
    options = {"output_type": getattr(ndd.types, kind), "dtype": dtype, **arguments}
    return np.asarray(ndd.decoders.image(ndd.tensor(data), **options))


def kept(data, bits, **arguments):
    """The numbers of a file, in a type that holds them."""
    return pixels(data, dtype=ndd.uint8 if bits <= 8 else ndd.uint16 if bits <= 16 else ndd.uint32, **arguments)


def full(stored, bits):
    """What is kept of numbers: 8 bits scaled, up to 16 shifted."""
    return stored * 255 // ((1 << bits) - 1) if bits <= 8 else stored << np.uint64(max(16 - bits, 0))


def like_the_oracle(dali, data, dtype="uint16", kinds=KINDS):
    for kind in kinds:
        with dali.EvalMode.sync_cpu:
            number = int(getattr(ndd.types, kind))
            theirs = dali.decoders.image(dali.tensor(data), output_type=number, dtype=getattr(dali, dtype))
            expected = np.asarray(theirs).astype(float)
            shape = np.asarray(dali.peek_image_shape(dali.tensor(data), image_type=number)).tolist()
        result = pixels(data, kind, getattr(ndd, dtype))
        assert list(result.shape) == shape == np.asarray(ndd.peek_image_shape(data, image_type=number)).tolist()
        off = np.abs(result.astype(float) - expected).max()
        assert off <= (1e-6 if dtype == "float32" else kind == "YCbCr"), kind


LAYOUTS = {
    "strips": {},
    "one strip": {"rows": HEIGHT},
    "rows": {"rows": 1},
    "tiles": {"tile": 16},
    "big-endian": {"order": ">"},
    "BigTIFF": {"big": True},
    "big-endian BigTIFF": {"big": True, "order": ">"},
    "big-endian BigTIFF in tiles, deflate": {"big": True, "order": ">", "tile": 32, "compression": DEFLATE},
    "LZW": {"compression": LZW},
    "PackBits in tiles": {"compression": PACKBITS, "tile": 16},
    "old deflate": {"compression": OLD_DEFLATE},
    "the last bit first": {"fill_order": 2},
    "the last bit first, deflate": {"fill_order": 2, "compression": DEFLATE},
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("planes", [False, True])
@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 32])
def test_any_bits_in_any_layout(bits, planes, layout):
    for channels, colours in ((1, GRAY), (2, GRAY), (3, RGB), (4, RGB), (6, GRAY)):
        stored = numbers(channels, bits)
        data = tiff(stored, bits=bits, colours=colours, planes=planes, **LAYOUTS[layout])
        np.testing.assert_array_equal(kept(data, bits), full(stored, bits), err_msg=f"{channels}")
        peeked = ndd.peek_image_shape(data, image_type=ndd.types.ANY_DATA)
        assert tuple(np.asarray(peeked)) == stored.shape


@pytest.mark.oracle
@pytest.mark.parametrize("layout", [n for n in LAYOUTS if "last bit" not in n])
@pytest.mark.parametrize("bits", [8, 10, 12, 14, 16])
@pytest.mark.drawn(1)
def test_against_the_oracle(dali, bits, layout):
    unsaid = [(1, None), (3, None), (4, None)] if bits in (8, 16) else []  # it refuses these of other bits
    for channels, colours in ((1, GRAY), (3, RGB), (4, RGB), *unsaid):
        data = tiff(numbers(channels, bits), bits=bits, colours=colours, **LAYOUTS[layout])
        for dtype in ("uint8", "uint16") if layout == "strips" else ("uint16",):
            like_the_oracle(dali, data, dtype)


@pytest.mark.oracle
def test_one_bit_colours_against_the_oracle(dali):
    for channels, colours in ((1, GRAY), (1, WHITE_IS_ZERO), (3, RGB)):
        like_the_oracle(dali, tiff(numbers(channels, 1), bits=1, colours=colours))


@pytest.mark.oracle
@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("bits", [8, 12, 16])
@pytest.mark.drawn(2)
def test_turned_ones_against_the_oracle(dali, bits, orientation):
    for colours in (GRAY, RGB):
        data = tiff(numbers(1 if colours == GRAY else 3, bits), bits=bits, colours=colours, orientation=orientation)
        like_the_oracle(dali, data)


@pytest.mark.oracle
@pytest.mark.parametrize("bits", [1, 8, 10, 12, 14, 16])
def test_white_is_zero_against_the_oracle(dali, bits):
    """Of more than 8 bits it does not care, nor does this."""
    for layout in ("strips", "big-endian BigTIFF in tiles, deflate"):
        like_the_oracle(dali, tiff(numbers(1, bits), bits=bits, colours=WHITE_IS_ZERO, **LAYOUTS[layout]))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("bits", [1, 2, 4, 8, 10, 12, 16])
@pytest.mark.drawn(2)
def test_palettes(bits, channels, order):
    """16 bits DALI reads with their bytes exchanged, and a palette with alpha as if there were none."""
    table = np.random.default_rng(bits).integers(0, 65536, (3, 1 << bits))
    stored = numbers(channels, bits)
    for layout in ({}, {"tile": 16, "compression": DEFLATE}, {"big": True}):
        data = tiff(stored, bits=bits, colours=PALETTE, order=order, tags={320: table.ravel().tolist()}, **layout)
        np.testing.assert_array_equal(pixels(data, dtype=ndd.uint16), table.T[stored[..., 0]])
        assert tuple(np.asarray(ndd.peek_image_shape(data, image_type=ndd.types.ANY_DATA))) == (HEIGHT, WIDTH, 3)


@pytest.mark.oracle
@pytest.mark.parametrize("bits", [1, 2, 4, 8, 10, 12])
@pytest.mark.drawn(2)
def test_palettes_against_the_oracle(dali, bits):
    table = np.random.default_rng(bits).integers(0, 65536, 3 << bits).tolist()
    for order in ("<", ">"):
        like_the_oracle(dali, tiff(numbers(1, bits), bits=bits, colours=PALETTE, order=order, tags={320: table}))


REC_709, STUDIO = [0.2126, 0.7152, 0.0722], [16, 235, 128, 240, 128, 240]
YCC = {
    "plain": {},
    "of Rec. 709": {529: REC_709},
    "of studio range": {532: STUDIO},
    "of both": {529: REC_709, 532: STUDIO},
    "of odd ends": {532: [200, 100, 50, 60, 0, 255]},
    "of odd shares": {529: [0.01, 0.98, 0.01]},
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", YCC)
@pytest.mark.drawn(1)
def test_ycbcr_against_the_oracle(dali, name):
    tags = {530: [1, 1], **YCC[name]}
    whole = pixels(tiff(numbers(3, 8), colours=YCBCR, tags=tags))
    for layout in LAYOUTS:
        for planes in (False, True):
            data = tiff(numbers(3, 8), colours=YCBCR, planes=planes, tags=tags, **LAYOUTS[layout])
            np.testing.assert_array_equal(pixels(data), whole)
            if layout in ("strips", "LZW", "big-endian"):  # it refuses planes in tiles
                like_the_oracle(dali, data, "uint8")


def subsampled(stored, across, down):
    """The units of a picture as rows of numbers: their Y, then Cb and Cr of the first pixel."""
    height, width = -(-HEIGHT // down) * down, -(-WIDTH // across) * across
    padded = np.pad(stored, ((0, height - HEIGHT), (0, width - WIDTH), (0, 0)), mode="edge")
    units = padded.reshape(height // down, down, width // across, across, 3).transpose(0, 2, 1, 3, 4)
    luma = units[..., 0].reshape(*units.shape[:2], -1)
    return np.concatenate((luma, units[:, :, 0, 0, 1:]), axis=2).reshape(height // down, -1, 1)


@pytest.mark.oracle
@pytest.mark.parametrize("compression", [NONE, LZW, DEFLATE])
@pytest.mark.parametrize(("across", "down"), [(1, 2), (2, 1), (2, 2), (4, 1), (4, 2), (4, 4)])
def test_subsampled_ycbcr_against_the_oracle(dali, across, down, compression):
    stored = subsampled(numbers(3, 8), across, down)
    tags = {
        256: [WIDTH], 257: [HEIGHT], 277: [3], 258: [8, 8, 8], 530: [across, down], 339: None, 278: [HEIGHT], 529: REC_709,
    }  # fmt: skip
    data = tiff(stored, colours=YCBCR, rows=len(stored), compression=compression, tags=tags)
    like_the_oracle(dali, data, "uint8")
    if (across, down) == (2, 2):  # what a file without the tag has
        without = tiff(stored, colours=YCBCR, rows=len(stored), compression=compression, tags={**tags, 530: None})
        np.testing.assert_array_equal(pixels(without), pixels(data))


@pytest.mark.oracle
@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.drawn(2)
def test_lab_against_the_oracle(dali, bits, orientation):
    for order in ("<", ">"):
        data = tiff(numbers(3, bits), bits=bits, colours=LAB, orientation=orientation, order=order)
        like_the_oracle(dali, data)
        flat = tiff(numbers(3, bits), bits=bits, colours=LAB, order=order)
        np.testing.assert_array_equal(pixels(data, adjust_orientation=False), pixels(flat))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_signed_numbers(bits, order):
    """DALI refuses them. In their own type they come as they are, in unsigned ones negative numbers are 0."""
    stored = numbers(3, bits)
    signed = stored.astype(f"u{bits // 8}").view(f"i{bits // 8}")
    for channels, colours in ((1, GRAY), (3, RGB)):
        data = tiff(stored[..., :channels], bits=bits, colours=colours, kind=SIGNED, order=order)
        np.testing.assert_array_equal(pixels(data, dtype=getattr(ndd, f"int{bits}")), signed[..., :channels])
        assert (pixels(data)[signed[..., :channels] < 0] == 0).all()


@pytest.mark.parametrize("predictor", [1, 3])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("bits", [16, 32, 64])
def test_floats(bits, order, predictor):
    for channels, colours in ((1, GRAY), (3, RGB), (5, GRAY)):
        stored = np.random.default_rng(bits).random((HEIGHT, WIDTH, channels)).astype(f"f{bits // 8}")
        for layout in ({}, {"tile": 16}, {"planes": True}):
            if predictor == 3 and (order == ">" or bits == 16 or layout):
                continue
            data = tiff(stored, bits=bits, colours=colours, kind=FLOAT, order=order, predictor=predictor,
                        compression=DEFLATE if predictor == 3 else NONE, **layout)  # fmt: skip
            np.testing.assert_array_equal(pixels(data, dtype=ndd.float32), stored.astype(np.float32))


@pytest.mark.oracle
def test_floats_against_the_oracle(dali):
    for channels, colours in ((1, GRAY), (3, RGB)):
        stored = np.random.default_rng(1).random((HEIGHT, WIDTH, channels)).astype(np.float32)
        for form in ({}, {"order": ">"}, {"predictor": 3, "compression": DEFLATE}):
            like_the_oracle(dali, tiff(stored, bits=32, colours=colours, kind=FLOAT, **form), "float32", KINDS[:3])


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("form", [{}, {"order": ">"}, {"tile": 16}, {"planes": True}, {"big": True, "order": ">"}])
@pytest.mark.drawn(2)
def test_differences(bits, form):
    for compression in (DEFLATE, LZW):
        for channels, colours in ((1, GRAY), (3, RGB), (4, RGB)):
            stored = numbers(channels, bits)
            data = tiff(stored, bits=bits, colours=colours, predictor=2, compression=compression, **form)
            np.testing.assert_array_equal(kept(data, bits), stored)
    plain = tiff(numbers(3, bits), bits=bits, colours=RGB, tags={317: [2]}, **form)  # libtiff does not look at it there
    np.testing.assert_array_equal(kept(plain, bits), numbers(3, bits))


def test_inks_of_sixteen_bits():
    stored = numbers(4, 16)
    light = 65535 - stored.astype(np.int64)
    for form in ({}, {"planes": True}, {"order": ">", "compression": LZW}):
        result = pixels(tiff(stored, bits=16, colours=CMYK, **form), "RGB", ndd.uint16)
        np.testing.assert_array_equal(result, light[..., :3] * light[..., 3:] // 65535)


@pytest.mark.parametrize("missing", [262, 277, 278, 279, 339, 259])
def test_missing_tags(missing):
    """Each has a default, or one thing that it can be."""
    for bits in (8, 12):
        stored = numbers(1, bits)
        data = tiff(stored, bits=bits, rows=HEIGHT, tags={missing: None})
        np.testing.assert_array_equal(kept(data, bits), full(stored, bits))


FORMAT = {"bits": 12, "colours": RGB}
REFUSED = {
    "24 bits": {"bits": 24, "colours": GRAY},
    "12 bits with a sign": {**FORMAT, "kind": SIGNED},
    "planes of YCbCr of other sizes": {"colours": YCBCR, "planes": True},
    "YCbCr in units of 3": {"colours": YCBCR, "tags": {530: [3, 1]}},
    "YCbCr without green": {"colours": YCBCR, "tags": {530: [1, 1], 529: [0.5, 0, 0.5]}},
    "differences of 12 bits": {**FORMAT, "predictor": 2, "compression": DEFLATE},
    "too few strips": {**FORMAT, "tags": {278: [1]}},
    "a strip behind the file": {**FORMAT, "rows": 64, "tags": {273: [1 << 30]}},
    "a strip of 4 GB": {**FORMAT, "rows": 64, "compression": LZW, "tags": {279: [0xFFFFFFFF]}},
    "a short palette": {"bits": 12, "colours": PALETTE, "tags": {320: [1] * 30}},
    "an unknown compression": {**FORMAT, "tags": {259: [999]}},
    "tiles of 2^30": {**FORMAT, "tile": 16, "tags": {322: [1 << 30], 323: [1 << 30], 324: [8], 325: [64]}},
    "tiles of 0": {**FORMAT, "tile": 16, "tags": {322: [0]}},
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    arguments = REFUSED[name]
    channels = 1 if arguments["colours"] in (GRAY, PALETTE) else 3
    data = tiff(numbers(channels, arguments.get("bits", 8)), **arguments)
    with pytest.raises(RuntimeError, match=r"image: sample 0: Failed to decode the image of 37x29"):
        pixels(data)


@pytest.mark.parametrize("form", [
    {"bits": 12}, {"bits": 12, "compression": LZW}, {"bits": 12, "compression": DEFLATE}, {"bits": 16},
    {"bits": 8, "colours": YCBCR, "tags": {530: [1, 1]}}, {"bits": 8, "compression": LZW},
])  # fmt: skip
def test_cut_off(form):
    tags = {**form.get("tags", {}), 279: [700] * 3}
    with pytest.raises(RuntimeError, match="Failed to decode"):
        pixels(tiff(numbers(3, form["bits"]), **{"colours": RGB, **form, "tags": tags}))


@pytest.mark.oracle
def test_a_wrong_size_of_a_single_strip(dali):
    """Without compression there is one right one, whatever is said."""
    for bits in (8, 16):
        data = tiff(numbers(3, bits), bits=bits, colours=RGB, rows=HEIGHT, tags={279: [1500]})
        np.testing.assert_array_equal(kept(data, bits), numbers(3, bits))
        like_the_oracle(dali, data)


def test_opencv_sees_nothing_but_lab(monkeypatch):
    """It leaves memory as it was where planes of 16 bits should be."""
    monkeypatch.setattr(opencv, "_imdecode", lambda *_: pytest.fail("OpenCV got the bytes"))
    for bits in (8, 12, 16):
        for planes in (False, True):
            data = tiff(numbers(3, bits), bits=bits, colours=RGB, planes=planes)
            assert pixels(data).shape == (HEIGHT, WIDTH, 3)
            assert _tiff.unturned_lab(data) is None
