"""decoders.image_crop: windows as `crop` cuts them, pixels as a full decode gives them."""

from __future__ import annotations

import numpy as np
import pytest
from cases import each_of
from encoded import KINDS, made, needs_files, read, real

import ndd

REGISTRY_CASES = {
    "decoders.image_crop": each_of({"crop": [6, 7]}, inputs=("jpeg",), dtypes=("float32",)),
}

NAMES = ("420.jpg", "odd.jpg", "rgba.png", "turned_6.jpg", "turned_7.jpg", "lossy.webp", "gray_16.tif", "turned_6.png")
WINDOWS = [
    {},
    {"crop": [20, 30]},
    {"crop": [3.0, 20, 30]},
    {"crop": [20.9, 30.9]},
    {"crop": [0, 30]},
    {"crop": [-4, 30]},
    {"crop_h": 21, "crop_w": 29},
    {"crop_h": 21, "crop_w": 29, "crop_d": 1},
    {"crop": [21, 29], "crop_pos_x": 0.3, "crop_pos_y": 0.71},
    {"crop": [21, 29], "crop_pos_x": 0.0, "crop_pos_y": 1.0, "crop_pos_z": 0.2},
    {"crop": [20, 29], "crop_pos_x": 0.5, "rounding": "truncate"},
    {"crop": [20, 29], "crop_pos_x": 0.5, "rounding": "round"},
    {"crop": [1, 1]},
]


@pytest.mark.oracle
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.drawn(2)
def test_against_the_oracle(dali, window):
    for name in NAMES:
        data = made()[name]
        for adjust in (True, False):
            with dali.EvalMode.sync_cpu:
                expected = dali.decoders.image_crop(dali.tensor(data), adjust_orientation=adjust, **window)
                expected = np.asarray(expected).copy()
            result = ndd.decoders.image_crop(ndd.tensor(data), adjust_orientation=adjust, **window)
            np.testing.assert_array_equal(np.asarray(result), expected, err_msg=f"{name} {adjust}")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.drawn(1)
def test_the_window_of_a_full_decode(kind):
    """Every kind of file, window by window: nothing bleeds in from the edge of the region."""
    number = getattr(ndd.types, kind)
    rng = np.random.default_rng(1)
    for name, data in made().items():
        full = ndd.decoders.image(data, output_type=number)
        height, width, _ = full.shape
        for _ in range(4):
            h, w = int(rng.integers(1, height + 1)), int(rng.integers(1, width + 1))
            x, y = rng.random(2).tolist()
            arguments = {"crop": [h, w], "crop_pos_x": x, "crop_pos_y": y}
            result = ndd.decoders.image_crop(data, output_type=number, **arguments)
            np.testing.assert_array_equal(np.asarray(result), np.asarray(ndd.crop(full, **arguments)), err_msg=name)


@needs_files
def test_windows_of_photographs_are_exact():
    files = [read(p) for p in real("imagenet/*/*")[:64]]
    batch = ndd.batch(files)
    rng = np.random.default_rng(2)
    arguments = {
        "crop_h": ndd.batch(list(rng.integers(1, 60, 64).astype(np.float32))),
        "crop_w": ndd.batch(list(rng.integers(1, 60, 64).astype(np.float32))),
        "crop_pos_x": ndd.batch(list(rng.random(64, np.float32))),
        "crop_pos_y": ndd.batch(list(rng.random(64, np.float32))),
    }
    result = ndd.decoders.image_crop(batch, **arguments)
    expected = ndd.crop(ndd.decoders.image(batch), **arguments)
    for mine, full in zip(result.tensors, expected.tensors, strict=True):
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(full))


def test_sizes_for_each_sample():
    batch = ndd.batch([made()["420.jpg"], made()["odd.jpg"]])
    result = ndd.decoders.image_crop(batch, crop_w=ndd.batch([10, 20]), crop_h=5)
    assert result.shape == [(5, 10, 3), (5, 20, 3)]
    result = ndd.decoders.image_crop(batch, crop=ndd.batch([[5.0, 6.0], [7.0, 8.0]]))
    assert result.shape == [(5, 6, 3), (7, 8, 3)]


@pytest.mark.parametrize(
    ("window", "text"),
    [
        ({"crop": [50, 10]}, "not valid for the picture of 40x56"),
        ({"crop": [10, 57]}, "not valid for the picture of 40x56"),
        ({"crop": [5]}, "`crop`"),
        ({"crop_h": 5}, "`crop_w` and `crop_h`"),
        ({"crop": [5, 5], "crop_h": 5, "crop_w": 5}, "exclude"),
        ({"crop": [5, 5], "crop_pos_x": 1.5}, "crop_pos_x"),
        ({"crop": [5, 5], "rounding": "up"}, "rounding"),
    ],
    ids=str,
)
def test_misuse(window, text):
    with pytest.raises(RuntimeError, match=text):
        ndd.decoders.image_crop(made()["420.jpg"], **window).evaluate()
