"""TIFFs that libtiff reads too, but more slowly: the same pixels. LZW and PackBits chunks are unpacked as libtiff unpacks them,
and left to it where they are unusual or damaged."""

from __future__ import annotations

import io

import numpy as np
import pytest
from encoded import KINDS
from PIL import Image

import ndd
from ndd.decoders.backends import libzstd, pillow, tiff, tiff_packbits
from ndd.decoders.backends.tiff_lzw import unpack
from ndd.decoders.headers.tiff_directory import Directory
from ndd.decoders.png import libdeflate

RNG = np.random.default_rng(7)
ALL_STRINGS = np.arange(1 << 16, dtype=np.uint16).view(np.uint8).reshape(256, 512)
PICTURES = {
    "noise": RNG.integers(0, 256, (120, 133, 3), np.uint8),
    "one colour": np.full((300, 400, 3), 77, np.uint8),  # strings of thousands of bytes
    "a ramp": np.arange(90 * 70 * 3, dtype=np.uint32).reshape(90, 70, 3).astype(np.uint8),
    "steps": np.repeat(RNG.integers(0, 256, (40, 9, 3), np.uint8), 31, axis=1),
    "one pixel": np.array([[[3, 2, 1]]], np.uint8),
    "gray": RNG.integers(0, 4, (65, 3000), np.uint8),
    "all pairs": ALL_STRINGS,
}


def saved(array, compression="tiff_lzw", mode=None, **options):
    file = io.BytesIO()
    picture = Image.fromarray(array)
    (picture if mode is None else picture.convert(mode)).save(file, "tiff", compression=compression, **options)
    return np.frombuffer(file.getvalue(), np.uint8)


def chunks_of(data):
    """The compressed chunks of a file, and how many bytes each becomes."""
    directory = Directory(data.data)
    layout = tiff._layout(directory, tiff._tags(directory), len(data))
    row = layout.columns * layout.depth
    for k, (place, size) in enumerate(zip(layout.places, layout.sizes, strict=True)):
        yield data[place : place + size], min(layout.rows, layout.height - k * layout.rows), row


def by_libtiff(chunk, rows, row, compression=tiff._LZW):
    """The bytes of a chunk as Pillow's libtiff unpacks it; None if it refuses it."""
    try:
        with pillow.opened(tiff._alone(chunk, rows, row, compression), "tiff") as picture:
            return np.asarray(picture).reshape(-1)
    except Exception:  # of many kinds
        return None


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("predictor", [1, 2])
@pytest.mark.drawn(2)
def test_pixels(name, predictor, monkeypatch):
    array = PICTURES[name]
    data = saved(array, tiffinfo={317: predictor})
    for chunk, rows, row in chunks_of(data):
        assert unpack(chunk, np.empty(rows * row, np.uint8))
    images = {}
    for by_pillow in (True, False):
        if by_pillow:
            monkeypatch.setattr(tiff, "_is_plain", lambda tags: False)
        else:
            monkeypatch.undo()
            monkeypatch.setattr(pillow, "opened", lambda *_: pytest.fail("Pillow got the bytes"))
        for kind in KINDS:
            options = {"output_type": getattr(ndd.types, kind)}
            images[kind, by_pillow] = np.asarray(ndd.decoders.image(ndd.tensor(data), **options))
    for kind in KINDS:
        np.testing.assert_array_equal(images[kind, False], images[kind, True])
    stored = array if array.ndim == 3 else array[:, :, None]
    np.testing.assert_array_equal(images["ANY_DATA", False], stored)


COMPRESSIONS = "raw", "tiff_adobe_deflate", "tiff_deflate", "tiff_lzw", "packbits", "zstd"


def of_both(data, monkeypatch, kinds=KINDS, alone=False):
    """Pixels of each kind, and those that Pillow's libtiff gives; None for an error. `alone`: the first ones without Pillow."""
    for kind in kinds:
        images: list = []
        for by_pillow in (False, True):
            with monkeypatch.context() as patch:
                if by_pillow:
                    patch.setattr(tiff, "_is_plain", lambda tags: False)
                elif alone:
                    patch.setattr(pillow, "opened", lambda *_: pytest.fail("Pillow got the file"))
                try:
                    images.append(
                        np.asarray(ndd.decoders.image(ndd.tensor(data), output_type=getattr(ndd.types, kind)))
                    )
                except RuntimeError:
                    images.append(None)
        yield images


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("library", ["libdeflate", "zlib"])
@pytest.mark.drawn(1)
def test_plain_files_as_by_libtiff(compression, mode, library, monkeypatch):
    if library == "zlib":
        monkeypatch.setattr(tiff, "inflated", lambda chunk, size: None)
    elif not libdeflate.available():
        pytest.skip("no wheel here has libdeflate")
    for size in ((1, 1), (1, 9), (37, 1), (120, 133)):
        for more in ({}, {317: 2}, {278: 7}, {274: 6}):
            if 317 in more and compression in ("raw", "packbits"):
                continue  # Pillow ignores it
            if compression == "zstd" and not libzstd.available():
                pytest.skip("Pillow's wheel has no libzstd of its own")
            data = saved(PICTURES["noise"][: size[0], : size[1]], compression, mode, tiffinfo=more)
            for ours, theirs in of_both(data, monkeypatch, alone=True):
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.drawn(1)
def test_damaged_files_as_by_libtiff(compression, monkeypatch):
    """What libtiff refuses is refused; Pillow also refuses some changes of the directory, which comes after compressed pixels."""
    good, rng = saved(PICTURES["steps"][:30, :40], compression), np.random.default_rng(2)
    end = len(good) if compression == "raw" else int(good[4:8].view("<u4")[0])
    for trial in range(40):
        data = good.copy()
        if trial % 4 == 0:
            data = data[: rng.integers(8, len(data))]
        data[rng.integers(8, min(end, len(data)), trial % 3)] = rng.integers(0, 256, trial % 3)
        for ours, theirs in of_both(data, monkeypatch, ["RGB"]):
            assert (ours is None) == (theirs is None)
            if theirs is not None:
                np.testing.assert_array_equal(ours, theirs)


def test_run_lengths_as_by_libtiff():
    """Runs that are cut off, longer than the chunk, or none at all; `None` is what libtiff refuses."""
    for codes, expected in {
        (2, 7, 8, 9, 255, 4): [7, 8, 9, 4, 4], (128, 254, 6, 128, 1, 2, 3): [6, 6, 6, 2, 3], (129, 5): [5] * 5,
        (3, 1, 2, 3, 4, 200, 9): [1, 2, 3, 4, 9], (127, 1, 2, 3, 4, 5): [1, 2, 3, 4, 5], (2, 7, 8, 9): None,
        (2, 7, 8, 9, 255): None, (4, 1, 2, 3, 4): None, (128,): None, (3, 1, 2, 3, 4, 128): None,
    }.items():  # fmt: skip
        chunk, out = np.array(codes, np.uint8), np.zeros(5, np.uint8)
        assert tiff_packbits.unpack(chunk, out) == (expected is not None), codes
        by_library = by_libtiff(chunk, 1, 5, tiff._PACKBITS)
        assert (by_library is None) == (expected is None), codes
        if expected is not None:
            np.testing.assert_array_equal(out, expected)
            np.testing.assert_array_equal(by_library, expected)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.drawn(2)
def test_turned(orientation, monkeypatch):
    data = saved(PICTURES["noise"], tiffinfo={274: orientation})
    for kind in KINDS:
        options = {"output_type": getattr(ndd.types, kind)}
        ours = np.asarray(ndd.decoders.image(ndd.tensor(data), **options))
        with monkeypatch.context() as patch:
            patch.setattr(tiff, "_is_plain", lambda tags: False)
            np.testing.assert_array_equal(ours, np.asarray(ndd.decoders.image(ndd.tensor(data), **options)))


@pytest.mark.parametrize("name", ["noise", "steps", "one colour"])
@pytest.mark.drawn(1)
def test_damaged_chunks_are_unpacked_as_by_libtiff_or_left_to_it(name):
    chunk, rows, row = next(chunks_of(saved(PICTURES[name])))
    rng = np.random.default_rng(3)
    regular = 0
    for trial in range(200):
        damaged = chunk.copy()
        if trial % 4 == 0:
            damaged = damaged[: rng.integers(0, len(chunk))]
        if len(damaged):
            damaged[rng.integers(0, len(damaged), 1 + trial % 3)] = rng.integers(0, 256, 1 + trial % 3)
        room = np.full(rows * row + 64, 165, np.uint8)
        if unpack(damaged, room[:-64]):
            regular += 1
            np.testing.assert_array_equal(room[:-64], by_libtiff(damaged, rows, row))
        assert (room[-64:] == 165).all()  # nothing is written beyond the end
    assert regular < 200
    assert regular or name == "one colour"


def test_unusual_streams():
    """No clear code at first, an end before it is full, strings that are not there yet, and a table that is never cleared."""

    def packed(codes, widths):
        bits = "".join(format(code, f"0{width}b") for code, width in zip(codes, widths, strict=True))
        return np.packbits(np.array(list(bits), np.uint8))

    def widths(count):
        """Of the codes after a clear one: each but the first adds a string."""
        return [9 if k < 254 else 10 if k < 766 else 11 if k < 1790 else 12 for k in range(count)]

    out = np.empty(4, np.uint8)
    for codes, good in {
        (256, 1, 2, 3, 4): True, (256, 256, 1, 258, 2): True, (256, 1, 258, 259): True, (1, 2, 3, 4): False,
        (256, 1, 2, 257): False, (256, 1, 259): False, (256, 258): False, (256, 1, 2, 3): False, (): False,
    }.items():  # fmt: skip
        assert unpack(packed(codes, [9] * len(codes)), out) == good, codes
    for count in (3838, 3839, 5000):  # strings 258 to 4095, and more
        literals = [k % 251 for k in range(count)]
        chunk, out = packed([256, *literals], [9, *widths(count)]), np.empty(count, np.uint8)
        if unpack(chunk, out):
            np.testing.assert_array_equal(out, literals)
        assert unpack(chunk, out) == (count <= 3839)
