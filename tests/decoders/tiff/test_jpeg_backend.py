"""TIFFs of a batch whose strips are JPEGs, which compiled code decodes: what they are alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from encoded import photo
from picture_writers.tiff import DEFLATE, GRAY, JPEG, RGB, YCBCR, tiff
from pictures_alone import alone, check_batch, check_damage, check_windows, counted

import ndd
from ndd._compiled.background import background

PHOTO = np.ascontiguousarray(photo(75, 91)[..., :3])


@pytest.fixture(autouse=True)
def _without_fallbacks(monkeypatch):
    monkeypatch.setattr(background, "allowed", False)


def common_files():
    for rows in (16, 32, 75):
        for order in "<>":
            options: Any = {"compression": JPEG, "rows": rows, "order": order}
            yield tiff(PHOTO, colours=RGB, **options)
            yield tiff(PHOTO[..., :1], colours=GRAY, **options)
            for factors in ([1, 1], [2, 1], [2, 2]):
                yield tiff(PHOTO, colours=YCBCR, tags={530: factors}, **options)
            yield tiff(PHOTO, colours=YCBCR, tags={347: None, 530: [2, 2]}, **options)


def rare_files():
    yield tiff(PHOTO, colours=YCBCR, compression=JPEG, tile=32)
    yield tiff(PHOTO, colours=RGB, compression=JPEG, orientation=3)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", ["RGB", "BGR", "GRAY", "ANY_DATA"])
@pytest.mark.drawn(1)
def test_every_kind_as_alone(kind, threads, monkeypatch):
    common, rare = [*common_files()], [*rare_files()]
    data = [*rare, *common, tiff(PHOTO, colours=RGB, compression=DEFLATE)]
    _, by_python = check_batch(monkeypatch, data, threads, output_type=getattr(ndd.types, kind))
    assert by_python == len(rare)


@pytest.mark.parametrize("kind", ["RGB", "BGR", "GRAY"])
def test_windows_as_alone(kind, monkeypatch):
    windows = (3, 2, 9, 11), (0, 0, 1, 1), (16, 16, 16, 16), (5, 0, 70, 91), (74, 90, 1, 1)
    check_windows(monkeypatch, [*common_files()], windows, output_type=getattr(ndd.types, kind))


def test_only_the_part_that_is_used_is_decoded(monkeypatch):
    data = [*common_files()]
    whole, by_python = [alone(item) for item in data], counted(monkeypatch)
    place = {"axes": (0, 1), "normalized_anchor": False, "normalized_shape": False}
    crops: Any = ndd.slice(ndd.decoders.image(ndd.batch(data)), [5, 7], [20, 30], **place)
    for item, crop in zip(whole, crops.tensors, strict=True):
        np.testing.assert_array_equal(np.asarray(crop), item[5:25, 7:37])
    assert not by_python


@pytest.mark.filterwarnings("ignore:Tag data larger")
def test_damage_is_what_it_is_alone():
    whole, rng = tiff(PHOTO, colours=YCBCR, compression=JPEG, rows=16, tags={530: [2, 2]}), np.random.default_rng(0)
    data = [whole[:k] for k in (9, 200, len(whole) // 2, len(whole) - 9)]
    start = int.from_bytes(whole[4:8].tobytes(), "little")
    for place in [*rng.integers(8, start, 60).tolist(), *range(start, len(whole), 5)]:
        changed = whole.copy()
        changed[place] ^= 0x24
        data.append(changed)
    check_damage([item for bad in data for item in (bad, whole)], 10, max_pixels=1 << 22)
