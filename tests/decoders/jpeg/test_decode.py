"""The kernel that decodes common JPEGs: libjpeg-turbo's pixels to the last bit, and nothing from files that are otherwise."""

from __future__ import annotations

import io
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

import ndd
from ndd._compiled.background import background
from ndd._compiled.thread_team import ALONE, joined
from ndd._operator import all_operators
from ndd.decoders.jpeg import baseline as jpeg, progressive
from ndd.decoders.jpeg.header import read_header as header_of

SAMPLINGS = {
    "444": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444, "422": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_422,
    "420": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _compiled(monkeypatch):
    monkeypatch.setattr(background, "allowed", False)


def picture(height, width, noise=30):
    """Waves and noise: all places of a block are used."""
    rng = np.random.default_rng(height * width)
    y, x = np.mgrid[:height, :width]
    waves = [127 + 120 * np.sin(y / (3 + c) + x / (9 - 2 * c)) for c in range(3)]
    return np.clip(np.stack(waves, 2) + rng.normal(0, noise, (height, width, 3)), 0, 255).astype(np.uint8)


def encoded(image, sampling="420", quality=90, **options):
    flags = [cv2.IMWRITE_JPEG_QUALITY, quality, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, SAMPLINGS[sampling]]
    flags += [n for k, v in options.items() for n in (getattr(cv2, f"IMWRITE_JPEG_{k.upper()}"), v)]
    return cv2.imencode(".jpg", image, flags)[1].reshape(-1).copy()


def decoded(data, window=None, channels=3, loop=jpeg.decode_loop, is_rgb=False):
    header = header_of(data.data)
    y0, x0, y1, x1 = window or (0, 0, header.height, header.width)
    out = np.empty((y1 - y0, x1 - x0, channels), np.uint8)
    scratch = np.full(jpeg.room(len(data), x1 - x0) + 1, 7, np.uint8)
    place = [data.ctypes.data, data.size, out.ctypes.data, out.size, y0, x0, y1, x1, y0, x0, x1 - x0, channels, is_rgb]
    first, done = np.zeros(1, np.int64), np.zeros(1, np.bool_)
    case = first, np.array([place]), scratch[None, :-1], np.array([0]), done
    joined(loop)(ALONE, 0, np.array([0]), 1, case)
    assert scratch[-1] == 7
    return out if done[0] else None


def expected(data):
    return cv2.cvtColor(cv2.imdecode(data, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("quality", [5, 60, 97, 100])
def test_whole_pictures(sampling, quality):
    for height, width in ((16, 48), (33, 47), (120, 161), (1, 40), (40, 64)):
        data = encoded(picture(height, width), sampling, quality)
        np.testing.assert_array_equal(decoded(data), expected(data))
        luma = cv2.imdecode(data, cv2.IMREAD_GRAYSCALE)[:, :, None]
        np.testing.assert_array_equal(decoded(data, channels=1), luma)


@pytest.mark.parametrize("quality", [5, 90, 100])
def test_four_inks(quality):
    """Adobe's, as libjpeg-turbo reads them, each times black. YCCK and files without Adobe's mark are left to it."""
    for height, width in ((1, 1), (33, 47), (64, 560)):
        file, colours = io.BytesIO(), picture(height, width)
        four = np.concatenate((colours, colours[::-1, :, :1]), axis=2)
        Image.fromarray(four, "CMYK").save(file, "JPEG", quality=quality)
        data = np.frombuffer(file.getvalue(), np.uint8)
        inks = 255 - np.asarray(Image.open(file)).astype(np.int64)  # Pillow inverts them
        full = inks[:, :, :3] * inks[:, :, 3:] // 255
        np.testing.assert_array_equal(decoded(data), full)
        y0, x0, y1, x1 = height // 3, width // 4, height - height // 5, width - width // 6
        np.testing.assert_array_equal(decoded(data, (y0, x0, y1, x1)), full[y0:y1, x0:x1])
        assert decoded(data, channels=1) is None
        at = bytes(data).index(b"Adobe")
        for place, value in ((at + 11, 2), (at, 65 + 32)):
            other = data.copy()
            other[place] = value
            assert decoded(other) is None


@pytest.mark.parametrize("quality", [5, 90, 100])
def test_red_green_and_blue(quality):
    """Components that are no YCbCr, of full size; other sizes are left to libjpeg-turbo, and to be gray."""
    for height, width in ((1, 1), (33, 47), (64, 560)):
        file, colours = io.BytesIO(), picture(height, width)
        Image.fromarray(colours).save(file, "JPEG", quality=quality, keep_rgb=True)
        data, full = np.frombuffer(file.getvalue(), np.uint8), np.asarray(Image.open(file))
        assert header_of(data.data).coded_rgb
        np.testing.assert_array_equal(decoded(data, is_rgb=True), full)
        y0, x0, y1, x1 = height // 3, width // 4, height - height // 5, width - width // 6
        np.testing.assert_array_equal(decoded(data, (y0, x0, y1, x1), is_rgb=True), full[y0:y1, x0:x1])
        assert decoded(data, channels=1, is_rgb=True) is None
        np.testing.assert_array_equal(np.asarray(ndd.decoders.image(data)), full)
        assert decoded(encoded(colours, "422"), is_rgb=True) is None


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_rows_of_many_units(sampling):
    """More than are transformed at once, the last one alone; codes of their own, and blocks that end with their last number."""
    for noise, optimize in ((0, 0), (0, 1), (90, 1)):
        data = encoded(picture(17, 16 * 35 + 3, noise), sampling, 97, optimize=optimize)
        full = expected(data)
        np.testing.assert_array_equal(decoded(data), full)
        for y0, x0, y1, x1 in ((3, 250, 17, 501), (9, 0, 12, 300), (0, 290, 17, 563)):
            np.testing.assert_array_equal(decoded(data, (y0, x0, y1, x1)), full[y0:y1, x0:x1])


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_windows(sampling):
    data = encoded(picture(90, 131), sampling)
    full, rng = expected(data), np.random.default_rng(3)
    for _ in range(150):
        (y0, y1), (x0, x1) = (np.sort(rng.choice(n + 1, 2, replace=False)) for n in (90, 131))
        result = decoded(data, (y0, x0, y1, x1))
        np.testing.assert_array_equal(result, full[y0:y1, x0:x1], err_msg=f"{y0, x0, y1, x1}")


def test_gray_files():
    data = cv2.imencode(".jpg", picture(50, 61)[:, :, 0])[1].reshape(-1).copy()
    np.testing.assert_array_equal(decoded(data), expected(data))


def test_extreme_pictures():
    """Squares of black and white: sums that must saturate where libjpeg-turbo's do."""
    rng = np.random.default_rng(5)
    image = rng.integers(0, 2, (64, 64, 3)).astype(np.uint8) * 255
    for quality in (1, 10, 40, 95):
        data = encoded(image, "444", quality)
        result = decoded(data)
        assert (
            result is None or (result == expected(data)).all()
        )  # coefficients beyond the limit are left to libjpeg-turbo


@pytest.mark.parametrize("options", [{"progressive": 1}, {"rst_interval": 4}])
def test_other_kinds_are_left_alone(options):
    for loop in (jpeg.decode_loop, progressive.decode_loop):
        if loop is jpeg.decode_loop or "progressive" not in options:
            assert decoded(encoded(picture(40, 64), **options), loop=loop) is None


def of_damaged(good, count, by_kernel):
    """How many of `count` damaged copies are refused, and how many decoded, which have libjpeg-turbo's pixels."""
    header, rng, refused, made = header_of(good.data), np.random.default_rng(8), 0, 0
    for k in range(count):
        data = good.copy()
        data[rng.integers(2, len(data), 1 + k % 3)] = rng.integers(0, 256)
        data = data[: len(data) - (k % 5 == 0) * int(rng.integers(1, 60))].copy()
        now = header_of(data.data)
        if now is None or now[:3] != header[:3] or now.coded_rgb:
            continue
        result = by_kernel(data)
        refused += result is None
        if result is not None:
            made += 1
            np.testing.assert_array_equal(result, expected(data))
    return refused, made


def test_damaged_files():
    """Whatever comes, nothing is written elsewhere, and what is decoded is what libjpeg-turbo decodes."""
    refused, _ = of_damaged(encoded(picture(64, 80), "420", 80), 300, decoded)
    assert refused > 30


def test_zeros_behind_marks_are_left_out():
    """Bytes that look like marks come anywhere, also at the ends of what is copied at once; so does the end of the file."""
    rng = np.random.default_rng(2)
    for k in range(200):
        plain = rng.choice(
            [0xFF, 0, 7, 0x80], int(rng.integers(0, 140)), p=[0.02 + 0.3 * (k % 2), 0.2, 0.3, 0.48 - 0.3 * (k % 2)]
        )
        plain = plain.astype(np.uint8).tobytes()
        for end, result in (
            (b"\xff\xd9", len(plain)),
            (b"\xff\xd9" + bytes(40), len(plain)),
            (b"\xff\xda", len(plain)),
            (b"\xff", -1),
            (b"", -1),
        ):
            data = np.frombuffer(b"head" + plain.replace(b"\xff", b"\xff\0") + end, np.uint8).copy()
            bits = np.full(len(data) + jpeg.BORDER + 64, 0xAA, np.uint8)
            count, marker = jpeg.unstuffed(data, 4, bits[: len(data) - 4 + jpeg.BORDER])
            assert count == result
            assert data[marker:].tobytes() == (b"" if result < 0 else end)
            assert (bits[len(data) - 4 + jpeg.BORDER :] == 0xAA).all()
            if result >= 0:
                assert bits[: result + jpeg.BORDER].tobytes() == plain + bytes(jpeg.BORDER)


_RANDOM = {"size": [64, 64], "random_area": [0.1, 0.4]}
_REGION = {"size": [50, 60], "roi_start": [0.9, 0.2], "roi_end": [0.4, 0.5], "roi_relative": True}
LOOKS = {
    "random_resized_crop": [
        {**_RANDOM, "interp_type": getattr(ndd.types, kind)}
        for kind in ("INTERP_LINEAR", "INTERP_LANCZOS3", "INTERP_NN", "INTERP_GAUSSIAN")
    ],
    "resize": [_REGION, {"size": [20, 30], "roi_start": [-90, 410], "roi_end": [-10, 520]}],
    "resize_crop_mirror": [_REGION, {"size": [400, 500], "crop": [90, 100], "mirror": 3, "crop_pos_x": 0.1}],
    "crop": [{"crop": [64, 100], "crop_pos_y": 0.8}, {"crop_h": 50, "crop_w": 900, "out_of_bounds_policy": "pad"}],
    "slice": [
        {"rel_start": [0.3, 0.1], "rel_end": [0.9, 0.6], "axis_names": "HW"},
        {"start": [500, -40], "shape": [60, 30], "axis_names": "HW", "out_of_bounds_policy": "pad"},
    ],
    "crop_mirror_normalize": [
        {"crop": [100, 80], "mirror": 1, "mean": [3.0]},
        {"crop": [100, 500], "crop_pos_x": 0.9, "out_of_bounds_policy": "trim_to_shape", "output_layout": "HWC"},
    ],
}  # fmt: skip


def test_all_that_look_at_a_part_are_tried():
    assert {op.name for op in all_operators().values() if "decoders" in op.fuses} == set(LOOKS)


@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.drawn(1)
def test_a_window_is_decoded_where_nobody_sees_the_rest(name, monkeypatch):
    """What an operator looks at alone, if nobody holds the picture; the same result."""
    from ndd.decoders.jpeg import backend as _jpeg

    parts, decode = [], _jpeg.decode_batch

    def noted(batch, samples, decoded):
        seen, shapes = batch.seen, batch.shapes()
        parts.append(None if seen is None else seen[1].tolist())
        decode(batch, samples, decoded)
        assert decoded.done.all()
        for start, shape, part in zip(decoded.starts, shapes, () if seen is None else seen, strict=False):
            whole, rest = decoded.memory[start : start + shape.prod()].reshape(shape), np.ones(shape[:2], bool)
            rest[part[0] : part[2], part[1] : part[3]] = False
            whole[rest] = 255  # what is not seen holds anything

    monkeypatch.setattr(_jpeg, "decode_batch", noted)
    data = [encoded(picture(300, 400), "420"), encoded(picture(230, 350), "444")]
    for arguments in LOOKS[name]:
        result = []
        for held in (False, True):
            with ndd.EvalMode.deferred:
                images: Any = ndd.decoders.image(ndd.batch(data))
                kept = images if held else None
                images = getattr(ndd, name)(
                    images, **arguments, **({"rng": ndd.random.RNG(seed=4)} if "random_area" in arguments else {})
                )
                result.append([image.torch() for image in images.tensors])
            assert (kept is None) or (np.asarray(kept.tensors[1]) == expected(data[1])).all()
            seen = parts[-1]
            assert (seen is None) == held
            assert held or (seen[2] - seen[0]) * (seen[3] - seen[1]) < 230 * 350 * 0.7
        assert all((a == b).all() for a, b in zip(*result, strict=True))


def test_whole_pictures_where_no_part_is_asked_for(monkeypatch):
    """Nobody asks for the headers of a batch."""
    from ndd.decoders import picture_batch

    monkeypatch.setattr(picture_batch.PictureBatch, "read_headers", None)
    data = [encoded(picture(40, 50), "420")]
    for name, arguments in (("resize", {"size": [9, 9]}), ("crop_mirror_normalize", {"mirror": 1})):
        with ndd.EvalMode.deferred:
            getattr(ndd, name)(ndd.decoders.image(ndd.batch(data)), **arguments).evaluate()


@pytest.mark.parametrize("loop", [jpeg.decode_loop, progressive.decode_loop], ids=["baseline", "progressive"])
@pytest.mark.parametrize("symbol", [16, 255, None])
def test_codes_that_libjpeg_turbo_refuses(loop, symbol):
    """A first coefficient of more bits than any has, or a code of ones only (None), even if no pixel uses that code."""
    data = encoded(picture(40, 64), progressive=int(loop is progressive.decode_loop))
    text = data.tobytes()
    begin = text.index(b"\xff\xc4") + 4  # of a table: its kind, 16 counts, symbols
    counts, more, size = list(text[begin + 1 : begin + 17]), 1, 12
    if symbol is None:  # all codes of the longest size that are left
        size = max(k for k in range(1, 17) if counts[k - 1])
        more = (1 << size) - sum(counts[k - 1] << (size - k) for k in range(1, size + 1))
    end = begin + 17 + sum(counts)
    counts[size - 1] += more
    table = text[begin : begin + 1] + bytes(counts) + text[begin + 17 : end] + bytes([symbol or 11]) * more
    length = int.from_bytes(text[begin - 2 : begin], "big") + more
    damaged = np.frombuffer(text[: begin - 2] + length.to_bytes(2, "big") + table + text[end:], np.uint8)
    assert decoded(data, loop=loop) is not None
    assert cv2.imdecode(damaged, cv2.IMREAD_COLOR) is None
    assert decoded(damaged, loop=loop) is None
    with pytest.raises(RuntimeError, match="sample 0"):
        ndd.decoders.image(damaged).evaluate()
