"""The kernel that decodes progressive JPEGs: libjpeg-turbo's pixels to the last bit, and nothing from files that lack bits."""

from __future__ import annotations

from itertools import pairwise

import cv2
import numpy as np
import pytest
from decoders.jpeg.test_decode import SAMPLINGS, _compiled, decoded, encoded, expected, of_damaged, picture  # noqa: F401
from PIL import Image

import ndd
from ndd.decoders.jpeg import backend, progressive


def by_kernel(data, window=None, channels=3):
    return decoded(data, window, channels, progressive.decode_loop)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("quality", [5, 60, 97, 100])
@pytest.mark.drawn(1)
def test_whole_pictures(sampling, quality):
    """Edges that end within a unit: a scan of one component has fewer blocks than the units."""
    for height, width in ((16, 48), (33, 47), (120, 161), (1, 40), (40, 64), (17, 16 * 35 + 3)):
        for noise in (0, 30, 90):
            data = encoded(picture(height, width, noise), sampling, quality, progressive=1)
            np.testing.assert_array_equal(by_kernel(data), expected(data))
        luma = cv2.imdecode(data, cv2.IMREAD_GRAYSCALE)[:, :, None]
        np.testing.assert_array_equal(by_kernel(data, channels=1), luma)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_windows(sampling):
    data = encoded(picture(90, 131), sampling, progressive=1)
    full, rng = expected(data), np.random.default_rng(3)
    for _ in range(50):
        (y0, y1), (x0, x1) = (np.sort(rng.choice(n + 1, 2, replace=False)) for n in (90, 131))
        np.testing.assert_array_equal(
            by_kernel(data, (y0, x0, y1, x1)), full[y0:y1, x0:x1], err_msg=f"{y0, x0, y1, x1}"
        )


def test_gray_files():
    data = cv2.imencode(".jpg", picture(50, 61)[:, :, 0], [cv2.IMWRITE_JPEG_PROGRESSIVE, 1])[1].reshape(-1).copy()
    np.testing.assert_array_equal(by_kernel(data), expected(data))


def test_extreme_pictures():
    """Squares of black and white: coefficients beyond the limit are left to libjpeg-turbo."""
    image = np.random.default_rng(5).integers(0, 2, (64, 64, 3)).astype(np.uint8) * 255
    for quality in (1, 10, 40, 95):
        data = encoded(image, "444", quality, progressive=1)
        result = by_kernel(data)
        assert result is None or (result == expected(data)).all()


def scans_of(data):
    """Where each scan begins, and where the file ends."""
    text, places = data.tobytes(), []
    at = 2
    while text[at + 1] != 0xD9:
        is_scan, at = text[at + 1] == 0xDA, at
        if is_scan:
            places.append(at)
        at += 2 + int.from_bytes(text[at + 2 : at + 4], "big")
        while is_scan and not (text[at] == 0xFF and text[at + 1]):
            at += 1
    return [*places, at]


def test_files_that_lack_scans_or_have_one_twice_are_left_alone():
    """libjpeg-turbo smooths what is not complete, and warns of bits that come twice."""
    data = encoded(picture(64, 80), progressive=1)
    places, end = scans_of(data), data[-2:]
    for place in places[:-1]:
        assert by_kernel(np.concatenate([data[:place], end])) is None
    for first, after in pairwise(places[2:]):
        without = np.concatenate([data[:first], data[after:]])
        twice = np.concatenate([data[:after], data[first:]])
        assert by_kernel(without) is None
        assert by_kernel(twice) is None


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.drawn(1)
def test_damaged_files(sampling):
    """Whatever comes, nothing is written elsewhere, and what is decoded is what libjpeg-turbo decodes."""
    refused, made = of_damaged(encoded(picture(64, 80), sampling, 80, progressive=1), 400, by_kernel)
    assert refused > 30
    assert made > 10


@pytest.mark.parametrize("count", [1, 5])
def test_the_decoder_takes_the_kernel(count, monkeypatch, tmp_path):
    """In a batch with baseline files and alone; turned ones are turned, and large ones left to libjpeg-turbo."""
    taken = []
    array_equal = np.testing.assert_array_equal
    loop = backend._LOOPS[backend.PROGRESSIVE]
    monkeypatch.setattr(backend, "joined", lambda f, joined=backend.joined: taken.append(f) or joined(f))
    parallel_for = ndd._operator.Call.parallel_for
    monkeypatch.setattr(
        ndd._operator.Call, "parallel_for", lambda call, f, *rest: taken.append(f) or parallel_for(call, f, *rest)
    )
    images = [picture(40 + k, 64) for k in range(count)]
    files = [encoded(image, progressive=int(k % 2 == 0)) for k, image in enumerate(images)]
    for data, result in zip(files, ndd.decoders.image(ndd.batch(files)).tensors, strict=True):
        array_equal(np.asarray(result), expected(data))
    assert loop in taken
    taken.clear()
    monkeypatch.setattr(progressive, "MOST_PIXELS", 100)
    for data, result in zip(files, ndd.decoders.image(ndd.batch(files)).tensors, strict=True):
        array_equal(np.asarray(result), expected(data))
    assert loop not in taken
    exif = Image.Exif()
    exif[274] = 6
    Image.fromarray(images[0]).save(tmp_path / "turned.jpg", progressive=True, exif=exif)
    data = np.fromfile(tmp_path / "turned.jpg", np.uint8)
    result = np.asarray(ndd.decoders.image(ndd.batch([data] * count)).tensors[0])
    array_equal(
        result, np.rot90(cv2.cvtColor(cv2.imdecode(data, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION), 4), -1)
    )
