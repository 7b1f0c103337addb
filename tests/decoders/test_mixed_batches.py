"""Batches of common JPEGs, which threads decode in turn in compiled code, among all that is left to Python: each picture, and
each error, is that of the picture alone."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from encoded import encode, made, photo, rare
from pictures_alone import alone

import ndd
from ndd._compiled.background import background
from ndd.decoders import picture_batch


@pytest.fixture(autouse=True)
def _compiled(monkeypatch):
    monkeypatch.setattr(background, "allowed", False)


def plain(count=5):
    """JPEGs for the kernel, of different sizes."""
    return [
        encode(np.ascontiguousarray(photo(30 + 7 * k, 90 - 5 * k, k)[..., :3]), "JPEG", subsampling=k % 3)
        for k in range(count)
    ]


def damaged():
    whole = plain(1)[0]
    half = whole[: len(whole) // 2].copy()
    return [half, np.empty(0, np.uint8), np.frombuffer(b"no picture" * 20, np.uint8), made()["rgb.png"][:200].copy()]


def same(batch, expected):
    result = [np.asarray(t) for t in batch.tensors]
    assert len(result) == len(expected)
    for item, other in zip(result, expected, strict=True):
        np.testing.assert_array_equal(item, other)


@pytest.mark.oracle
def test_gray_halfway_between_two_numbers(dali):
    """Where formats round differently."""
    red, green, blue = np.meshgrid(np.arange(0, 256, 4), np.arange(256), np.arange(256), indexing="ij")
    ties = np.stack((red, green, blue), axis=-1)[(299 * red + 587 * green + 114 * blue) % 1000 == 500]
    pixels = ties[: 64 * 64].reshape(64, 64, 3).astype(np.uint8)
    data = [encode(pixels, kind) for kind in ("TIFF", "BMP", "PPM", "PNG")]
    data.append(encode(pixels, "TIFF", compression="jpeg"))
    result = ndd.decoders.image(ndd.batch(data), output_type=ndd.types.GRAY)
    kind = int(ndd.types.GRAY)
    same(result, [np.asarray(dali.decoders.image(dali.tensor(item), device="cpu", output_type=kind)) for item in data])
    assert len({image.tobytes() for image in map(np.asarray, result.tensors[:4])}) == 3


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", ["RGB", "BGR", "GRAY", "YCbCr", "ANY_DATA"])
@pytest.mark.drawn(1)
def test_good_and_bad_ones(kind, threads):
    data = [item for pair in zip(plain(4), damaged(), strict=True) for item in pair]
    data += [*made().values(), rare()["16.ppm"]]
    arguments = {"output_type": getattr(ndd.types, kind)}
    each = [alone(item, **arguments) for item in data]
    good, bad = [e for e in each if not isinstance(e, str)], [i for i, e in enumerate(each) if isinstance(e, str)]
    assert bad == [1, 3, 5, 7]
    names = [f"file {i}" for i in range(len(data))]
    with ndd.EvalContext(num_threads=threads):
        batch = ndd.batch(data)
        skipped = ndd.decoders.image(batch, on_error="skip", **arguments)
        same(skipped, good)
        assert [(d.index, d.error) for d in skipped.dropped] == [(i, each[i]) for i in bad]
        filled = ndd.decoders.image(batch, on_error="fill", **arguments)
        same(filled, [np.zeros_like(np.asarray(filled.tensors[i])) if i in bad else each[i] for i in range(len(data))])
        assert filled.shape[1][:2] == (30, 90)  # its header is whole
        with pytest.raises(RuntimeError, match=f"4 of {len(names)} samples") as caught:
            ndd.decoders.image(batch, **arguments).evaluate()
        assert all(f"sample {i}: {each[i]}" in str(caught.value) for i in bad)


def test_the_name_of_a_bad_file(tmp_path):
    for k, data in enumerate([*plain(3), damaged()[0]]):
        (tmp_path / f"{k}.jpg").write_bytes(data.tobytes())
    for encoded, _ in ndd.readers.File(files=sorted(map(str, tmp_path.iterdir()))).next_epoch(4):
        with pytest.raises(RuntimeError, match=r"sample 3 \(.*3\.jpg\): Failed to decode"):
            ndd.decoders.image(encoded).evaluate()


def test_windows_of_good_and_bad_ones():
    data = [*plain(4), made()["turned_6.jpg"], made()["422_progressive.jpg"], made()["rgb.png"], *damaged()[:2]]
    arguments = {"crop": [20, 25], "crop_pos_x": 0.7, "crop_pos_y": 1.0}
    whole = ndd.decoders.image_crop(ndd.batch(data), on_error="skip", **arguments)
    same(whole, [np.asarray(ndd.decoders.image_crop(ndd.tensor(item), **arguments)) for item in data[:7]])
    assert [d.index for d in whole.dropped] == [7, 8]
    outside = ndd.decoders.image_slice(ndd.batch(plain(3)), [0, 0], [40, 32], axes=[1, 0], on_error="skip")
    same(outside, [np.asarray(ndd.decoders.image(ndd.tensor(item)))[:32, :40] for item in plain(3)[1:]])
    assert [d.index for d in outside.dropped] == [0]


def test_elements_of_other_types():
    for kind in (ndd.float32, ndd.uint16):
        same(ndd.decoders.image(ndd.batch(plain(3)), dtype=kind), [alone(item, dtype=kind) for item in plain(3)])
    same(ndd.decoders.image(ndd.batch(plain(3)), use_fast_idct=True), [alone(o, use_fast_idct=True) for o in plain(3)])


def test_too_many_pixels():
    result = ndd.decoders.image(ndd.batch(plain(3)), max_pixels=30 * 90, on_error="skip")
    same(result, [alone(plain(3)[0])])
    assert [d.index for d in result.dropped] == [1, 2]


def test_pictures_of_one_size_are_one_array():
    data = [encode(np.ascontiguousarray(photo(32, 48, k)[..., :3]), "JPEG") for k in range(3)]
    result = ndd.decoders.image(ndd.batch(data))
    assert result.torch().shape == (3, 32, 48, 3)
    same(result, [alone(item) for item in data])


def with_exif(data, kind, place, order="<", value=6):
    """A JPEG with an orientation in its EXIF: `kind` is the TIFF type of the value, `place` "first" or behind the "frame"."""
    tag = struct.pack(order + "HHI", 274, kind, 1) + struct.pack(order + {1: "B3x", 3: "H2x", 4: "I"}[kind], value)
    tiff = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IH", 8, 1) + tag + bytes(4)
    segment = b"\xff\xe1" + struct.pack(">H", len(tiff) + 8) + b"Exif\0\0" + tiff
    at = 2 if place == "first" else data.tobytes().index(b"\xff\xda")
    return np.frombuffer(data[:at].tobytes() + segment + data[at:].tobytes(), np.uint8)


def test_headers_are_read_as_python_reads_them():
    """Compiled code and Python agree on each picture, whoever reads its header."""
    start, turned = plain(1)[0], 0
    data = [with_exif(start, k, p, o) for k in (1, 3, 4) for p in ("first", "frame") for o in "<>"]
    data += [
        with_exif(start, 3, "first", value=1),
        with_exif(start, 3, "first", value=77),
        with_exif(data[0], 3, "first"),
    ]
    data += [*made().values(), *damaged()]
    for adjust in (True, False):
        result = ndd.decoders.image(ndd.batch(data), adjust_orientation=adjust, on_error="fill")
        for item, picture in zip(data, result.tensors, strict=True):
            expected = alone(item, adjust_orientation=adjust)
            if not isinstance(expected, str):
                np.testing.assert_array_equal(np.asarray(picture), expected)
                turned += expected.shape == (90, 30, 3)
    assert turned == 13


def test_python_works_for_each_batch_and_not_for_each_picture(tasks, monkeypatch):
    monkeypatch.setattr(picture_batch, "decode", None)  # what one picture goes through
    data = [encode(np.ascontiguousarray(photo(200, 300, k)[..., :3]), "JPEG") for k in range(12)]
    with ndd.EvalContext(num_threads=3):
        ndd.decoders.image(ndd.batch(data)).evaluate()
    assert tasks == [3]
