"""TIFFs of a batch, which compiled code decodes: every kind, in every output type, gives what it gives alone."""

from __future__ import annotations

import io
import itertools
from typing import Any

import numpy as np
import pytest
from encoded import KINDS
from picture_writers.tiff import CMYK, DEFLATE, GRAY, LZW, NONE, OLD_DEFLATE, PACKBITS, PALETTE, RGB, tiff
from pictures_alone import alone, check_batch, check_damage, check_windows, counted
from PIL import Image
from selection import drawn

import ndd
from ndd._compiled.background import background
from ndd.decoders import picture_batch
from ndd.decoders.backends import libzstd
from ndd.decoders.jpeg.batch_headers import CHANNELS, HEIGHT, WIDTH
from ndd.decoders.png import libdeflate
from ndd.decoders.tiff import directory

RNG = np.random.default_rng(3)
NOISE = RNG.integers(0, 256, (41, 53, 3), np.uint8)
SMOOTH = np.repeat(RNG.integers(0, 256, (41, 9, 3), np.uint8), 7, axis=1)


@pytest.fixture(autouse=True)
def _without_fallbacks(monkeypatch):
    monkeypatch.setattr(background, "allowed", False)
    if not libdeflate.available():
        pytest.skip("no wheel here has libdeflate")


def common_files():
    """Those that compiled code decodes."""
    for channels, compression, order in itertools.product((1, 3), (NONE, LZW, DEFLATE, OLD_DEFLATE, PACKBITS), "<>"):
        for layout, predictor in (({"rows": 7}, 1), ({"rows": 500}, 2), ({"tile": 16}, 2), ({"tile": 64}, 1)):
            pixels = (NOISE if predictor == 1 else SMOOTH)[..., :channels]
            colours = GRAY if channels == 1 else RGB
            unpredicted = {"predictor": predictor if compression not in (NONE, PACKBITS) else 1}
            yield tiff(pixels, colours=colours, compression=compression, order=order, **layout, **unpredicted)  # type: ignore[arg-type]
    inks = np.concatenate((NOISE, SMOOTH[:, :53, :1]), axis=2)
    for compression, layout in ((NONE, {"rows": 7}), (LZW, {"rows": 500, "predictor": 2}), (DEFLATE, {"tile": 16})):
        yield tiff(inks, colours=CMYK, compression=compression, **layout)  # type: ignore[arg-type]


def rare_files():
    """Those that Python decodes."""
    yield tiff(NOISE, colours=RGB, orientation=6)
    yield tiff(NOISE, colours=RGB, planes=True)
    yield tiff(NOISE, colours=RGB, big=True)
    yield tiff(NOISE, colours=RGB, fill_order=2)
    yield tiff(NOISE.astype(np.uint16) << 8, bits=16, colours=RGB)
    yield tiff(NOISE[..., :1] >> 4, bits=4)
    yield tiff(NOISE[..., :1], colours=PALETTE, tags={320: [*range(768)]})
    yield tiff(NOISE[..., [0, 1, 2, 0]], colours=RGB)
    yield tiff(NOISE[..., :1], colours=0)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.drawn(1)
def test_every_kind_as_alone(kind, threads, monkeypatch):
    common, rare = [*common_files()], [*rare_files()]
    data = [*rare[:5], *common, *rare[5:]]
    _, by_python = check_batch(monkeypatch, data, threads, output_type=getattr(ndd.types, kind))
    assert by_python == (len(data) if kind == "YCbCr" else len(rare))


def test_zstandard(monkeypatch):
    if not libzstd.available():
        pytest.skip("Pillow's wheel has no libzstd of its own")
    files = []
    for predictor in (1, 2):
        held = io.BytesIO()
        Image.fromarray(SMOOTH).save(held, "tiff", compression="zstd", tiffinfo={278: 7, 317: predictor})
        files.append(np.frombuffer(held.getvalue(), np.uint8))
    by_python = counted(monkeypatch)
    result: Any = ndd.decoders.image(ndd.batch(files))
    for image in result.tensors:
        np.testing.assert_array_equal(np.asarray(image), SMOOTH)
    assert not by_python


@pytest.mark.parametrize("kind", ["RGB", "BGR", "GRAY", "ANY_DATA"])
@pytest.mark.drawn(1)
def test_windows_as_alone(kind, monkeypatch):
    windows = (3, 2, 9, 11), (0, 0, 1, 1), (16, 16, 16, 16), (5, 0, 36, 53), (40, 52, 1, 1)
    check_windows(monkeypatch, [*common_files()], windows, output_type=getattr(ndd.types, kind))


def test_only_the_part_that_is_used_is_unpacked(monkeypatch):
    """A strip outside the crop may be damaged."""
    data = tiff(NOISE, colours=RGB, compression=DEFLATE, rows=7)
    bad = data.copy()
    bad[10:30] ^= 0x5A  # of the first strip
    assert isinstance(alone(bad), str)
    by_python = counted(monkeypatch)
    place = {"axes": (0, 1), "normalized_anchor": False, "normalized_shape": False}
    windows: Any = ndd.decoders.image_slice(ndd.batch([data, bad]), [7, 0], [34, 53], **place)
    for window in windows.tensors:
        np.testing.assert_array_equal(np.asarray(window), NOISE[7:])
    crop: Any = ndd.crop(ndd.decoders.image(ndd.batch([data, bad])), crop=(20, 20), crop_pos_y=1.0)
    np.testing.assert_array_equal(np.asarray(crop.tensors[1]), np.asarray(crop.tensors[0]))
    assert not by_python


def damaged_files():
    for order, layout in (("<", {"rows": 7}), (">", {"tile": 16})):
        for compression in (NONE, LZW, DEFLATE, PACKBITS):
            whole = tiff(NOISE, colours=RGB, compression=compression, order=order, **layout)  # type: ignore[arg-type]
            yield from (whole[:k] for k in (7, 9, len(whole) // 3, len(whole) - 30))
            start = int.from_bytes(whole[4:8].tobytes(), "little" if order == "<" else "big")
            for entry in range(start + 2, len(whole) - 4, 12):
                for k in drawn((0, 1, 3, 5, 8, 9, 11), 4, "damage", order, compression, entry):
                    changed = whole.copy()
                    changed[entry + k] ^= 0x15
                    yield changed


@pytest.mark.filterwarnings("ignore:Tag data larger")
def test_damage_is_what_it_is_alone():
    data = [item for k, bad in enumerate(damaged_files()) for item in ((bad, tiff(NOISE)) if k % 9 == 0 else (bad,))]
    check_damage(data, 100, max_pixels=1 << 22)


def test_a_few_bytes_do_not_claim_gigabytes(monkeypatch):
    """A header of 6,000 x 6,000 with nearly nothing behind it: no memory is asked for before a chunk has been unpacked."""
    lies = tiff(NOISE, colours=RGB, compression=DEFLATE, rows=41, tags={256: [6000], 257: [6000], 278: [6000]})
    asked, room = [], picture_batch.host_empty
    monkeypatch.setattr(picture_batch, "host_empty", lambda shape, dtype: asked.append(shape[0]) or room(shape, dtype))
    good = tiff(NOISE, colours=RGB)
    result: Any = ndd.decoders.image(ndd.batch([lies, good, good]), on_error="skip")
    assert result.batch_size == 2
    assert max(asked) < 100_000


def overlapping(count, strip):
    """`count` rows of a pixel, all by one strip, which comes after the directory."""
    pixels, place = np.zeros((count, 1, 1), np.uint8), 0
    for _ in range(2):
        tags = {259: [LZW], 273: [place] * count, 279: [len(strip)] * count}
        data = tiff(pixels, rows=1, tags=tags)
        place = len(data)
    return np.concatenate((data, np.frombuffer(strip, np.uint8)))


@pytest.mark.timeout(60)
def test_chunks_on_top_of_one_another():
    """A strip of two megabytes that clears its table again and again, read 5,000 times: it would take a minute."""
    cleared, seven = "100000000" * 8, "000000111"
    codes = int(cleared, 2).to_bytes(9, "big")
    last = int((cleared + seven).ljust(88, "0"), 2).to_bytes(11, "big")
    bomb, shared = overlapping(5_000, codes * (2 << 20) + last), overlapping(500, last)
    assert "damaged" in alone(bomb)
    result: Any = ndd.decoders.image(ndd.batch([shared, bomb, shared]), on_error="skip", output_type=ndd.types.GRAY)
    assert [bad.index for bad in result.dropped] == [1]
    for image in result.tensors:
        assert (np.asarray(image) == 7).all()


@pytest.mark.parametrize(
    ("tags", "is_common"),
    [
        ({}, True), ({278: None}, False), ({278: [1 << 31]}, False), ({258: [8, 8]}, False), ({258: [8, 8, 7]}, False),
        ({277: [4]}, False), ({262: [3]}, False), ({339: None}, True), ({339: [1, 1, 2]}, False), ({284: [2]}, False),
        ({317: [2]}, True), ({317: [3]}, True), ({256: [1 << 20]}, False), ({257: [0]}, False), ({279: None}, False),
        ({330: [1, 2, 3]}, True), ({338: [0]}, False), ({322: [16]}, False), ({323: [16]}, False),
    ],
)  # fmt: skip
def test_which_files_are_common(tags, is_common):
    """With one strip a file may lack its rows, and no predictor applies to what is not compressed."""
    layout = np.empty(directory.LAYOUT, np.int64)
    assert directory.read_layout(tiff(NOISE, colours=RGB, rows=7, tags=tags), layout) == is_common
    one_strip = {**tags, 278: tags.get(278, [41])}
    one = directory.read_layout(tiff(NOISE, colours=RGB, rows=41, tags=one_strip), layout)
    assert one == (is_common or 278 in tags)
    if one:
        assert layout[[HEIGHT, WIDTH, CHANNELS, directory.CHUNK_ROWS]].tolist() == [41, 53, 3, 41]
