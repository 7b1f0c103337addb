"""jpeg_compression_distortion: bit for bit the oracle's and Pillow's; the kernel bit for bit the CPU's."""

from __future__ import annotations

import io

import numpy as np
import pytest
from cases import each_of
from compare import check_same
from encoded import photograph
from PIL import Image

import ndd
from ndd._compiled.background import background
from ndd.ops.color import jpeg_losses

_COLOR = ("HWC", "FHWC")

REGISTRY_CASES = {
    "jpeg_compression_distortion": each_of({}, {"quality": 4}, layouts=_COLOR, dtypes=("uint8",), off_by_one=0.0),
}

QUALITIES = (-5, 0, 1, 5, 24, 49, 50, 51, 75, 96, 100, 101, 300)
SIZES = (
    (1, 1),
    (1, 9),
    (9, 1),
    (2, 2),
    (3, 5),
    (4, 4),
    (5, 5),
    (6, 3),
    (8, 8),
    (16, 17),
    (33, 65),
    (40, 130),
    (64, 64),
)


def pictures():
    """Smooth, noisy, black and white at the highest frequencies."""
    rng = np.random.default_rng(1)
    result = []
    for h, w in SIZES:
        y, x = np.mgrid[0:h, 0:w]
        smooth = np.stack([128 + 100 * np.sin(x / 9), 128 + 100 * np.cos(y / 7), (x + y) * 2 % 256], axis=2)
        result.append((smooth + rng.normal(0, 10, smooth.shape)).clip(0, 255).astype(np.uint8))
        result.append(rng.integers(0, 256, (h, w, 3)).astype(np.uint8))
        result.append((rng.integers(0, 2, (h, w, 3)) * 255).astype(np.uint8))
    return result


def by_pillow(image, quality):
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "JPEG", quality=quality)
    return np.asarray(Image.open(stream))


@pytest.mark.oracle
@pytest.mark.parametrize("quality", QUALITIES)
def test_against_the_oracle(dali, quality):
    def call(module):
        return module.jpeg_compression_distortion(module.batch(pictures(), layout="HWC"), quality=quality)

    assert check_same(dali, call)


@pytest.mark.oracle
def test_photograph_default_and_sample_mode(dali):
    assert check_same(dali, lambda m: m.jpeg_compression_distortion(m.tensor(photograph(), layout="HWC")))
    assert check_same(dali, lambda m: m.jpeg_compression_distortion(m.tensor(photograph()), quality=20))


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
def test_a_quality_for_each_sample(dali, dtype):
    samples = pictures()[-3:]

    def call(module):
        each = module.batch([dtype(3), dtype(60), dtype(101)])
        return module.jpeg_compression_distortion(module.batch(samples, layout="HWC"), quality=each)

    assert check_same(dali, call)


@pytest.mark.oracle
@pytest.mark.parametrize("layout", [None, "FHWC"])
def test_video(dali, layout):
    clips = [np.stack(pictures()[-3:]), np.stack(pictures()[-1:])]
    for quality in (10, 90):
        assert check_same(
            dali, lambda m, q=quality: m.jpeg_compression_distortion(m.batch(clips, layout=layout), quality=q)
        )


def test_a_quality_for_each_frame():
    """DALI takes one for a video only."""
    frames = pictures()[-3:]
    clip = ndd.tensor(np.stack(frames), layout="FHWC")
    result = ndd.jpeg_compression_distortion(clip, quality=ndd.per_frame(ndd.tensor([1, 50, 100])))
    for frame, image, quality in zip(np.asarray(result), frames, (1, 50, 100), strict=True):
        np.testing.assert_array_equal(frame, np.asarray(ndd.jpeg_compression_distortion(image, quality=quality)))


@pytest.mark.parametrize("quality", [1, 30, 50, 80, 100])
@pytest.mark.drawn(1)
def test_pillow_writes_and_reads_the_same(quality):
    for image in (photograph(), *pictures()):
        result = np.asarray(ndd.jpeg_compression_distortion(image, quality=quality))
        np.testing.assert_array_equal(result, by_pillow(image, quality))


@pytest.mark.parametrize("quality", [1, 10, 49, 50, 77, 100])
@pytest.mark.drawn(1)
def test_gpu_is_the_cpu_bit_for_bit(quality, emulated_gpu):
    images = ndd.batch(pictures(), layout="HWC")
    expected = ndd.jpeg_compression_distortion(images, quality=quality)
    result = ndd.jpeg_compression_distortion(images.gpu(), quality=quality)
    assert result.device == ndd.Device("gpu:0")
    for a, b in zip(result.cpu().tensors, expected.tensors, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_gpu_photograph_video_and_arguments(emulated_gpu):
    image = photograph()[:150, :201]
    each = ndd.batch([4, 95])
    pair = ndd.batch([image, image[::-1, :99]], layout="HWC")
    clip = ndd.tensor(np.stack(pictures()[-3:]), layout="FHWC")
    for value, quality in ((pair, each), (clip, ndd.per_frame(ndd.tensor([1, 50, 100])))):
        expected = ndd.jpeg_compression_distortion(value, quality=quality)
        result = ndd.jpeg_compression_distortion(value.gpu(), quality=quality).cpu()
        expected, result = ([v] if isinstance(v, ndd.Tensor) else v.tensors for v in (expected, result))
        for a, b in zip(result, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("background_too", [True, False])
def test_threads_take_samples_in_turn(background_too, monkeypatch):
    """Ragged, empty, narrow, strided and read-only ones, with a quality each, against Pillow: compiled or stood in for."""
    monkeypatch.setattr(background, "allowed", background_too)
    arguments = [*pictures(), np.zeros((0, 9, 3), np.uint8), np.zeros((9, 0, 3), np.uint8), photograph()]
    arguments[4] = arguments[4].repeat(2, 1)[:, ::2]
    arguments[5].flags.writeable = False
    numbers = [1 + 7 * k % 100 for k in range(len(arguments))]
    apart = ndd.as_batch([ndd.as_tensor(a, layout="HWC") for a in arguments])
    with ndd.EvalContext(num_threads=3):
        result = ndd.jpeg_compression_distortion(apart, quality=ndd.batch(numbers))
        for image, quality, item in zip(arguments, numbers, result.tensors, strict=True):
            expected = by_pillow(image, quality) if image.size else image
            np.testing.assert_array_equal(np.asarray(item), expected, f"{quality} {image.shape}")
    background.finish()


def test_every_quality(monkeypatch):
    """With all frequencies, as large as they can be; rows of less than a register, and of more."""
    monkeypatch.setattr(background, "allowed", False)
    y, x = np.mgrid[0:8, 0:8]
    waves = [
        np.cos((2 * x + 1) * a * np.pi / 16) * np.cos((2 * y + 1) * b * np.pi / 16) for a in range(8) for b in range(8)
    ]
    blocks = np.where(np.stack(waves) >= 0, 255, 0).reshape(8, 8, 8, 8).transpose(0, 2, 1, 3).reshape(64, 64)
    image = np.stack([blocks, 255 - blocks, blocks[::-1]], axis=2).astype(np.uint8)
    images = [image[:, : 5 + quality % 60] for quality in range(1, 101)]
    result = ndd.jpeg_compression_distortion(ndd.batch(images, layout="HWC"), quality=ndd.batch(list(range(1, 101))))
    for k, item in enumerate(result.tensors):
        np.testing.assert_array_equal(np.asarray(item), by_pillow(images[k], k + 1), str(k + 1))


def test_one_compiled_call_for_each_thread(monkeypatch):
    """No library is called for a sample."""
    monkeypatch.setattr(background, "allowed", False)

    def missing():
        raise ImportError("OpenCV is missing")

    monkeypatch.setattr(jpeg_losses, "single_threaded", missing)
    images = ndd.batch([photograph()[: 40 + k] for k in range(4)], layout="HWC")
    result = ndd.jpeg_compression_distortion(images, quality=30)
    for image, item in zip(images.tensors, result.tensors, strict=True):
        np.testing.assert_array_equal(np.asarray(item), by_pillow(np.asarray(image), 30))


def test_no_pixels():
    for shape in ((0, 4, 3), (4, 0, 3)):
        assert ndd.jpeg_compression_distortion(np.zeros(shape, np.uint8)).shape == shape
    assert ndd.jpeg_compression_distortion(ndd.tensor(np.zeros((0, 4, 4, 3), np.uint8), layout="FHWC")).shape[0] == 0


@pytest.mark.oracle
def test_misuse(dali):
    image = np.zeros((8, 8, 3), np.uint8)
    for dtype in ("uint16", "int8", "float32", "bool"):
        assert not check_same(dali, lambda m, d=dtype: m.jpeg_compression_distortion(image.astype(d)), note=dtype)
    for channels in (1, 2, 4):
        wrong = np.zeros((8, 8, channels), np.uint8)
        assert not check_same(dali, lambda m, w=wrong: m.jpeg_compression_distortion(w), note=channels)
    assert not check_same(dali, lambda m: m.jpeg_compression_distortion(image[0]))
    assert not check_same(dali, lambda m: m.jpeg_compression_distortion(m.tensor(image, layout="CHW")))
    with pytest.raises(RuntimeError, match="quality"):  # DALI: a TypeError in some modes
        ndd.jpeg_compression_distortion(image, quality=[50, 60]).evaluate()
    assert ndd.jpeg_compression_distortion(image, quality=[50]).shape == image.shape  # DALI refuses it
    assert not check_same(dali, lambda m: m.jpeg_compression_distortion(np.zeros((1, 66000, 3), np.uint8)))


def test_errors_name_the_sample():
    images = ndd.batch([np.zeros((8, 8, 3), np.uint8), np.zeros((8, 8, 1), np.uint8)])
    with pytest.raises(RuntimeError, match=r"jpeg_compression_distortion: sample 1.*3 channels.*\(8, 8, 1\)"):
        ndd.jpeg_compression_distortion(images).evaluate()


def test_too_long_a_sample_is_named():
    """The others are as they should be."""
    images = [photograph()[:20, :30], np.zeros((65501, 8, 3), np.uint8)]
    result = ndd.jpeg_compression_distortion(ndd.batch(images, layout="HWC"), quality=30)
    with pytest.raises(RuntimeError, match=r"sample 1: a JPEG image has at most 65500.*\(65501, 8, 3\)"):
        result.evaluate()
    short = np.zeros((65500, 8, 3), np.uint8)
    assert ndd.jpeg_compression_distortion(short).shape == short.shape


def test_without_opencv(monkeypatch):
    """It is only there for very narrow images."""

    def missing():
        raise ImportError("OpenCV is missing")

    monkeypatch.setattr(jpeg_losses, "single_threaded", missing)
    with pytest.raises(ImportError, match="OpenCV is missing"):
        ndd.jpeg_compression_distortion(np.zeros((8, 4, 3), np.uint8)).evaluate()
