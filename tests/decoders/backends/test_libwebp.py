"""libwebp called directly: OpenCV's pixels for whole pictures, and the same ones in windows, of which only the rows that are
used are decoded."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from encoded import encode, photo
from PIL import Image
from selection import repeated

import ndd
from ndd.decoders import picture
from ndd.decoders.backend import Options
from ndd.decoders.backends import libwebp, opencv
from ndd.decoders.registry import read_header
from ndd.types import DALIImageType

pytestmark = pytest.mark.skipif(libwebp._library() is None, reason="Pillow's wheel has no libwebp here")

TYPES = DALIImageType.RGB, DALIImageType.BGR, DALIImageType.ANY_DATA
SIZES = (1, 1), (1, 17), (18, 1), (16, 16), (31, 24), (33, 65), (200, 141)
ENCODED = {
    "lossy": {"quality": 80},
    "coarse": {"quality": 1},  # strong loop filters
    "lossless": {"lossless": True},
    "lossy with alpha": {"quality": 80},
}


def file(name, size=(200, 141)):
    pixels = photo(*size) if "alpha" in name else np.ascontiguousarray(photo(*size)[..., :3])
    return encode(pixels, "WEBP", **ENCODED[name])


def options(kind=DALIImageType.RGB, **more) -> Options:
    return Options(kind, np.dtype(np.uint8), True, None, **more)


def decoded(data, chosen, window=None) -> Any:
    return libwebp.decode(data, read_header(data), chosen, window)


def windows(size, count, seed=5):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        (y0, y1), (x0, x1) = (np.sort(rng.choice(side + 1, 2, replace=False)).tolist() for side in size)
        yield y0, x0, y1, x1


@pytest.mark.parametrize("name", ENCODED)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.drawn(2)
def test_whole_pictures_as_by_opencv(name, kind):
    for size in SIZES:
        data, chosen = file(name, size), options(kind)
        expected: Any = opencv.decode(data, read_header(data), chosen, None)
        np.testing.assert_array_equal(decoded(data, chosen), expected)


@pytest.mark.parametrize("name", ENCODED)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.drawn(1)
def test_windows_are_cut_from_whole_pictures(name, kind):
    for size in SIZES:
        data = file(name, size)
        whole = decoded(data, options(kind))
        for window in windows(size, 30):
            y0, x0, y1, x1 = window
            part = decoded(data, options(kind), window)
            np.testing.assert_array_equal(part, whole[y0:y1, x0:x1])
            assert part.flags.c_contiguous
            seen = decoded(data, options(kind, used=window))
            assert seen.shape == whole.shape
            np.testing.assert_array_equal(seen[y0:y1, x0:x1], whole[y0:y1, x0:x1])


def test_rows_that_are_not_used_are_not_decoded(monkeypatch):
    monkeypatch.setattr(libwebp, "host_empty", lambda shape, dtype: np.full(shape, 165, dtype))
    image = decoded(file("lossy"), options(used=(50, 10, 60, 20)))
    margin = libwebp._MARGIN
    assert (image[: 50 - margin] == 165).all()
    assert (image[60 + margin :] == 165).all()
    assert not (image[50:60] == 165).all()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_turned_windows(orientation):
    data = encode(np.ascontiguousarray(photo(60, 41)[..., :3]), "WEBP", orientation=orientation)
    whole = picture.decode(data, options())
    for window in windows(whole.shape[:2], 10):
        y0, x0, y1, x1 = window
        np.testing.assert_array_equal(picture.decode(data, options(), window=window), whole[y0:y1, x0:x1])
        seen = picture.decode(data, options(), used=window)
        np.testing.assert_array_equal(seen[y0:y1, x0:x1], whole[y0:y1, x0:x1])


@pytest.mark.parametrize("kind", ["RGB", "BGR", "GRAY", "YCbCr", "ANY_DATA"])
@pytest.mark.drawn(1)
def test_a_crop_of_a_batch(kind):
    output_type = getattr(ndd.types, kind)
    data = [file(name) for name in ENCODED if kind != "ANY_DATA" or "alpha" not in name]
    whole: Any = ndd.decoders.image(ndd.batch(data), output_type=output_type)
    expected = [np.asarray(image).copy()[20:84, 30:94] for image in whole.tensors]
    place: Any = {"axes": (0, 1), "normalized_anchor": False, "normalized_shape": False}
    part: Any = ndd.decoders.image_slice(ndd.batch(data), [20, 30], [64, 64], output_type=output_type, **place)
    for image, other in zip(part.tensors, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(image), other)


def test_only_what_a_resize_looks_at(monkeypatch):
    """A crop behind the decoder decodes its window, and changes no pixel."""
    data: Any = ndd.batch([file(name) for name in ("lossy", "coarse", "lossless")])

    def cropped() -> Any:
        images = ndd.decoders.image(data)
        result = ndd.random_resized_crop(images, size=[32, 32], rng=ndd.random.RNG(seed=7))
        del images
        return np.asarray(result.torch()).copy()

    used, decode = [], libwebp.decode

    def noted(data, header, chosen, window):
        used.append(chosen.used)
        return decode(data, header, chosen, window)

    monkeypatch.setattr(libwebp, "decode", noted)
    with ndd.EvalMode.sync_cpu:
        expected = cropped()
    assert used == [None] * 3
    with ndd.EvalMode.deferred:
        np.testing.assert_array_equal(cropped(), expected)
    assert None not in used[3:]


def test_animations_are_left_to_opencv():
    frames = [Image.fromarray(np.ascontiguousarray(photo(30, 44, seed)[..., :3])) for seed in range(3)]
    held = io.BytesIO()
    frames[0].save(held, "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    data = np.frombuffer(held.getvalue(), np.uint8)
    assert decoded(data, options()) is None
    np.testing.assert_array_equal(np.asarray(ndd.decoders.image(ndd.tensor(data))), np.asarray(frames[0]))


@pytest.mark.parametrize("name", ENCODED)
def test_files_that_are_cut_off_are_errors(name):
    data = file(name)
    for size in (30, 60, len(data) // 2, len(data) - 1):
        for run in (ndd.decoders.image, lambda d: ndd.decoders.image_crop(d, crop=(8, 8))):
            with pytest.raises(RuntimeError, match=r"expected an encoded image|Failed to decode the image"):
                run(ndd.tensor(data[:size])).evaluate()


@pytest.mark.parametrize("name", ENCODED)
@pytest.mark.drawn(1)
def test_damaged_files_give_opencv_s_pixels_or_an_error(name):
    rng = np.random.default_rng(3)
    for trial in repeated(150, 40):
        data = file(name).copy()
        places = rng.integers(12 if trial % 2 else 30, len(data), 1 + trial % 4)
        data[places] = rng.integers(0, 256, len(places))
        try:
            header = read_header(data)
        except RuntimeError:
            continue
        if header.height * header.width > 1 << 22:
            continue
        expected = opencv.decode(data, header, options(), None)
        image = libwebp.decode(data, header, options(), None)
        if image is not None and image.shape == (200, 141, 3):
            np.testing.assert_array_equal(image, expected)
        libwebp.decode(data, header, options(), (0, 0, min(header.height, 9), min(header.width, 9)))
