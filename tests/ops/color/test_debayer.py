"""debayer: bit for bit the oracle's and OpenCV's; the kernels bit for bit the CPU's (vng_ocv: to 1, rarely)."""

from __future__ import annotations

import numpy as np
import pytest
from cases import each_of, values
from compare import check_same
from PIL import Image

import ndd
from ndd._compiled.background import background
from ndd.demo.folder import PHOTOS

REGISTRY_INPUTS = {"bayer": (lambda rng, i, dtype: values(rng, (2 * (5 + i), 2 * (4 + i)), dtype), "HW")}
REGISTRY_CASES = {
    "debayer": [
        *each_of({"blue_position": [0, 0]}, {"blue_position": [1, 0]}, inputs=("bayer",), dtypes=("uint8", "uint16")),
        *each_of(
            {"blue_position": [0, 1], "algorithm": "edgeaware_ocv"},
            {"blue_position": [1, 1], "algorithm": "vng_ocv"},
            {"blue_position": [0, 0], "algorithm": "gray_ocv"},
            inputs=("bayer",),
            dtypes=("uint8",),
        ),
    ],
}

POSITIONS = ([0, 0], [0, 1], [1, 0], [1, 1])
ALGORITHMS = (None, "default", "bilinear_ocv", "edgeaware_ocv", "vng_ocv", "gray_ocv", "EdgeAware_OCV")
SIZES = ((2, 2), (2, 6), (6, 2), (4, 4), (6, 20), (8, 8), (10, 8), (16, 18), (40, 52), (34, 130))


def mosaics(dtype="uint8"):
    rng = np.random.default_rng(2)
    high = np.iinfo(dtype).max
    result = []
    for h, w in SIZES:
        y, x = np.mgrid[0:h, 0:w]
        result.append(rng.integers(0, high, (h, w), endpoint=True).astype(dtype))
        result.append((rng.integers(0, 2, (h, w)) * high).astype(dtype))
        result.append(((0.5 + 0.4 * np.sin(x / 9) + 0.1 * np.cos(y / 7)) * high).astype(dtype))
    return result


def sensor(image, position):
    """What a sensor with this tile sees of an image."""
    y, x = np.mgrid[0 : image.shape[0], 0 : image.shape[1]]
    blue_row, blue_column = (y + 1) % 2 == position[0], (x + 1) % 2 == position[1]
    number = np.where(blue_row == blue_column, np.where(blue_row, 2, 0), 1)
    return np.take_along_axis(image, number[..., None], 2)[..., 0]


@pytest.mark.oracle
@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.drawn(3)
def test_against_the_oracle(dali, dtype, algorithm, position):
    more = {} if algorithm is None else {"algorithm": algorithm}

    def call(module):
        return module.debayer(module.batch(mosaics(dtype), layout="HW"), blue_position=position, **more)

    assert check_same(dali, call) == (algorithm != "vng_ocv" or dtype == "uint8")


@pytest.mark.oracle
@pytest.mark.parametrize("layout", [None, "HW", "HWC", "FHW", "FHWC"])
def test_layouts(dali, layout):
    mosaic = mosaics()[-1]
    shape = {"F": 3, "H": mosaic.shape[0], "W": mosaic.shape[1], "C": 1}
    value = np.ascontiguousarray(np.broadcast_to(mosaic[..., None], (3, *mosaic.shape, 1)))
    value = value[: 3 if layout and "F" in layout else 1].reshape([shape[c] for c in layout or "HW"])
    for algorithm in ("bilinear_ocv", "gray_ocv"):
        for make in ("tensor", "batch"):

            def call(module, make=make, algorithm=algorithm):
                options = (
                    module.tensor(value, layout=layout)
                    if make == "tensor"
                    else module.batch([value] * 2, layout=layout)
                )
                return module.debayer(options, blue_position=[0, 1], algorithm=algorithm)

            assert check_same(dali, call, note=(layout, make))
    video = np.stack([mosaic[..., None]] * 2)
    assert check_same(dali, lambda m: m.debayer(video, blue_position=[1, 1]), note="FHWC by rank")


@pytest.mark.oracle
def test_positions(dali):
    samples = mosaics()[-4:]
    for dtype in (np.int32, np.int64, np.uint8, np.float32):

        def each(module, dtype=dtype):
            values = [np.array(p, dtype) for p in POSITIONS]
            return module.debayer(module.batch(samples), blue_position=module.batch(values))

        assert check_same(dali, each, note=dtype)
    for value in ((0, 1), np.array([1, 0])):
        assert check_same(dali, lambda m, v=value: m.debayer(m.batch(samples), blue_position=v), note=value)
    for value in (1, [1]):  # DALI takes it or not, as earlier calls would have it
        result = ndd.debayer(samples[0], blue_position=value)
        np.testing.assert_array_equal(np.asarray(result), np.asarray(ndd.debayer(samples[0], blue_position=[1, 1])))

    def frames(module):
        clip = module.tensor(np.stack([samples[0]] * 3), layout="FHW")
        return module.debayer(clip, blue_position=module.per_frame(module.tensor(np.int32(POSITIONS[:3]))))

    assert check_same(dali, frames)


def test_opencv_gives_the_same():
    import cv2

    for i, name in enumerate(("BG", "GB", "GR", "RG")):
        for algorithm, suffix in (("bilinear_ocv", "2RGB"), ("edgeaware_ocv", "2RGB_EA"), ("gray_ocv", "2GRAY")):
            for mosaic in mosaics("uint16"):
                expected = cv2.demosaicing(mosaic, getattr(cv2, f"COLOR_Bayer{name}{suffix}"))
                result = np.asarray(ndd.debayer(mosaic, blue_position=POSITIONS[i], algorithm=algorithm))
                np.testing.assert_array_equal(result.squeeze(), expected.squeeze())


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_means_of_neighbours_are_rounded_once(dtype, monkeypatch):
    """Of small and of the largest numbers, all fours of them; rows of a register, two columns less and more."""
    cv2 = pytest.importorskip("cv2")
    monkeypatch.setattr(background, "allowed", False)
    rng, high = np.random.default_rng(3), np.iinfo(dtype).max
    for width in (16, 18, 20, 32, 34, 36, 130):
        for chosen in ([0, 1, 2, 3], [0, high - 1, high]):
            mosaic = rng.choice(np.array(chosen, dtype), (66, width))
            result = ndd.debayer(mosaic, blue_position=[0, 1])
            np.testing.assert_array_equal(np.asarray(result), cv2.demosaicing(mosaic, cv2.COLOR_BayerGB2RGB))


@pytest.mark.parametrize("algorithm", ["bilinear_ocv", "edgeaware_ocv", "vng_ocv", "gray_ocv"])
def test_a_photograph_comes_back(algorithm):
    """A wrong tile, a shift or swapped colours would show as a large mean error."""
    image = np.asarray(Image.open(PHOTOS / "things" / "coffee.jpg").convert("RGB"))
    image = image[: image.shape[0] // 2 * 2, : image.shape[1] // 2 * 2]
    wanted = image if algorithm != "gray_ocv" else (image @ [0.299, 0.587, 0.114])[..., None]
    for position in POSITIONS:
        result = np.asarray(ndd.debayer(sensor(image, position), blue_position=position, algorithm=algorithm))
        assert result.shape == wanted.shape
        assert np.abs(result - wanted.astype(float)).mean() < 4


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("algorithm", ["bilinear_ocv", "edgeaware_ocv", "vng_ocv", "gray_ocv"])
@pytest.mark.drawn(1)
def test_gpu_is_the_cpu(algorithm, position, emulated_gpu):
    for dtype in ("uint8",) if algorithm == "vng_ocv" else ("uint8", "uint16"):
        batch = ndd.batch(mosaics(dtype), layout="HW")
        expected = ndd.debayer(batch, blue_position=position, algorithm=algorithm)
        result = ndd.debayer(batch.gpu(), blue_position=position, algorithm=algorithm)
        assert result.device == ndd.Device("gpu:0")
        for a, b in zip(result.cpu().tensors, expected.tensors, strict=True):
            difference = np.abs(np.asarray(a).astype(int) - np.asarray(b))
            if algorithm == "vng_ocv":
                assert difference.max() <= 1
                assert (difference > 0).mean() < 0.01
            else:
                assert not difference.any()


def test_gpu_arguments_and_video(emulated_gpu):
    clip = ndd.tensor(np.stack(mosaics()[-3:]), layout="FHW")
    each = ndd.per_frame(ndd.tensor(POSITIONS[:3]))
    for algorithm in ("default", "default_npp"):
        result = ndd.debayer(clip.gpu(), blue_position=each, algorithm=algorithm).cpu()
        np.testing.assert_array_equal(np.asarray(result), np.asarray(ndd.debayer(clip, blue_position=each)))


def test_no_pixels():
    for shape in ((0, 4), (4, 0)):
        assert ndd.debayer(np.zeros(shape, np.uint8), blue_position=[0, 0]).shape == (*shape, 3)


@pytest.mark.oracle
def test_misuse(dali):
    mosaic = mosaics()[-1]

    def refused(value=mosaic, layout=None, **arguments):
        options = {"blue_position": [0, 0], **arguments}
        return not check_same(dali, lambda m: m.debayer(m.tensor(value, layout=layout), **options), note=arguments)

    for algorithm in ("", "nearest", "default_npp", "bilinear_npp"):
        assert refused(algorithm=algorithm)
    for position in ([0, 2], [-1, 0], [0, 0, 0], 2, []):
        assert refused(blue_position=position)
    for dtype in ("int8", "int16", "int32", "float32", "bool"):
        assert refused(mosaic.astype(dtype))
    assert refused(mosaic.astype("uint16"), algorithm="vng_ocv")
    for wrong in (mosaic[:-1], mosaic[:, :-1], mosaic[:1, :1], np.stack([mosaic] * 3, 2), np.stack([mosaic] * 3)):
        assert refused(np.ascontiguousarray(wrong))
    assert refused(mosaic[None], "CHW")
    with pytest.raises(TypeError, match="blue_position"):
        ndd.debayer(mosaic)


def test_errors_name_the_sample():
    bad = ndd.batch([np.zeros((4, 4), np.uint8), np.zeros((5, 4), np.uint8)])
    with pytest.raises(RuntimeError, match=r"debayer: sample 1: expected a mosaic of even height.*\(5, 4\)"):
        ndd.debayer(bad, blue_position=[0, 0]).evaluate()
    good = ndd.batch([np.zeros((4, 4), np.uint8)] * 2)
    with pytest.raises(RuntimeError, match=r"debayer: sample 1: `blue_position`.*\(0, 3\)"):
        ndd.debayer(good, blue_position=ndd.batch([[0, 1], [0, 3]])).evaluate()


@pytest.mark.parametrize("background_too", [True, False])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_threads_take_samples_in_turn(dtype, background_too, monkeypatch):
    """Ragged, empty and strided ones, against OpenCV."""
    cv2 = pytest.importorskip("cv2")
    monkeypatch.setattr(background, "allowed", background_too)
    options = [m for m in mosaics(dtype) if min(m.shape) > 2]
    options = [*options, options[-1].repeat(2, 1)[:, ::2], np.zeros((0, 4), dtype), options[3]]
    apart = ndd.as_batch([ndd.as_tensor(m, layout="HW") for m in options])
    codes = [cv2.COLOR_BayerBG2RGB, cv2.COLOR_BayerGB2RGB, cv2.COLOR_BayerGR2RGB, cv2.COLOR_BayerRG2RGB]
    numbers = [k % 4 for k in range(len(options))]
    with ndd.EvalContext(num_threads=3):
        result = ndd.debayer(apart, blue_position=ndd.batch([POSITIONS[k] for k in numbers]))
        for mosaic, k, item in zip(options, numbers, result.tensors, strict=True):
            assert item.shape == (*mosaic.shape, 3)
            if mosaic.size:
                expected = cv2.demosaicing(np.ascontiguousarray(mosaic), codes[k])
                np.testing.assert_array_equal(np.asarray(item), expected, f"{k} {mosaic.shape}")
    background.finish()
