"""BMP of every header, depth, mask and compression: what the files say, and what the oracle makes of those that it decodes."""

from __future__ import annotations

import io
import struct

import cv2
import numpy as np
import pytest
from encoded import KINDS
from picture_writers.bmp import (
    ALPHA_BITFIELDS,
    BITFIELDS,
    END,
    END_OF_LINE,
    INFO,
    OS2,
    OS2_SHORT,
    OS2_V2,
    RLE4,
    RLE8,
    V2,
    V3,
    V4,
    V5,
    bmp,
    delta,
    literal,
    packed,
    run,
)  # fmt: skip
from PIL import Image

import ndd
from ndd.decoders.backends.bmp_runs import unpack_runs

RNG = np.random.default_rng(1)
PALETTE = RNG.integers(0, 256, (256, 3), np.uint8)
RAMP = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
HEIGHT, WIDTH = 6, 7
M555, M565, M888 = (0x7C00, 0x3E0, 0x1F), (0xF800, 0x7E0, 0x1F), (0xFF0000, 0xFF00, 0xFF)
HEADERS = (OS2, INFO, V2, V3, OS2_V2, V4, V5)


def pixels(data, kind="RGB", **arguments):
    return np.asarray(ndd.decoders.image(ndd.tensor(data), output_type=getattr(ndd.types, kind), **arguments))


def peeked(data):
    return tuple(np.asarray(ndd.peek_image_shape(data, image_type=ndd.types.ANY_DATA)).tolist())


def oracle(dali, data, kind):
    with dali.EvalMode.sync_cpu:
        return np.asarray(dali.decoders.image(dali.tensor(data), output_type=int(getattr(ndd.types, kind)))).astype(int)


def like_the_oracle(dali, data, by_one=("YCbCr",)):
    for kind in ("RGB", "BGR", "GRAY", "YCbCr"):
        assert np.abs(pixels(data, kind).astype(int) - oracle(dali, data, kind)).max() <= (kind in by_one), kind


@pytest.mark.oracle
@pytest.mark.parametrize("width", [1, 2, 3, 5, 7, 8, 9, 33])
@pytest.mark.parametrize("bits", [1, 2, 4, 8, 24, 32])
@pytest.mark.drawn(1)
def test_plain_ones(dali, bits, width):
    stored = np.random.default_rng(width).integers(0, 1 << bits, (HEIGHT, width), np.uint32)
    for header in HEADERS:
        for top_down in (False, True) if header != OS2 else (False,):
            body = packed(stored[::-1] if top_down else stored, bits)
            palette = PALETTE[: 1 << bits] if bits <= 8 else None
            data = bmp(body, width, HEIGHT, bits, header=header, palette=palette, top_down=top_down)
            expected = PALETTE[stored] if bits <= 8 else stored[..., None] >> np.uint32([16, 8, 0]) & 255
            np.testing.assert_array_equal(pixels(data), expected)
            assert peeked(data) == pixels(data, "ANY_DATA").shape
            if bits != 2:  # DALI knows no such
                like_the_oracle(dali, data)


@pytest.mark.oracle
@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_palettes(dali, bits):
    stored = RNG.integers(0, 1 << bits, (HEIGHT, WIDTH))
    body, count = packed(stored, bits), 1 << bits
    gray = RAMP[:: 255 // (count - 1)]
    for palette, said in ((PALETTE[:count], None), (PALETTE[:count], 0), (PALETTE[: count // 2], None), (gray, None)):
        data = bmp(body, WIDTH, HEIGHT, bits, palette=palette, colours=said, gap=2)
        full = np.zeros((count, 3), np.uint8)
        full[: len(palette)] = palette  # black, where there are no more
        np.testing.assert_array_equal(pixels(data), full[stored])
        channels = 1 if palette is gray else 3
        assert pixels(data, "ANY_DATA").shape == peeked(data) == (HEIGHT, WIDTH, channels)
        np.testing.assert_array_equal(pixels(data, "ANY_DATA"), full[stored][..., :channels])
        if bits != 2:
            like_the_oracle(dali, data)


def under(values, mask):
    shift, full = (mask & -mask).bit_length() - 1, mask // (mask & -mask)
    return (values >> shift & full).astype(np.int64) * 255 // full


MASKS = {
    16: {
        "555": M555, "565": M565, "565, blue first": M565[::-1], "444": (0xF00, 0xF0, 0xF), "664": (0xFC00, 0x3F0, 0xF),
        "1555": (*M555, 0x8000), "4444": (0xF00, 0xF0, 0xF, 0xF000),
    },
    32: {
        "888": M888, "8888": (*M888, 0xFF000000), "8888, red first": (0xFF, 0xFF00, 0xFF0000, 0xFF000000),
        "8888, alpha last": (0xFF00, 0xFF0000, 0xFF000000, 0xFF), "888, high": (0xFF000000, 0xFF0000, 0xFF00),
        "10 bits": (0x3FF00000, 0xFFC00, 0x3FF), "565": M565, "24 bits": (0xFFFFFF00, 0xF0, 0xF),
        "askew": (0x1FE, 0x1FE00, 0x1FE0000), "10 bits and alpha": (0x3FF00000, 0xFFC00, 0x3FF, 0xC0000000),
    },
}  # fmt: skip


@pytest.mark.parametrize(("bits", "name"), [(bits, name) for bits in MASKS for name in MASKS[bits]])
def test_masks(bits, name):
    masks = MASKS[bits][name]
    stored = RNG.integers(0, 1 << bits, (HEIGHT, WIDTH), np.uint32)
    stored[0, 0] = (1 << bits) - 1
    for header in (INFO, V2, V3, V4, V5):
        if header == V2 and len(masks) > 3:
            continue
        compression = ALPHA_BITFIELDS if header == INFO and len(masks) > 3 else BITFIELDS
        data = bmp(packed(stored, bits), WIDTH, HEIGHT, bits, compression, header=header, masks=masks)
        expected = np.stack([under(stored, mask) for mask in masks], axis=-1)
        np.testing.assert_array_equal(pixels(data), expected[..., :3])
        assert (pixels(data)[0, 0] == 255).all()  # white
        full = pixels(data, "ANY_DATA")
        if bits == 32 and len(masks) == 3:  # opaque
            expected = np.concatenate((expected, np.full_like(expected[..., :1], 255)), axis=2)
        np.testing.assert_array_equal(full, expected)
        assert peeked(data) == full.shape


@pytest.mark.oracle
def test_masks_against_the_oracle(dali):
    """Bytes in any order, of headers that have a mask for alpha; it takes them for the usual ones in others. Its gray of these is
    rounded down."""
    for name in ("888", "8888", "8888, red first", "8888, alpha last", "888, high"):
        data = bmp(packed(RNG.integers(0, 1 << 32, (HEIGHT, WIDTH), np.uint32), 32), WIDTH, HEIGHT, 32, BITFIELDS,
                   header=V5, masks=MASKS[32][name])  # fmt: skip
        like_the_oracle(dali, data, by_one=("YCbCr", "GRAY"))


def test_five_and_six_bits_as_pillow():
    stored = np.arange(1 << 16).reshape(256, 256)
    for masks in ((), M555, M565):
        data = bmp(packed(stored, 16), 256, 256, 16, BITFIELDS if masks else 0, masks=masks)
        np.testing.assert_array_equal(pixels(data), np.asarray(Image.open(io.BytesIO(data.tobytes()))))
    np.testing.assert_array_equal(pixels(bmp(packed(stored, 16), 256, 256, 16, header=OS2))[127, 255], [255] * 3)


ROWS = [[1] * 7, [2] * 7, [3, 4, 5, 6, 7, 8, 9], [4] * 3 + [5] * 4]
RUNS = [run(7, 1), run(7, 2), literal([3, 4, 5, 6, 7, 8, 9]), run(3, 4) + run(4, 5)]
ROWS4, RUNS4 = [[1, 2, 1, 2, 1, 2, 1], [3] * 7, ROWS[2]], [run(7, 0x12), run(7, 0x33), literal(ROWS[2], 4)]
NOTHING = [0] * 7


def lines(rows, end=END):
    return END_OF_LINE.join(rows) + end


RUN_LENGTHS = {
    "plain": (lines(RUNS), ROWS),
    "no end": (lines(RUNS, b""), ROWS),
    "two ends": (lines(RUNS, END_OF_LINE + END), ROWS),
    "more rows than there are": (lines(RUNS + RUNS), ROWS),
    "a run too long": (lines([run(9, 1), *RUNS[1:]]), ROWS),
    "a run of 255": (lines([run(255, 1), *RUNS[1:]]), ROWS),
    "one run more": (lines([run(7, 1) + run(3, 9), *RUNS[1:]]), ROWS),
    "pixels too many": (lines([*RUNS[:2], literal([*ROWS[2], 10, 11]), RUNS[3]]), ROWS),
    "an odd number of pixels too many": (lines([*RUNS[:2], literal([*ROWS[2], 10, 11, 12]), RUNS[3]]), ROWS),
    "the last row too long": (lines([*RUNS[:3], run(3, 4) + run(9, 5)]), ROWS),
    "every row too long": (lines([r + run(200, 9) + literal([1, 2, 3]) for r in RUNS]), ROWS),
    "a row too short": (lines([run(3, 1), *RUNS[1:]]), [[1] * 3 + [0] * 4, *ROWS[1:]]),
    "an end too early": (lines(RUNS[:2]), [*ROWS[:2], NOTHING, NOTHING]),
    "a jump": (
        run(2, 1) + delta(2, 1) + run(3, 2) + END_OF_LINE + run(7, 3) + END,
        [[1, 1] + [0] * 5, [0] * 4 + [2] * 3, [3] * 7, NOTHING],
    ),
    "a jump aside": (run(2, 1) + delta(3, 0) + run(9, 2) + END_OF_LINE + END, [[1, 1, 0, 0, 0, 2, 2], *[NOTHING] * 3]),
    "a jump far away": (run(2, 1) + delta(200, 200) + run(3, 2) + END, [[1, 1] + [0] * 5, *[NOTHING] * 3]),
    "no ends of rows": (b"".join(RUNS) + END, ROWS),
    "no ends of rows, runs across them": (run(9, 1) + run(19, 2) + END, [[1] * 7, [1] * 2 + [2] * 5, [2] * 7, [2] * 7]),
}


@pytest.mark.parametrize("name", RUN_LENGTHS)
def test_run_lengths(name):
    """What is too much of a row is dropped, as in Pillow; DALI lets it spill into the next one, or refuses the file."""
    body, rows = RUN_LENGTHS[name]
    for header, top_down in ((INFO, False), (V5, False), (INFO, True)):
        data = bmp(body, 7, 4, 8, RLE8, palette=PALETTE, header=header, top_down=top_down)
        expected = PALETTE[np.array(rows if top_down else rows[::-1])]
        np.testing.assert_array_equal(pixels(data), expected)
        np.testing.assert_array_equal(pixels(data, "ANY_DATA"), expected)
    gray = bmp(body, 7, 4, 8, RLE8, palette=RAMP)
    np.testing.assert_array_equal(pixels(gray, "ANY_DATA")[..., 0], rows[::-1])


RUN_LENGTHS4 = {
    "plain": (lines(RUNS4), ROWS4),
    "a run too long": (lines([run(10, 0x12), *RUNS4[1:]]), ROWS4),
    "pixels too many": (lines([*RUNS4[:2], literal([*ROWS[2], 11, 12], 4)]), ROWS4),
    "pixels too many in the first row": (lines([literal([*ROWS4[0], 11, 12, 13, 14], 4), *RUNS4[1:]]), ROWS4),
    "a jump": (
        run(2, 0x12) + delta(2, 1) + run(3, 0x34) + END_OF_LINE + run(7, 0x56) + END,
        [[1, 2] + [0] * 5, [0] * 4 + [3, 4, 3], [5, 6, 5, 6, 5, 6, 5]],
    ),
}


@pytest.mark.parametrize("name", RUN_LENGTHS4)
def test_run_lengths_of_four_bits(name):
    body, rows = RUN_LENGTHS4[name]
    data = bmp(body, 7, 3, 4, RLE4, palette=PALETTE[:16])
    np.testing.assert_array_equal(pixels(data), PALETTE[np.array(rows[::-1])])


@pytest.mark.oracle
def test_run_lengths_against_the_oracle(dali):
    for name in ("plain", "no end", "two ends", "a row too short", "an end too early", "a jump"):
        like_the_oracle(dali, bmp(RUN_LENGTHS[name][0], 7, 4, 8, RLE8, palette=PALETTE))


BODY = packed(np.zeros((HEIGHT, WIDTH), np.uint32), 24)
REFUSED = {
    "a header of 16 bytes": bmp(BODY, WIDTH, HEIGHT, 24, header=OS2_SHORT),
    "3 bits": bmp(BODY, WIDTH, HEIGHT, 3),
    "runs of 8 bits in 4": bmp(lines(RUNS), 7, 4, 4, RLE8, palette=PALETTE[:16]),
    "runs of 4 bits in 8": bmp(lines(RUNS4), 7, 3, 8, RLE4, palette=PALETTE),
    "24 bits under masks": bmp(BODY, WIDTH, HEIGHT, 24, BITFIELDS, masks=M888),
    "a mask with a hole": bmp(BODY, WIDTH, HEIGHT, 16, BITFIELDS, masks=(0x7C00, 0x3E0, 0x1D)),
    "a JPEG inside": bmp(BODY, WIDTH, HEIGHT, 24, 4),
    "a fax": bmp(BODY, WIDTH, HEIGHT, 1, 3, header=OS2_V2, palette=PALETTE[:2]),
    "negative width": bmp(BODY, -WIDTH, HEIGHT, 24),
    "no rows": bmp(BODY, WIDTH, 0, 24),
    "no columns": bmp(BODY, 0, HEIGHT, 24),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    with pytest.raises(RuntimeError, match="expected an encoded image"):
        pixels(REFUSED[name])


def test_cut_off():
    """What pads the last row may be missing, and nothing else."""
    values = RNG.integers(0, 256, (HEIGHT, WIDTH))
    data = bmp(packed(values, 8), WIDTH, HEIGHT, 8, palette=PALETTE)
    np.testing.assert_array_equal(pixels(data[:-1]), PALETTE[values])
    for end in (2, 3, WIDTH, len(data) - 60):
        with pytest.raises(RuntimeError, match="Failed to decode the image of 6x7"):
            pixels(data[:-end])
    runs = bmp(lines(RUNS), 7, 4, 8, RLE8, palette=PALETTE)
    for end in (4, 5, 7, 12):
        with pytest.raises(RuntimeError, match="Failed to decode the image of 4x7"):
            pixels(runs[:-end])


@pytest.mark.oracle
@pytest.mark.parametrize("offset", [0, 13, 54, 62, 2**31, 2**32 - 1])
@pytest.mark.parametrize("bits", [8, 24])
def test_where_pixels_begin(dali, offset, bits):
    """None said: behind the palette. A place inside of the header or the palette counts, one behind the file is damage."""
    values = RNG.integers(0, 256, (HEIGHT, WIDTH))
    data = bmp(packed(values, bits), WIDTH, HEIGHT, bits, offset=offset, palette=PALETTE if bits == 8 else None)
    if offset == 0:
        np.testing.assert_array_equal(pixels(data), PALETTE[values] if bits == 8 else values[..., None] * [0, 0, 1])
    elif offset < 100:
        like_the_oracle(dali, data)
    else:
        with pytest.raises(RuntimeError, match="Failed to decode the image of 6x7"):
            pixels(data)


def changed(data, place, form, number):
    """The file with another number there."""
    data = data.copy()
    data[place : place + struct.calcsize(form)] = np.frombuffer(struct.pack(form, number), np.uint8)
    return data


@pytest.mark.oracle
@pytest.mark.parametrize("planes", [0, 2, 65535])
@pytest.mark.parametrize("bits", [1, 8, 24])
def test_the_number_of_planes_counts_for_nothing(dali, bits, planes):
    values = RNG.integers(0, 1 << bits, (HEIGHT, WIDTH), np.uint32)
    like_the_oracle(
        dali, changed(bmp(packed(values, bits), WIDTH, HEIGHT, bits, palette=PALETTE[: 1 << bits]), 26, "<H", planes)
    )


@pytest.mark.parametrize("colours", [257, 2**31, 2**32 - 1])
@pytest.mark.parametrize("bits", [1, 8])
def test_palettes_that_are_too_large(bits, colours):
    """No library reads them: OpenCV and DALI refuse more than 256 colours."""
    values = RNG.integers(0, 1 << bits, (HEIGHT, WIDTH), np.uint32)
    data = bmp(packed(values, bits), WIDTH, HEIGHT, bits, palette=PALETTE[: 1 << bits], colours=colours)
    assert cv2.imdecode(data, cv2.IMREAD_COLOR) is None
    with pytest.raises(RuntimeError, match="image: sample 0: expected an encoded image"):
        pixels(data)


@pytest.mark.parametrize("size", [(-(2**31), 7), (2**31 - 1, 2**31 - 1), (7, 2**31 - 1)])
def test_sizes_that_lie(size):
    data = bmp(BODY, WIDTH, HEIGHT, 24).copy()
    data[18:26] = np.frombuffer(struct.pack("<ii", size[1], size[0]), np.uint8)
    with pytest.raises(RuntimeError, match=r"expected (an encoded image|at most)|Failed to decode"):
        pixels(data)


def test_the_kernel_stays_in_its_bounds():
    """Run by Python, which knows no memory behind an array."""
    rng = np.random.default_rng(6)
    for _ in range(300):
        data = rng.choice(np.array([0, 1, 2, 3, 5, 9, 200, 255], np.uint8), rng.integers(0, 40))
        for bits in (4, 8):
            for wraps in (False, True):
                out = np.zeros((3, 5), np.uint8)
                with np.errstate(all="raise"):
                    ended, _ = unpack_runs.in_python()(data, bits, wraps, out)
                assert 0 <= ended <= 3


def test_kinds():
    data = bmp(packed(RNG.integers(0, 1 << 24, (HEIGHT, WIDTH), np.uint32), 24), WIDTH, HEIGHT, 24)
    for kind in KINDS:
        for dtype in (ndd.uint8, ndd.uint16, ndd.float32):
            assert pixels(data, kind, dtype=dtype).shape[:2] == (HEIGHT, WIDTH)
    np.testing.assert_array_equal(pixels(data, "BGR"), pixels(data)[..., ::-1])
