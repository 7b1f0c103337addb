"""`ndd.sphere` and `ndd.water` beside DALI; the GPU is compared by the walk over all operators, with the cases here."""

import numpy as np
import pytest
from cases import EachSample, each_of
from compare import check_same
from selection import repeated
from warp_calls import numbers, picture

import ndd
from ndd.demo.folder import PHOTOS

SIGNS = EachSample([1, 0, 1])
REGISTRY_CASES = {
    "sphere": each_of(
        {}, {"interp_type": 0, "mask": SIGNS, "fill_value": 300.5}, {"mask": SIGNS, "fill_value": -9.25},
        layouts=("HWC",), dtypes=("uint8", "float32"),
    ),
    "water": each_of(
        {}, {"ampl_x": 3.0, "freq_y": 0.2}, {"interp_type": 0, "mask": SIGNS, "phase_x": 2.0, "fill_value": 7.0},
        {"mask": SIGNS, "ampl_y": 4.0, "phase_y": -1.0, "fill_value": 300.5}, layouts=("HWC",), dtypes=("uint8", "float32"),
    ),
}  # fmt: skip
OPERATORS = ("sphere", "water")
RANGES = {"ampl": (0, 12), "freq": (0, 0.5), "phase": (-4, 4)}


def arguments(op, rng):
    names = [f"{name}_{axis}" for name in RANGES for axis in "xy"] if op == "water" else []
    result = {k: float(np.float32(rng.uniform(*RANGES[k[:-2]]))) for k in names if rng.integers(0, 2)}
    if rng.integers(0, 2):
        result["fill_value"] = float(rng.choice([7.0, 300.5, -9.25, 2.5]))
    return {**result, "interp_type": int(rng.integers(0, 2))}


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("kind", ["uint8", "float32"])
def test_random_calls_as_dali(dali, op, kind):
    for seed in repeated(60, 20):
        rng = np.random.default_rng(seed)
        samples, options = [picture(rng, "HWC", kind) for _ in range(2)], arguments(op, rng)
        layout = "HWC" if seed % 3 else None
        call = lambda m, s=samples, g=options, x=layout: getattr(m, op)(m.batch(s, layout=x), **g)  # noqa: E731
        # The sines of water, of float32, may differ by their last bit.
        assert check_same(dali, call, 3e-5 if op == "water" else 0.0, (seed, options))


@pytest.mark.parametrize("op", OPERATORS)
def test_a_mask_for_each_sample_as_dali(dali, op):
    samples = [numbers(np.random.default_rng(i), (9, 8 + i, 3), "uint8") for i in range(3)]
    for mask in ([1, 0, 1], [2, -1, 0]):
        assert check_same(dali, lambda m, k=mask: getattr(m, op)(m.batch(samples, layout="HWC"), mask=m.batch(k)))


@pytest.mark.parametrize("op", OPERATORS)
def test_a_photograph_as_dali(dali, op):
    from PIL import Image

    image = np.asarray(Image.open(sorted(PHOTOS.rglob("*.jpg"))[0]).convert("RGB"))
    for interp in (0, 1):
        assert check_same(dali, lambda m, i=interp: getattr(m, op)(m.tensor(image, layout="HWC"), interp_type=i), 1e-5)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.drawn(1)
def test_a_constant_mask(op, emulated_gpu):
    """DALI gives other memory for 0."""
    displaced = getattr(ndd, op)
    image = ndd.tensor(numbers(np.random.default_rng(0), (9, 8, 3), "uint8"), layout="HWC")
    for x in (image, image.gpu()):
        np.testing.assert_array_equal(np.asarray(displaced(x, mask=0).cpu()), np.asarray(image))
        np.testing.assert_array_equal(np.asarray(displaced(x, mask=1).cpu()), np.asarray(displaced(image)))


MISUSES = [
    ((3, 4, 1), np.int16, "HWC", {}),
    ((3, 4, 1), np.float16, "HWC", {}),
    ((3, 4, 1), np.uint8, "HWC", {"interp_type": 2}),
    ((3, 4, 1), np.uint8, "CHW", {}),
    ((2, 3, 4, 1), np.uint8, "FHWC", {}),
]


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("number", range(len(MISUSES)))
def test_misuse_as_dali(dali, op, number):
    shape, kind, layout, options = MISUSES[number]
    assert not check_same(dali, lambda m: getattr(m, op)(m.tensor(np.ones(shape, kind), layout=layout), **options))


@pytest.mark.parametrize("op", OPERATORS)
def test_images_without_pixels_stay_so(op):
    for shape in ((0, 5, 3), (5, 0, 3), (5, 5, 0)):
        assert getattr(ndd, op)(ndd.tensor(np.zeros(shape, np.uint8), layout="HWC")).shape == shape
