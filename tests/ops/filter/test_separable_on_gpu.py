"""gaussian_blur and laplacian on the GPU: as on the CPU for every way of `separable.cu`, in as few launches as it takes."""

import numpy as np
import pytest
from compare import arrays_of
from number_samples import random_array
from selection import drawn_types

import ndd

CASES = [
    ("gaussian_blur", "HWC", (37, 50, 3), {"sigma": 1.0}, 1),
    ("gaussian_blur", "HWC", (70, 45, 3), {"sigma": 5.0}, 2),
    ("gaussian_blur", "HWC", (70, 45, 3), {"window_size": [3, 15]}, 1),
    ("gaussian_blur", "HW", (40, 300), {"window_size": [15, 3]}, 1),
    ("gaussian_blur", "HWC", (40, 20, 4), {"window_size": 5}, 1),
    ("gaussian_blur", "HWC", (20, 21, 7), {"window_size": 5}, 2),  # many channels: axis by axis
    ("gaussian_blur", "CHW", (3, 20, 33), {"window_size": 17}, 2),  # a wide window: likewise
    ("gaussian_blur", "DHWC", (5, 6, 7, 2), {"window_size": [3, 5, 7]}, 3),
    ("gaussian_blur", "W", (90,), {"sigma": 2.0}, 1),
    ("gaussian_blur", "W", (90,), {"sigma": 9.0}, 1),
    ("gaussian_blur", "FHWC", (2, 10, 11, 3), {"sigma": 1.0}, 1),
    ("gaussian_blur", "HW", (1, 1), {"window_size": 9}, 1),
    ("gaussian_blur", "HW", (2, 3), {"window_size": 9}, 1),
    ("laplacian", "HWC", (37, 50, 3), {}, 1),
    ("laplacian", "HWC", (40, 45, 3), {"window_size": [3, 9], "scale": [0.5, 2.0]}, 1),
    ("laplacian", "HW", (40, 300), {"window_size": 15, "normalized_kernel": True}, 1),
    ("laplacian", "HWC", (20, 20, 4), {"window_size": 15, "normalized_kernel": True}, 1),
    ("laplacian", "CHW", (3, 20, 33), {"window_size": 17, "normalized_kernel": True}, 2),
    ("laplacian", "DHWC", (5, 6, 7, 2), {"window_size": [3, 5, 7]}, 3),
    ("laplacian", "HWC", (9, 10, 6), {"smoothing_size": 1}, 2),
    ("laplacian", "W", (90,), {"window_size": 5}, 1),
    ("laplacian", "FHWC", (2, 10, 11, 3), {"scale": -0.3}, 1),
    ("laplacian", "HW", (2, 3), {"window_size": 9}, 1),
]


def check(op, samples, layout, args, gpu, launches):
    filtered = getattr(ndd, op)
    expected = arrays_of(filtered(ndd.batch(samples, layout=layout), **args))
    before = len(gpu.launches)
    result = filtered(ndd.batch(samples, layout=layout).gpu(), **args).evaluate()
    assert result.device == ndd.Device("gpu:0")
    assert len(gpu.launches) - before == launches
    for a, b in zip(arrays_of(result), expected, strict=True):
        if a.dtype.kind == "f":
            np.testing.assert_allclose(a, b, atol=1e-5 * np.abs(b).max())
        else:
            off = np.abs(a.astype(np.float64) - b)
            assert off.max() <= 1
            assert (off > 0).mean() < 0.01


@pytest.mark.parametrize(("op", "layout", "shape", "args", "launches"), CASES, ids=str)
@pytest.mark.drawn(1)
def test_as_on_the_cpu(op, layout, shape, args, launches, emulated_gpu):
    rng = np.random.default_rng(9)
    for dtype in drawn_types(("uint8", "int16", "float32"), 2, "separable"):
        smaller = tuple(e if c in "CF" else max(1, e - 3) for c, e in zip(layout, shape, strict=True))
        samples = [random_array(rng, s, "uint8").astype(dtype) for s in (shape, smaller)]  # whole: sums are exact
        check(op, samples, layout, args, emulated_gpu, launches)


def test_samples_that_differ_take_one_launch(emulated_gpu):
    rng = np.random.default_rng(10)
    images = [random_array(rng, (h, 40, 3), "uint8") for h in (20, 33, 9)]
    check("gaussian_blur", images, "HWC", {"sigma": ndd.batch([0.5, 1.0, 2.0])}, emulated_gpu, 1)
    mixed = [random_array(rng, (8, 9, c), "uint8") for c in (1, 3, 4)]
    check("gaussian_blur", mixed, "HWC", {"sigma": 1.0}, emulated_gpu, 1)
