"""Turned JPEGs of a batch, which compiled code turns upright: every orientation gives what it gives alone."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from encoded import photo
from pictures_alone import alone, check_batch, check_windows
from PIL import Image

import ndd
from ndd._compiled.background import background
from ndd._compiled.thread_team import ALONE, joined
from ndd.decoders import turning
from ndd.decoders.pixels import upright


@pytest.fixture(autouse=True)
def _without_fallbacks(monkeypatch):
    monkeypatch.setattr(background, "allowed", False)


def files():
    """All orientations of gray, subsampled and progressive pictures of odd sizes, with upright ones between."""
    for k in range(1, 9):
        for mode, options in (("L", {}), ("RGB", {"subsampling": 2}), ("RGB", {"subsampling": 0, "progressive": True})):
            picture = Image.fromarray(np.ascontiguousarray(photo(70 + 3 * k, 91 - 5 * k)[..., :3])).convert(mode)
            exif, held = Image.Exif(), io.BytesIO()
            exif[274] = k
            picture.save(held, "JPEG", exif=exif, **options)
            yield np.frombuffer(held.getvalue(), np.uint8)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", ["RGB", "BGR", "GRAY", "ANY_DATA"])
@pytest.mark.parametrize("adjust", [True, False])
@pytest.mark.drawn(1)
def test_as_alone(kind, adjust, threads, monkeypatch):
    arguments = {"output_type": getattr(ndd.types, kind), "adjust_orientation": adjust}
    _, by_python = check_batch(monkeypatch, [*files()], threads, **arguments)
    assert not by_python


@pytest.mark.parametrize("kind", ["RGB", "BGR"])
def test_windows_as_alone(kind, monkeypatch):
    windows = (5, 7, 20, 30), (3, 2, 9, 11), (0, 0, 1, 1), (20, 13, 30, 28)
    check_windows(monkeypatch, [*files()], windows, output_type=getattr(ndd.types, kind))


def test_a_damaged_one_among_them():
    data = [*files()]
    data[4] = data[4][: len(data[4]) // 2]
    result: Any = ndd.decoders.image(ndd.batch(data), on_error="skip")
    assert [bad.index for bad in result.dropped] == [4]
    for item, image in zip(data[:4] + data[5:], result.tensors, strict=True):
        np.testing.assert_array_equal(np.asarray(image), alone(item))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_kernel(orientation):
    for height, width, channels in ((1, 1, 3), (1, 70, 1), (65, 3, 4), (33, 64, 3)):
        stored = np.random.default_rng(0).integers(0, 256, (height, width, channels), np.uint8)
        expected = upright(stored, orientation)
        out = np.full(expected.shape, 7, np.uint8)
        row = [stored.ctypes.data, out.ctypes.data, height, width, channels, orientation]
        case = np.array([0, 1]), np.array([row, [0] * 6]), stored.reshape(-1), np.array([True, False])
        assert joined(turning.turn_loop)(ALONE, 0, np.array([0]), 2, case)
        np.testing.assert_array_equal(out, expected)
