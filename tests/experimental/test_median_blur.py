"""`median_blur` against sorted windows, and against OpenCV."""

from __future__ import annotations

import numpy as np
import pytest
from cases import each_of

import ndd
from ndd._compiled.background import background

_MORPHOLOGY = ("uint8", "uint16", "float32")

REGISTRY_CASES = {
    "experimental.median_blur": each_of({}, {"window_size": [5, 7]}, dtypes=_MORPHOLOGY, oracle=False),
}


def numbers(seed, shape, dtype="uint8"):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return (rng.standard_normal(shape) * 100).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def by_hand(image, window):
    """Every window sorted; `image` is [H, W, ...], the window (width, height)."""
    width, height = window
    pad = [(height // 2, height // 2), (width // 2, width // 2)] + [(0, 0)] * (image.ndim - 2)
    wide = np.pad(image, pad, mode="edge")
    h, w = image.shape[:2]
    parts = np.stack([wide[j : j + h, i : i + w] for j in range(height) for i in range(width)])
    return np.sort(parts, axis=0)[len(parts) // 2]


@pytest.fixture(params=["cpu", "gpu"])
def device(request, emulated_gpu):
    return request.param


def run(images, layout, device="cpu", **args):
    result = ndd.experimental.median_blur(ndd.batch(images, layout=layout).to_device(device), **args)
    return [np.asarray(a) for a in result.cpu()]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("window", [(3, 3), (5, 5), (1, 1), (7, 7), (3, 5), (7, 1), (1, 5), (13, 3), (41, 3)])
@pytest.mark.drawn(1)
def test_windows(dtype, window, device):
    images = [numbers(i, s, dtype) for i, s in enumerate([(13, 17, 3), (5, 6, 3), (1, 1, 3), (2, 30, 3), (9, 1, 3)])]
    for image, result in zip(images, run(images, "HWC", device, window_size=window), strict=True):
        np.testing.assert_array_equal(result, by_hand(image, window), str(image.shape))


@pytest.mark.parametrize("layout", ["HW", "HWC", "CHW", "FHWC", "FCHW", ""])
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
@pytest.mark.drawn(1)
def test_layouts(layout, channels, device):
    extents = {"H": 9, "W": 12, "C": channels, "F": 2}
    axes = layout or "HWC"
    image = numbers(3, [extents[a] for a in axes])
    spatial = [axes.index("H"), axes.index("W")]
    for window in ((3, 3), (7, 7), (5, 3)):
        result = ndd.experimental.median_blur(
            ndd.tensor(image, layout=layout or None).to_device(device), window_size=window
        )
        assert result.layout == axes
        assert result.dtype is ndd.uint8
        expected = np.moveaxis(by_hand(np.moveaxis(image, spatial, [0, 1]), window), [0, 1], spatial)
        np.testing.assert_array_equal(np.asarray(result.cpu()), expected)


def test_as_opencv():
    cv2 = pytest.importorskip("cv2")
    image = numbers(4, (64, 148, 3))
    for size in (3, 5, 7, 15):
        np.testing.assert_array_equal(run([image], "HWC", window_size=size)[0], cv2.medianBlur(image, size))


@pytest.mark.drawn(1)
def test_salt_and_pepper_disappears(device):
    image = np.full((20, 30, 3), 100, np.uint8)
    spoilt = image.copy()
    spoilt[::5, ::4] = 255
    np.testing.assert_array_equal(run([spoilt], "HWC", device)[0], image)


@pytest.mark.drawn(1)
def test_a_window_for_each_sample(device):
    images = [numbers(i, (8 + i, 15 - i, 2)) for i in range(4)]
    windows = [[3, 3], [1, 7], [5, 5], [5, 3]]
    expected = [by_hand(i, w) for i, w in zip(images, windows, strict=True)]
    for value in (ndd.batch(windows), [np.array(w) for w in windows]):
        for a, b in zip(run(images, "HWC", device, window_size=value), expected, strict=True):
            np.testing.assert_array_equal(a, b)
    square = run(images, "HWC", device, window_size=ndd.batch([1, 5, 3, 9]))
    for a, image, k in zip(square, images, [1, 5, 3, 9], strict=True):
        np.testing.assert_array_equal(a, by_hand(image, (k, k)))


def test_a_window_for_each_frame(device):
    video = numbers(1, (3, 9, 8, 1))
    windows = np.array([[1, 3], [3, 1], [5, 5]], np.int32)
    result = run([video], "FHWC", device, window_size=ndd.batch([windows], layout="F*"))[0]
    for frame, image, window in zip(result, video, windows.tolist(), strict=True):
        np.testing.assert_array_equal(frame, by_hand(image, window))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.drawn(1)
def test_rows_of_less_than_a_register_and_more(dtype, channels, monkeypatch):
    """32 or 64 numbers are worked on at once, the last ones of a row twice."""
    monkeypatch.setattr(background, "allowed", False)
    for width in (1, 2, 5, 31, 32, 33, 63, 64, 65, 130):
        image = numbers(width, (4, width, channels), dtype)
        np.testing.assert_array_equal(run([image], "HWC")[0], by_hand(image, (3, 3)), str(width))


@pytest.mark.parametrize("background_too", [True, False])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_threads_take_samples_in_turn(dtype, background_too, monkeypatch):
    """Ragged, empty, strided and read-only ones, larger than a strip of rows; other windows are left."""
    monkeypatch.setattr(background, "allowed", background_too)
    sizes = [(150, 170, 3), (0, 5, 3), (1, 1, 3), (2, 90, 3), (160, 3, 3), (40, 50, 3)]
    images = [numbers(i, s, dtype) for i, s in enumerate(sizes)]
    images[4] = images[4].repeat(2, 1)[:, ::2]
    images[0].flags.writeable = False
    apart = ndd.as_batch([ndd.as_tensor(a, layout="HWC") for a in images])
    with ndd.EvalContext(num_threads=3):
        for windows in ([3] * 6, [3, 3, 5, 3, 1, 3]):
            result = ndd.experimental.median_blur(apart, window_size=ndd.batch(windows))
            for image, window, item in zip(images, windows, result.tensors, strict=True):
                if image.size:
                    np.testing.assert_array_equal(np.asarray(item), by_hand(image, (window, window)), str(image.shape))
    background.finish()


def test_empty_images(device):
    result = run([numbers(0, (0, 5, 3)), numbers(0, (4, 5, 3))], "HWC", device)
    assert [a.shape for a in result] == [(0, 5, 3), (4, 5, 3)]


@pytest.mark.parametrize("window", [0, 2, -1, [3, 4], [0, 3], [3, 3, 3], [3, -1]])
def test_windows_without_a_middle(window):
    with pytest.raises(RuntimeError, match="window_size"):
        run([numbers(0, (5, 6, 3))], "HWC", window_size=window)


def test_the_bad_sample_is_named():
    with pytest.raises(RuntimeError, match="sample 1"):
        run([numbers(0, (5, 6, 3))] * 3, "HWC", window_size=ndd.batch([3, 4, 5]))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint32", "uint64", "float64", "float16"])
def test_refused_types(dtype):
    with pytest.raises(RuntimeError, match="type"):
        run([numbers(0, (5, 6, 3), dtype)], "HWC")
