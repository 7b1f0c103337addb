"""peek_image_shape: what the header says, against the oracle and against the decoder."""

from __future__ import annotations

import io

import numpy as np
import pytest
from cases import each_of
from encoded import KINDS, made, needs_files, read, real
from PIL import Image

import ndd
from ndd.decoders.jpeg.batch_headers import PEEKED, peek
from ndd.decoders.jpeg.header import read_header as jpeg
from ndd.demo.folder import PHOTOS
from ndd.ops.image.peek_image_shape import peek_image_shape

REGISTRY_CASES = {
    "peek_image_shape": each_of({}, inputs=("jpeg",), dtypes=("float32",)),
}

# Headers that DALI does not read, or that say a height of 0.
OWN = {"still.gif", "not_enough_data.jp2", "zero_height.j2k", "truncated_half.png", "broken_data_stream.png"}


def check(dali, data, name):
    for kind in KINDS:
        number = getattr(ndd.types, kind)
        for adjust in (True, False):
            with dali.EvalMode.sync_cpu:
                try:
                    shape = dali.peek_image_shape(dali.tensor(data), image_type=int(number), adjust_orientation=adjust)
                    expected = np.asarray(shape).tolist()
                except RuntimeError:
                    with pytest.raises(RuntimeError):
                        peek_image_shape(data, image_type=number, adjust_orientation=adjust).evaluate()
                    continue
            result = peek_image_shape(data, image_type=number, adjust_orientation=adjust)
            assert np.asarray(result).tolist() == expected, (name, kind, adjust)


@pytest.mark.oracle
def test_made_files_against_the_oracle(dali):
    for name, data in made().items():
        check(dali, data, name)


@pytest.mark.oracle
@needs_files
def test_real_files_against_the_oracle(dali):
    for path in real("formats/*/*") + real("broken/*"):
        if path.name not in OWN:
            check(dali, read(path), path.name)


@needs_files
def test_the_decoder_agrees():
    for path in real("formats/*/*"):
        data = read(path)
        for kind in KINDS:
            number = getattr(ndd.types, kind)
            try:
                shape = ndd.decoders.image(data, output_type=number).shape
            except RuntimeError:
                continue
            assert tuple(np.asarray(peek_image_shape(data, image_type=number))) == shape, (path.name, kind)


def test_types():
    data = made()["420.jpg"]
    assert peek_image_shape(data).dtype == ndd.int64
    for dtype in (ndd.int32, ndd.uint32, ndd.int64, ndd.uint64, ndd.float32, ndd.float64):
        result = peek_image_shape(data, dtype=dtype)
        assert result.dtype == dtype
        assert np.asarray(result).tolist() == [40, 56, 3]
    for dtype in (ndd.uint8, ndd.int16, ndd.float16, ndd.bool, ndd.bfloat16):
        with pytest.raises(RuntimeError, match="Expected one of"):
            peek_image_shape(data, dtype=dtype).evaluate()
    batch = peek_image_shape(ndd.batch([data, made()["odd.jpg"]]))
    assert [np.asarray(t).tolist() for t in batch.tensors] == [[40, 56, 3], [33, 47, 3]]


def test_it_runs_on_the_cpu_only(emulated_gpu):
    with pytest.raises(ValueError, match="CPU"):
        peek_image_shape(made()["420.jpg"], device="gpu")


def test_huge_pictures_are_no_error_here():
    data = made()["420.jpg"].copy()
    place = data.tobytes().index(b"\xff\xc0") + 5
    data[place : place + 4] = [0xEA, 0x60, 0xEA, 0x60]
    assert np.asarray(peek_image_shape(data)).tolist() == [60000, 60000, 3]


def test_the_compiled_look_sees_what_python_sees():
    """Files that end anywhere, and such with a changed byte: what is told at all is what the header says."""
    rng = np.random.default_rng(4)
    photograph = np.fromfile(PHOTOS / "nature" / "flower.jpg", np.uint8)
    stream = io.BytesIO()
    exif = Image.Exif()
    exif[274] = 6
    Image.fromarray(np.zeros((5, 7, 3), np.uint8)).save(stream, "JPEG", exif=exif)
    turned = np.frombuffer(stream.getvalue(), np.uint8)
    files = [photograph, turned, *[photograph[:k] for k in range(700)]]
    for _ in range(1000):
        changed = photograph[:800].copy()
        changed[rng.integers(2, 700)] = rng.choice([0, 1, 0xFF, 0xD9, 0xDA, 0xE1, 0xC4, 0xC2])
        files.append(changed)
    seen = np.empty((len(files), 3), np.int64)
    addresses, sizes = np.array([f.ctypes.data for f in files]), np.array([len(f) for f in files])
    peek.waited_for(addresses, sizes, np.empty(PEEKED, np.uint8), seen)
    assert seen[0].all()
    assert not seen[1].any()  # Python turns it
    assert 500 < np.count_nonzero(seen.all(axis=1)) < len(files)
    for file, result in zip(files, seen, strict=True):
        if result.all():
            header = jpeg(file.data)
            assert (header.height, header.width, header.channels, header.orientation) == (*result, 1)
