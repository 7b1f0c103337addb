"""`ndd.rotate` beside DALI, PIL and the emulated GPU."""

import numpy as np
import pytest
from cases import each_of
from compare import arrays_of, check_same
from selection import drawn, repeated
from warp_calls import layouts_and_pairs, numbers, picture

import ndd
from ndd.demo.folder import PHOTOS

_IMAGE_TYPES = ("uint8", "int16", "int32", "float32")

REGISTRY_CASES = {
    "rotate": each_of(
        {"angle": 30.0},
        {"angle": 33.0, "interp_type": 0},  # no points between two pixels: the choice may differ on a GPU
        {"angle": -100.0, "keep_size": True, "fill_value": 7.0},
        layouts=("HWC", "FHWC"),
        dtypes=_IMAGE_TYPES,
    )
    + each_of({"angle": 30.0, "axis": [1.0, 2.0, 3.0]}, layouts=("DHWC",), dtypes=_IMAGE_TYPES),
}

ANGLES = [0.0, 90.0, 180.0, -90.0, 270.0, 45.0, -45.0, 135.0, 30.0, 60.0, -120.0, 5.0, 89.9, 360.0, 720.5, -333.0]


def arguments(rng, module, target):
    result = {"angle": float(rng.choice([*ANGLES, np.float32(rng.uniform(-400, 400))]))}
    result["interp_type"] = int(rng.integers(0, 2))
    result["fill_value"] = [None, 7.0, 300.5, -9.25, 2.5][rng.integers(0, 5)]
    result["keep_size"] = bool(rng.integers(0, 2))
    if target:
        result["dtype"] = getattr(module, target)
    return result


@pytest.mark.parametrize(("layout", "pair"), layouts_and_pairs("HWC", "FHWC", None))
@pytest.mark.drawn(1)
def test_random_calls_as_dali(dali, layout, pair):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        samples = [picture(rng, layout or "HWC", pair[0]) for _ in range(2)]

        def call(m, samples=samples, seed=seed):
            return m.rotate(m.batch(samples, layout=layout), **arguments(np.random.default_rng(seed), m, pair[1]))

        # The last bit of a cosine may differ.
        assert check_same(dali, call, 1e-6 if pair[1] == "float32" or pair == ("float32", None) else 0.0, (pair, seed))


@pytest.mark.parametrize("layout", ["DHWC", "FDHWC"])
@pytest.mark.drawn(1)
def test_volumes_as_dali(dali, layout):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        axis = np.eye(3)[seed % 3] if seed % 2 else rng.standard_normal(3)
        for kind in drawn(("uint8", "float32"), 1, "volumes"):
            samples = [picture(rng, layout, kind) for _ in range(2)]

            def call(m, samples=samples, axis=axis, seed=seed):
                options = arguments(np.random.default_rng(seed), m, None)
                return m.rotate(m.batch(samples, layout=layout), axis=[float(v) for v in axis], **options)

            assert check_same(dali, call, 5e-6, (layout, seed, kind))


def test_canvases_as_dali(dali):
    rng = np.random.default_rng(0)
    for _ in repeated(60, 20):
        h, w = (int(v) for v in rng.integers(1, 60, 2))
        angle = float(np.float32(rng.choice([*ANGLES, rng.uniform(-400, 400), rng.integers(-30, 30) * 15 + 0.01])))
        image = np.zeros((h, w, 1), np.uint8)
        check_same(dali, lambda m, i=image, a=angle: m.rotate(m.tensor(i, layout="HWC"), angle=a), note=(h, w, angle))


WAYS = [
    lambda m, x: m.rotate(x, angle=m.batch([10.0, 90.0, -45.0])),
    lambda m, x: m.rotate(x, angle=m.tensor(33.0)),
    lambda m, x: m.rotate(x, angle=30, size=[20.0, 30.0]),
    lambda m, x: m.rotate(x, angle=30, size=[20.0, 3.0], keep_size=True),
    lambda m, x: m.rotate(x, angle=m.batch([1.0, 2.0, 3.0]), size=m.batch([[4.0, 5.0], [6.5, 2.7], [1.0, 9.9]])),
    lambda m, x: m.rotate(x, angle=30, axis=[1, 2, 3]),
    lambda m, x: m.rotate(x, angle=1e6, fill_value=0),
]


@pytest.mark.parametrize("number", range(len(WAYS)))
def test_ways_to_call_as_dali(dali, number):
    samples = [picture(np.random.default_rng(i), "HWC", "uint8") for i in range(3)]
    assert check_same(dali, lambda m: WAYS[number](m, m.batch(samples, layout="HWC")))


def test_an_axis_for_each_sample_as_dali(dali):
    rng = np.random.default_rng(3)
    samples, axes = [numbers(rng, (4, 5, 6, 1), "uint8") for _ in range(3)], rng.standard_normal((3, 3))

    def call(m):
        x = m.batch(samples, layout="DHWC")
        return m.rotate(x, angle=m.batch([20.0, 50.0, 200.0]), axis=m.batch(list(axes.astype(np.float32))))

    assert check_same(dali, call, 1e-5)


def test_an_angle_for_each_frame_as_dali(dali):
    video = [numbers(np.random.default_rng(f), (f, 9, 8, 3), "uint8") for f in (2, 4)]

    def call(m):
        angles = m.per_frame(m.batch([np.array([10, 20], np.float32), np.array([0, 45, 90, 200], np.float32)]))
        return m.rotate(m.batch(video, layout="FHWC"), angle=angles, keep_size=True)

    assert check_same(dali, call)


def _image(m, kind="uint8", layout="HWC"):
    return m.tensor(np.ones((3, 4, 2, 1)[: len(layout)], kind), layout=layout)


MISUSES = [
    lambda m: m.rotate(_image(m), angle=30, interp_type=2),
    lambda m: m.rotate(_image(m), angle=30, size=[3.0]),
    lambda m: m.rotate(_image(m), angle=30, size=[-1.0, 3.0]),
    lambda m: m.rotate(_image(m), angle=30, dtype=m.int16),
    lambda m: m.rotate(_image(m, "uint16"), angle=30),
    lambda m: m.rotate(_image(m, "float64"), angle=30),
    lambda m: m.rotate(_image(m, layout="CHW"), angle=30),
    lambda m: m.rotate(_image(m, layout="DHWC"), angle=30),
    lambda m: m.rotate(_image(m, layout="DHWC"), angle=30, axis=[1, 0]),
    lambda m: m.rotate(_image(m, layout="DHWC"), angle=30, axis=[1, 0, 0], size=[3.0, 3.0]),
    lambda m: m.rotate(_image(m)),
]


@pytest.mark.parametrize("number", range(len(MISUSES)))
def test_misuse_as_dali(dali, number):
    assert not check_same(dali, MISUSES[number])


def test_no_angle_and_no_axis():
    with pytest.raises(RuntimeError, match="axis"):
        ndd.rotate(_image(ndd, layout="DHWC"), angle=30, axis=[0, 0, 0]).evaluate()
    with pytest.raises(RuntimeError, match="angle"):
        ndd.rotate(_image(ndd), angle=float("nan")).evaluate()


def test_images_without_pixels_stay_so():
    """DALI crashes."""
    for shape in ((0, 5, 3), (5, 0, 3)):
        assert ndd.rotate(ndd.tensor(np.zeros(shape, np.uint8), layout="HWC"), angle=30).shape == (0, 0, 3)


def test_a_photograph_as_pil():
    from PIL import Image, ImageFilter

    image = Image.open(sorted(PHOTOS.rglob("*.jpg"))[0]).convert("RGB").resize((160, 120))
    expected = image.rotate(30, Image.Resampling.BILINEAR, expand=True)
    result = np.asarray(
        ndd.rotate(
            ndd.tensor(np.asarray(image), layout="HWC"), angle=30, fill_value=0, size=[expected.height, expected.width]
        )
    )
    inner = np.asarray(Image.new("L", image.size, 255).rotate(30, expand=True).filter(ImageFilter.MinFilter(7))) > 0
    off = np.abs(result.astype(int) - np.asarray(expected))[inner, :]
    assert off.mean() < 0.6  # PIL's points are rounded


def test_opencv():
    cv2 = pytest.importorskip("cv2")
    image = numbers(np.random.default_rng(1), (40, 51, 3), "uint8")
    expected = cv2.warpAffine(image, cv2.getRotationMatrix2D((25.0, 19.5), 30, 1), (51, 40))
    result = ndd.rotate(ndd.tensor(image, layout="HWC"), angle=30, keep_size=True, fill_value=0)
    assert np.abs(np.asarray(result).astype(int) - expected).max() <= 1


def test_right_angles_are_numpys():
    image = numbers(np.random.default_rng(0), (5, 8, 3), "uint8")
    for turns in range(4):
        result = np.asarray(ndd.rotate(ndd.tensor(image, layout="HWC"), angle=90 * turns))
        np.testing.assert_array_equal(result, np.rot90(image, turns))


def test_gpu_as_cpu(emulated_gpu):
    rng = np.random.default_rng(6)
    kinds = ("DHWC", "uint8"), ("HWC", "int16"), ("FHWC", "float32"), ("DHWC", "float32")
    for layout, kind in drawn(kinds, 1, "rotate"):
        batch = ndd.batch([picture(rng, layout, kind) for _ in range(3)], layout=layout)
        for seed in range(4):
            options = arguments(np.random.default_rng(seed), ndd, None) | {"angle": 33.0 + 100 * seed}
            options |= {"axis": [1, 2, 3]} if "D" in layout else {}
            cpu, gpu = ndd.rotate(batch, **options), ndd.rotate(batch.gpu(), **options)
            for a, b in zip(arrays_of(gpu), arrays_of(cpu), strict=True):
                assert a.shape == b.shape
                off = np.abs(a.astype(np.float64) - b)
                if options["interp_type"] == 0:
                    assert np.count_nonzero(off) <= max(3, 0.02 * a.size)  # a point may lie between two pixels
                else:
                    assert off.max(initial=0) <= (
                        1 if kind == "uint8" else 1e-4 * np.abs(b.astype(float)).max(initial=1) + 1
                    )


@pytest.mark.parametrize("seed", range(6))
def test_frames_of_one_video_share_a_canvas_as_dali(dali, seed):
    rng = np.random.default_rng(seed)
    video, angles = [], []
    for frames in (3, 1, 4, 2):
        height, width = rng.integers(4, 24, 2)
        video.append(numbers(rng, (frames, height, width, 3), "uint8"))
        angles.append(rng.uniform(-180, 180, frames).astype(np.float32))

    def call(m):
        turned = m.per_frame(m.batch(angles))
        return m.rotate(m.batch(video, layout="FHWC"), angle=turned, fill_value=0)

    assert check_same(dali, call, 1e-5)
    volumes = [v.reshape(len(v), 2, -1, v.shape[2], 3) for v in video if v.shape[1] % 2 == 0]

    def call_with_volumes(m):
        turned = m.per_frame(m.batch([a for a, v in zip(angles, video, strict=True) if v.shape[1] % 2 == 0]))
        return m.rotate(m.batch(volumes, layout="FDHWC"), angle=turned, axis=[1.0, 2.0, 3.0], fill_value=0)

    assert not volumes or check_same(dali, call_with_volumes, 1e-4)
