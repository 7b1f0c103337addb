"""JPEGs of a batch whose components are red, green and blue, or inks, instead of YCbCr: what they are alone."""

from __future__ import annotations

import io

import numpy as np
import pytest
from encoded import photo
from pictures_alone import alone, check_batch, check_damage, check_windows
from PIL import Image

import ndd
from ndd._compiled.background import background


@pytest.fixture(autouse=True)
def _without_fallbacks(monkeypatch):
    monkeypatch.setattr(background, "allowed", False)


def file(mode, orientation=1, size=(70, 91), **options):
    picture, exif, held = (
        Image.fromarray(np.ascontiguousarray(photo(*size)[..., :3])).convert(mode),
        Image.Exif(),
        io.BytesIO(),
    )
    exif[274] = orientation
    picture.save(held, "JPEG", exif=exif if orientation > 1 else b"", **options)
    return np.frombuffer(held.getvalue(), np.uint8)


def files():
    """Inks, colours, and YCbCr between them, upright."""
    for size in ((70, 91), (33, 40), (9, 24)):
        yield file("CMYK", size=size)
        yield file("RGB", size=size, keep_rgb=True)
        yield file("RGB", size=size)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", ["RGB", "GRAY", "ANY_DATA", "BGR"])
def test_as_alone(kind, threads, monkeypatch):
    _, by_python = check_batch(monkeypatch, [*files()], threads, output_type=getattr(ndd.types, kind))
    assert by_python == {"RGB": 0, "ANY_DATA": 3, "GRAY": 6, "BGR": 3}[kind]


@pytest.mark.parametrize("adjust", [True, False])
def test_turned_as_alone(adjust, monkeypatch):
    data = [file(mode, k, **more) for k in range(1, 9) for mode, more in (("CMYK", {}), ("RGB", {"keep_rgb": True}))]
    _, by_python = check_batch(monkeypatch, data, 2, adjust_orientation=adjust)
    assert by_python == (7 if adjust else 0)  # turned inks are left to OpenCV, as in DALI


def test_windows_as_alone(monkeypatch):
    data = [item for item in files() if alone(item).shape[0] > 30]
    check_windows(monkeypatch, data, [(3, 2, 20, 17)])


def test_damage_is_what_it_is_alone():
    whole, rng = file("CMYK"), np.random.default_rng(1)
    data = [whole[:k] for k in (3, 100, len(whole) // 2, len(whole) - 3)]
    for place in rng.integers(2, 700, 80).tolist():
        changed = whole.copy()
        changed[place] ^= 1 << int(rng.integers(8))
        data.append(changed)
    check_damage([item for bad in data for item in (bad, whole)], 5, max_pixels=1 << 22)
