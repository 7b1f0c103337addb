"""dump_image: the files are byte for byte the oracle's; the image passes through."""

from __future__ import annotations

import numpy as np
import pytest
from compare import outcome
from PIL import Image

import ndd

REGISTRY_CASES = {"dump_image": []}  # it writes to the working directory


def pictures():
    rng = np.random.default_rng(3)
    return [rng.integers(0, 256, s).astype(np.uint8) for s in ((4, 5, 3), (1, 1, 3), (2, 7, 1), (3, 0, 3), (0, 3, 1))]


def files(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def both(dali, monkeypatch, tmp_path, call):
    """The outcomes of a call with both libraries, and the files that each wrote."""
    result = []
    for module in (ndd, dali):
        folder = tmp_path / module.__name__
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        result.append((outcome(module, call), files(folder)))
    return result


@pytest.mark.oracle
@pytest.mark.parametrize("suffix", ["", "after flip"])
def test_files_are_those_of_the_oracle(dali, monkeypatch, tmp_path, suffix):
    def call(module):
        return module.dump_image(module.batch(pictures(), layout="HWC"), suffix=suffix)

    (ours, own), (_, theirs) = both(dali, monkeypatch, tmp_path, call)
    assert own == theirs
    assert sorted(own) == [f"{i}-{suffix}-0.ppm" for i in range(5)]
    assert (ours.layout, ours.dtype) == ("HWC", ndd.uint8)
    for a, b in zip(ours.tensors, pictures(), strict=True):
        np.testing.assert_array_equal(np.asarray(a), b)


@pytest.mark.oracle
def test_a_layout_is_not_looked_at(dali, monkeypatch, tmp_path):
    planes = np.arange(2 * 4 * 3, dtype=np.uint8).reshape(2, 4, 3)
    for layout in (None, "CHW", "XYZ"):
        (ours, own), (_, theirs) = both(
            dali, monkeypatch, tmp_path, lambda module, x=layout: module.dump_image(module.tensor(planes, layout=x))
        )
        assert own == theirs
        assert ours.layout == layout


def test_other_programs_read_them(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    ndd.dump_image(ndd.batch(pictures()[:3])).evaluate()
    for i, picture in enumerate(pictures()[:3]):
        read = np.asarray(Image.open(f"{i}--0.ppm"))
        np.testing.assert_array_equal(read.reshape(picture.shape), picture)


def test_each_call_writes_again(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for value in (1, 2):
        ndd.dump_image(np.full((1, 1, 1), value, np.uint8)).evaluate()
        assert files(tmp_path) == {"0--0.ppm": b"P2\n1 1\n255\n%d \n" % value}


def test_one_image_for_a_batch(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert ndd.dump_image(pictures()[0], batch_size=2).evaluate().batch_size == 2
    assert len(files(tmp_path)) == 2


def test_gpu(monkeypatch, tmp_path, emulated_gpu):
    for place in ("cpu", "gpu"):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        passed = ndd.dump_image(ndd.batch(pictures(), device=place)).evaluate()
        assert passed.device.device_type == place
        for a, b in zip(passed.tensors, pictures(), strict=True):
            np.testing.assert_array_equal(np.asarray(a.cpu()), b)
    assert files(tmp_path / "cpu") == files(tmp_path / "gpu")


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("image", "arguments"),
    [
        (np.zeros((2, 2, 2), np.uint8), {}),
        (np.zeros((2, 2, 4), np.uint8), {}),
        (np.zeros((2, 2), np.uint8), {}),
        (np.zeros((1, 2, 2, 3), np.uint8), {}),
        (np.zeros((2, 2, 3), np.float32), {}),
        (np.zeros((2, 2, 3), np.uint16), {}),
        (np.zeros((2, 2, 3), bool), {}),
        (np.zeros((3, 2, 2), np.uint8), {"input_layout": "CHW"}),
        (np.zeros((2, 2, 3), np.uint8), {"suffix": "no/such/folder"}),
    ],
)
def test_misuse(dali, monkeypatch, tmp_path, image, arguments):
    def call(module):
        return module.dump_image(image, **arguments)

    (ours, own), (theirs, other) = both(dali, monkeypatch, tmp_path, call)
    assert type(ours) is type(theirs) is RuntimeError
    assert "dump_image" in str(ours)
    assert own == other == {}


def test_a_bad_image_does_not_keep_the_others_from_being_written(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    good, bad = pictures()[0], np.zeros((1, 1, 2), np.uint8)
    with pytest.raises(RuntimeError, match=r"dump_image: sample 1.*1 or 3 channels, got 2"):
        ndd.dump_image(ndd.batch([good, bad, good])).evaluate()
    assert sorted(files(tmp_path)) == ["0--0.ppm", "2--0.ppm"]
