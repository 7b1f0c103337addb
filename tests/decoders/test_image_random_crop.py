"""decoders.image_random_crop: the windows of random_resized_crop, spread as those of the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from cases import each_of
from encoded import encode, made

import ndd
from ndd.random.crop_window import crop_window

REGISTRY_CASES = {
    "decoders.image_random_crop": each_of({}, inputs=("jpeg",), dtypes=("float32",)),
}

NAMES = ("420.jpg", "odd.jpg", "rgba.png", "turned_6.jpg", "lossy.webp", "rgb.tif")
RANGES = [
    {},
    {"random_area": [0.5, 0.6]},
    {"random_area": [0.01, 0.1], "random_aspect_ratio": [0.2, 5.0]},
    {"random_aspect_ratio": [3.0, 4.0], "random_area": [0.9, 1.0]},
    {"num_attempts": 1, "random_area": [0.8, 1.0]},
]


@pytest.mark.parametrize("ranges", RANGES, ids=str)
def test_the_windows_of_random_resized_crop(ranges):
    """Where random_resized_crop looks with the same generator: found by its own kind of window, on a picture whose
    pixels say where they are."""
    place = np.zeros((90, 120, 3), np.uint8)
    place[..., 0], place[..., 1] = np.arange(90)[:, None], np.arange(120)
    data = ndd.batch([encode(place, "PNG")] * 8)
    mine = ndd.decoders.image_random_crop(data, rng=ndd.random.RNG(seed=77), **ranges)
    words = ndd.random.streams._take("image_random_crop", ndd.random.RNG(seed=77))
    arguments = {"random_area": [0.08, 1.0], "random_aspect_ratio": [3 / 4, 4 / 3], "num_attempts": 10, **ranges}
    anchors, shapes = crop_window(
        np.array([[90, 120]] * 8),
        words.streams(8),
        arguments["random_area"],
        arguments["random_aspect_ratio"],
        arguments["num_attempts"],
    )
    for result, (y, x), (h, w) in zip(mine.tensors, anchors.tolist(), shapes.tolist(), strict=True):
        np.testing.assert_array_equal(np.asarray(result), place[y : y + h, x : x + w])


@pytest.mark.parametrize("name", NAMES)
def test_the_window_of_a_full_decode(name):
    full = np.asarray(ndd.decoders.image(made()[name]))
    for seed in range(6):
        result = np.asarray(ndd.decoders.image_random_crop(made()[name], rng=ndd.random.RNG(seed=seed)))
        windows = np.lib.stride_tricks.sliding_window_view(full, result.shape)
        assert (windows == result).all(axis=(-1, -2, -3)).any()


@pytest.mark.parametrize("ranges", [{}, *RANGES], ids=str)
def test_the_windows_are_dalis(dali, ranges):
    data = [encode(np.zeros(shape, np.uint8), "PNG") for shape in [(150, 200, 3), (40, 30, 3), (7, 90, 3)] * 5]
    result = []
    for library in (ndd, dali):
        with library.EvalMode.sync_cpu:
            rng = library.random.RNG(seed=1)
            result.append(
                [library.decoders.image_random_crop(library.batch(data), rng=rng, **ranges).shape for _ in range(2)]
            )
    assert result[0] == result[1]


def test_threads_and_batch_size_do_not_change_the_windows():
    files = [made()[n] for n in NAMES]
    shapes = []
    for count in (1, 2, 5):
        ndd.set_num_threads(count)
        shapes.append(ndd.decoders.image_random_crop(ndd.batch(files), rng=ndd.random.RNG(seed=9)).shape)
    ndd.set_num_threads(None)
    shapes.append(ndd.decoders.image_random_crop(ndd.batch(files[:3]), rng=ndd.random.RNG(seed=9)).shape)
    assert shapes[0] == shapes[1] == shapes[2]
    assert shapes[0][:3] == shapes[3]


def test_bad_samples_do_not_move_the_windows_of_others():
    files = [made()[n] for n in NAMES]
    whole = ndd.decoders.image_random_crop(ndd.batch(files), rng=ndd.random.RNG(seed=3)).shape
    files[1] = files[1][:200]
    out = ndd.decoders.image_random_crop(ndd.batch(files), rng=ndd.random.RNG(seed=3), on_error="skip")
    assert out.shape == whole[:1] + whole[2:]
    assert [b.index for b in out.dropped] == [1]


def test_more_area_than_there_is_gives_the_largest_window(dali):
    """DALI asks for a window wider than the square picture and raises; the wide picture holds what it asks for."""
    square, wide = (np.frombuffer(b"P5 %d 40 255 " % w + bytes(40 * w), np.uint8) for w in (40, 60))
    assert ndd.decoders.image_random_crop(square, random_area=[2, 3]).shape == (40, 40, 3)
    shapes = [tuple(m.decoders.image_random_crop(m.tensor(wide), random_area=[2, 3]).shape) for m in (ndd, dali)]
    assert shapes == [(40, 53, 3)] * 2


def test_misuse():
    for ranges in ({"random_area": [1.0, 0.5]}, {"random_aspect_ratio": [-1.0, 2.0]}):
        with pytest.raises(RuntimeError):
            ndd.decoders.image_random_crop(made()["420.jpg"], **ranges).evaluate()
