"""`ndd.sphere` beside DALI and the emulated GPU."""

import numpy as np
import pytest
from cases import each_of
from compare import arrays_of, check_same
from warp_calls import numbers, picture

import ndd
from ndd.demo.folder import PHOTOS

REGISTRY_CASES = {
    "sphere": each_of({}, layouts=("HWC",), dtypes=("uint8", "float32")),
}


@pytest.mark.parametrize("kind", ["uint8", "float32"])
def test_random_images_as_dali(dali, kind):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        samples = [picture(rng, "HWC", kind) for _ in range(2)]
        given = {"interp_type": seed % 2} | ({"fill_value": float(rng.choice([7.0, 300.5, -9.25]))} if seed % 3 else {})
        assert check_same(
            dali,
            lambda m, s=samples, g=given: m.sphere(m.batch(s, layout="HWC"), **g),
            0.0,
            (seed, given, samples[0].shape, samples[1].shape),
        )


def test_a_mask_for_each_sample_as_dali(dali):
    samples = [numbers(np.random.default_rng(i), (9, 8 + i, 3), "uint8") for i in range(3)]
    for mask in ([1, 0, 1], [2, -1, 0]):
        assert check_same(dali, lambda m, k=mask: m.sphere(m.batch(samples, layout="HWC"), mask=m.batch(k)))


def test_a_photograph_as_dali(dali):
    from PIL import Image

    image = np.asarray(Image.open(sorted(PHOTOS.rglob("*.jpg"))[0]).convert("RGB"))
    for interp in (0, 1):
        assert check_same(dali, lambda m, i=interp: m.sphere(m.tensor(image, layout="HWC"), interp_type=i), 1e-5)


def test_a_constant_mask(emulated_gpu):
    """DALI gives other memory for 0."""
    image = ndd.tensor(numbers(np.random.default_rng(0), (9, 8, 3), "uint8"), layout="HWC")
    for x in (image, image.gpu()):
        np.testing.assert_array_equal(np.asarray(ndd.sphere(x, mask=0).cpu()), np.asarray(image))
        np.testing.assert_array_equal(np.asarray(ndd.sphere(x, mask=1).cpu()), np.asarray(ndd.sphere(image)))


MISUSES = [
    lambda m: m.sphere(m.tensor(np.ones((3, 4, 1), np.int16), layout="HWC")),
    lambda m: m.sphere(m.tensor(np.ones((3, 4, 1), np.uint8), layout="HWC"), interp_type=2),
    lambda m: m.sphere(m.tensor(np.ones((3, 4, 1), np.uint8), layout="CHW")),
    lambda m: m.sphere(m.tensor(np.ones((2, 3, 4, 1), np.uint8), layout="FHWC")),
]


@pytest.mark.parametrize("number", range(len(MISUSES)))
def test_misuse_as_dali(dali, number):
    assert not check_same(dali, MISUSES[number])


def test_images_without_pixels_stay_so():
    for shape in ((0, 5, 3), (5, 0, 3), (5, 5, 0)):
        assert ndd.sphere(ndd.tensor(np.zeros(shape, np.uint8), layout="HWC")).shape == shape


def test_gpu_as_cpu(emulated_gpu):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        kind = ("uint8", "float32")[seed % 2]
        batch = ndd.batch([picture(rng, "HWC", kind) for _ in range(3)], layout="HWC")
        given = {"interp_type": seed // 2 % 2, "mask": ndd.batch([1, 0, 1]), "fill_value": 300.5}
        cpu, gpu = ndd.sphere(batch, **given), ndd.sphere(batch.gpu(), **given)
        for a, b in zip(arrays_of(gpu), arrays_of(cpu), strict=True):
            off = np.abs(a.astype(np.float64) - b)
            if given["interp_type"] == 0:
                assert np.count_nonzero(off) <= 0.01 * a.size
            else:
                assert off.max(initial=0) <= (1 if kind == "uint8" else 0.01)
