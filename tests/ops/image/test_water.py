"""`ndd.water` beside DALI and the emulated GPU."""

import numpy as np
import pytest
from cases import each_of
from compare import arrays_of, check_same
from warp_calls import numbers, picture

import ndd
from ndd.demo.folder import PHOTOS

REGISTRY_CASES = {
    "water": each_of({}, {"ampl_x": 3.0, "freq_y": 0.2}, layouts=("HWC",), dtypes=("uint8", "float32")),
}


def arguments(rng):
    found = {k: float(np.float32(rng.uniform(0, 12))) for k in ("ampl_x", "ampl_y") if rng.integers(0, 2)}
    found |= {k: float(np.float32(rng.uniform(0, 0.5))) for k in ("freq_x", "freq_y") if rng.integers(0, 2)}
    found |= {k: float(np.float32(rng.uniform(-4, 4))) for k in ("phase_x", "phase_y") if rng.integers(0, 2)}
    if rng.integers(0, 2):
        found["fill_value"] = float(rng.choice([7.0, 300.5, -9.25, 2.5]))
    return {**found, "interp_type": int(rng.integers(0, 2))}


@pytest.mark.parametrize("kind", ["uint8", "float32"])
def test_random_calls_as_dali(dali, kind):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        samples, given = [picture(rng, "HWC", kind) for _ in range(2)], arguments(rng)
        layout = "HWC" if seed % 3 else None
        # Sines of float32 may differ by their last bit.
        assert check_same(dali, lambda m, s=samples, g=given, x=layout: m.water(m.batch(s, layout=x), **g), 3e-5, given)


def test_a_mask_for_each_sample_as_dali(dali):
    samples = [numbers(np.random.default_rng(i), (9, 8 + i, 3), "uint8") for i in range(3)]
    for mask in ([1, 0, 1], [0, 0, 0], [2, -1, 0]):
        assert check_same(dali, lambda m, k=mask: m.water(m.batch(samples, layout="HWC"), mask=m.batch(k)))


def test_a_photograph_as_dali(dali):
    from PIL import Image

    image = np.asarray(Image.open(sorted(PHOTOS.rglob("*.jpg"))[0]).convert("RGB"))
    for interp in (0, 1):
        assert check_same(dali, lambda m, i=interp: m.water(m.tensor(image, layout="HWC"), interp_type=i), 1e-5)


def test_a_constant_mask(emulated_gpu):
    """DALI gives other memory for 0."""
    image = ndd.tensor(numbers(np.random.default_rng(0), (9, 8, 3), "uint8"), layout="HWC")
    for x in (image, image.gpu()):
        np.testing.assert_array_equal(np.asarray(ndd.water(x, mask=0).cpu()), np.asarray(image))
        np.testing.assert_array_equal(np.asarray(ndd.water(x, mask=1).cpu()), np.asarray(ndd.water(image)))


MISUSES = [
    lambda m: m.water(m.tensor(np.ones((3, 4, 1), np.int16), layout="HWC")),
    lambda m: m.water(m.tensor(np.ones((3, 4, 1), np.float16), layout="HWC")),
    lambda m: m.water(m.tensor(np.ones((3, 4, 1), np.uint8), layout="HWC"), interp_type=2),
    lambda m: m.water(m.tensor(np.ones((3, 4, 1), np.uint8), layout="CHW")),
    lambda m: m.water(m.tensor(np.ones((2, 3, 4, 1), np.uint8), layout="FHWC")),
]


@pytest.mark.parametrize("number", range(len(MISUSES)))
def test_misuse_as_dali(dali, number):
    assert not check_same(dali, MISUSES[number])


def test_images_without_pixels_stay_so():
    for shape in ((0, 5, 3), (5, 0, 3), (5, 5, 0)):
        assert ndd.water(ndd.tensor(np.zeros(shape, np.uint8), layout="HWC")).shape == shape


def test_gpu_as_cpu(emulated_gpu):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        kind = ("uint8", "float32")[seed % 2]
        batch = ndd.batch([picture(rng, "HWC", kind) for _ in range(3)], layout="HWC")
        given = arguments(rng) | {"mask": ndd.batch([1, 0, 1])}
        cpu, gpu = ndd.water(batch, **given), ndd.water(batch.gpu(), **given)
        for a, b in zip(arrays_of(gpu), arrays_of(cpu), strict=True):
            off = np.abs(a.astype(np.float64) - b)
            if given["interp_type"] == 0:
                assert np.count_nonzero(off) <= 0.01 * a.size
            else:
                assert off.max(initial=0) <= (1 if kind == "uint8" else 0.01)
