"""imread: io.file.read and decoders.image in one."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ndd


@pytest.fixture
def files(tmp_path):
    result = []
    for i, (h, w) in enumerate([(20, 30), (31, 17)]):
        pixels = np.random.default_rng(i).integers(0, 255, (h, w, 3), np.uint8)
        result.append(tmp_path / f"{i}.png")
        Image.fromarray(pixels).save(result[-1])
    return result


def test_spellings_of_paths(files):
    expected = np.asarray(Image.open(files[0]))
    characters = np.frombuffer(str(files[0]).encode(), np.uint8)
    for path in (files[0], str(files[0]), str(files[0]).encode(), characters, ndd.tensor(characters)):
        out = ndd.imread(path)
        assert isinstance(out, ndd.Tensor)
        np.testing.assert_array_equal(np.asarray(out), expected)
    for paths in (files, [str(f) for f in files], tuple(files)):
        out = ndd.imread(paths)
        assert isinstance(out, ndd.Batch)
        assert out.shape == [(20, 30, 3), (31, 17, 3)]
    first, second = (np.frombuffer(str(f).encode(), np.uint8) for f in files)
    for paths in (
        [ndd.tensor(first), ndd.tensor(second)],
        [files[0], ndd.tensor(second)],
        [ndd.tensor(first.view(np.int8)), str(files[1])],
        [first, second],
    ):
        assert ndd.imread(paths).shape == [(20, 30, 3), (31, 17, 3)]
    assert ndd.imread(ndd.batch([np.frombuffer(str(f).encode(), np.uint8) for f in files])).batch_size == 2


def test_arguments_reach_the_decoder(files):
    out = ndd.imread(files, output_type=ndd.types.GRAY, dtype=ndd.float32, device="cpu")
    assert out.shape == [(20, 30, 1), (31, 17, 1)]
    assert out.dtype == ndd.float32
    decoder = set(inspect.signature(ndd.decoders.image).parameters) - {"input", "batch_size"}
    assert set(inspect.signature(ndd.imread).parameters) - {"filepaths"} == decoder


def test_errors(files, tmp_path):
    with pytest.raises(RuntimeError, match=r"missing\.png"):
        ndd.imread([files[0], tmp_path / "missing.png"]).evaluate()
    with pytest.raises(ValueError, match="empty"):
        ndd.imread([])
    with pytest.raises(TypeError, match="expected a path"):
        ndd.imread(3)


def test_skip_and_fill_cover_files_that_are_not_there(files, tmp_path):
    paths = [files[0], tmp_path / "missing.png", files[1]]
    out = ndd.imread(paths, on_error="skip")
    assert out.shape == [(20, 30, 3), (31, 17, 3)]
    assert [(b.index, Path(b.source).name) for b in out.dropped] == [(1, "missing.png")]
    assert ndd.imread(paths, on_error="fill").shape == [(20, 30, 3), (1, 1, 3), (31, 17, 3)]
