"""`ndd.jitter`: where pixels come from, on the CPU and the GPU."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from cases import each_of

import ndd
from ndd._compiled.background import background
from ndd._compiled.sample_loops import _by_fallback
from ndd._operator import partition
from ndd.random import RNG

REGISTRY_CASES = {
    "jitter": each_of({}, layouts=("HWC",), dtypes=("uint8",), oracle=False),
}


def numbered(height, width):
    """An image whose two channels are the y and x of each pixel."""
    return np.stack(np.mgrid[0:height, 0:width], axis=-1).astype(np.float32)


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 7])
def test_pixels_move_by_what_is_allowed(degree, stats):
    image = numbered(120, 150)
    moved = np.array(ndd.jitter(ndd.tensor(image, layout="HWC"), nDegree=degree, fill_value=-1000, rng=RNG(5)))
    image, moved = image.astype(int), moved.astype(int)
    offset = (moved - image)[moved[..., 0] >= 0]
    reach = degree // 2
    assert np.abs(offset).max() == reach
    if reach:
        inner = (moved - image)[reach:-reach, reach:-reach]
        for k in range(2):
            counts = np.bincount(inner[..., k].ravel() + reach, minlength=2 * reach + 1)
            assert stats.chisquare(counts).pvalue > 1e-3
        assert abs(np.corrcoef(inner[..., 0].ravel(), inner[..., 1].ravel())[0, 1]) < 0.03
        assert (moved[..., 0] == -1000).any()


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "float32", "float64", "bool"])
@pytest.mark.drawn(1)
def test_cpu_and_gpu_agree(dtype, emulated_gpu):
    images = [np.random.default_rng(i).integers(0, 2, (9 + i, 14, 3)).astype(dtype) for i in range(3)]
    batch = ndd.batch(images, layout="HWC")
    result = [
        ndd.jitter(b, mask=ndd.batch([1, 0, 1]), nDegree=5, fill_value=1.0, rng=RNG(2)) for b in (batch, batch.gpu())
    ]
    for a, b in zip(*(f.tensors for f in result), strict=True):
        np.testing.assert_array_equal(np.array(a), np.array(b.cpu()))
    np.testing.assert_array_equal(np.array(result[0].tensors[1]), images[1])


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_the_same_while_the_kernel_is_compiled(channels, monkeypatch):
    rng = np.random.default_rng(channels)
    images = [rng.integers(0, 256, (*s, channels), np.uint8) for s in ((40, 70), (3, 2500), (2100, 1), (0, 4), (5, 0))]

    def call():
        jittered = ndd.jitter(ndd.batch(images, layout="HWC"), nDegree=5, fill_value=9, rng=RNG(3))
        return [np.asarray(item) for item in jittered.evaluate()]

    monkeypatch.setattr(background, "allowed", False)
    compiled = call()
    monkeypatch.setattr(partition, "loop_over_samples", lambda item: functools.partial(_by_fallback, item))
    for item, other in zip(compiled, call(), strict=True):
        np.testing.assert_array_equal(item, other)


def test_videos_and_shapes():
    video = np.random.default_rng(0).integers(0, 256, (3, 8, 9, 3), np.uint8)
    moved = ndd.jitter(ndd.tensor(video, layout="FHWC"), rng=RNG(2))
    assert (moved.shape, moved.layout, moved.dtype) == (video.shape, "FHWC", ndd.uint8)
    assert not np.array_equal(np.array(moved)[0] - video[0], np.array(moved)[1] - video[1])
    for shape in ((1, 1, 3), (0, 5, 3), (1, 7, 1)):
        assert ndd.jitter(np.ones(shape, np.uint8), rng=RNG(2)).shape == shape
    with pytest.raises(RuntimeError, match="nDegree"), ndd.EvalMode.sync_cpu:
        ndd.jitter(np.ones((2, 2, 3), np.uint8), nDegree=-1)
