"""Where windows and pasted images lie: the same pixel as in DALI, also where a place falls between two."""

from __future__ import annotations

import numpy as np
import pytest
from compare import check_same

import ndd

pytestmark = pytest.mark.oracle
N = 200


@pytest.fixture(scope="module")
def rows():
    """Lines of numbered pixels, the widths of windows in them, and places: many close to the middle of two pixels."""
    rng = np.random.default_rng(11)
    extents = rng.integers(2, 255, N)
    sizes = rng.integers(1, extents + 1)
    free = np.maximum(extents - sizes, 1)
    places = rng.random(N)
    places[::2] = (np.floor(places * free) + 0.5)[::2] / free[::2]
    places[::3] = np.round(places[::3], 2)
    samples = [np.arange(e, dtype=np.uint8).reshape(1, e, 1) for e in extents]
    return samples, sizes.astype(np.float32), np.minimum(places, 1).astype(np.float32)


@pytest.mark.parametrize("rounding", ["round", "truncate"])
@pytest.mark.parametrize("name", ["crop", "crop_mirror_normalize", "resize_crop_mirror"])
def test_windows(dali, rows, name, rounding):
    samples, sizes, places = rows
    more = {
        "crop": {},
        "crop_mirror_normalize": {"output_layout": "HWC"},
        "resize_crop_mirror": {"resize_y": 1.0, "mode": "stretch", "interp_type": 0},
    }[name]

    def call(m):
        window = {"crop_h": 1.0, "crop_w": m.batch(sizes), "crop_pos_x": m.batch(places)}
        return getattr(m, name)(m.batch(samples, layout="HWC"), **window, rounding=rounding, **more)

    assert check_same(dali, call)


@pytest.mark.parametrize("place", [0.1, 0.3, 0.35, 0.7, 0.9])
def test_one_place_for_all_samples(dali, rows, place):
    def call(m):
        return m.crop(m.batch(rows[0], layout="HWC"), crop=[1, 2], crop_pos_x=place, out_of_bounds_policy="pad")

    assert check_same(dali, call)


def test_windows_of_decoders(dali, rows):
    _, sizes, places = rows
    from nvidia.dali.types import DALIImageType

    files = [b"P5 %d 1 255\n" % 255 + bytes(range(255))] * N

    def call(m):
        encoded = m.batch([np.frombuffer(f, np.uint8) for f in files])
        window = {"crop_h": 1.0, "crop_w": m.batch(sizes), "crop_pos_x": m.batch(places)}
        return m.decoders.image_crop(
            encoded, **window, device="cpu", output_type=(DALIImageType if m is dali else ndd.types).GRAY
        )

    assert check_same(dali, call)


@pytest.mark.parametrize("names", ["inputs", "rel_start rel_end", "rel_start shape"])
def test_slices(dali, rows, names):
    samples, sizes, places = rows
    shapes = (1 - places) * np.random.default_rng(2).random(N, np.float32)

    def call(m):
        batch, low = m.batch(samples, layout="HWC"), m.batch(places.reshape(N, 1))
        how = {"axis_names": "W", "out_of_bounds_policy": "pad"}
        if names == "inputs":
            return m.slice(batch, low, m.batch(shapes.reshape(N, 1)), **how)
        if names == "rel_start shape":
            return m.slice(batch, rel_start=low, shape=m.batch(sizes.astype(np.int32).reshape(N, 1)), **how)
        return m.slice(batch, rel_start=low, rel_end=m.batch((places + shapes).reshape(N, 1)), **how)

    assert check_same(dali, call)


def test_paste(dali, rows):
    _, sizes, places = rows
    images = [np.full((1 + int(s) % 40, 1 + int(s) % 29, 3), 9, np.uint8) for s in sizes]
    ratios = np.round(1 + 2 * np.random.default_rng(3).random(N), 2).astype(np.float32)
    ratios[:1], tie = 2.2587974, places.copy()
    images[0], tie[0] = np.full((40, 14, 3), 9, np.uint8), 0.08  # .08 of 50: 4 in float32, less in float64

    def call(m):
        place = {"paste_x": m.batch(places), "paste_y": m.batch(tie)}
        return m.paste(m.batch(images, layout="HWC"), ratio=m.batch(ratios), fill_value=[0, 1, 2], **place)

    assert check_same(dali, call)


def test_multi_paste(dali, rows):
    images = [np.arange(s * 7, dtype=np.uint8).reshape(7, s, 1) for s in rows[1].astype(int) + 1]
    rng = np.random.default_rng(4)
    low, size, to = (np.round(0.5 * rng.random((N, 1, 2), np.float32), 2) for _ in range(3))

    def call(m):
        where = {"in_anchors_rel": low, "shapes_rel": size, "out_anchors_rel": to}
        where = {k: m.batch(list(v)) for k, v in where.items()}
        return m.multi_paste(m.batch(images, layout="HWC"), output_size=[16, 300], **where)

    assert check_same(dali, call)
