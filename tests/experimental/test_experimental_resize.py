"""`experimental.resize`: `ndd.resize`, but for the pixel that INTERP_NN takes where two are equally near."""

from __future__ import annotations

import numpy as np
import pytest
from cases import each_of
from selection import drawn_types

import ndd

REGISTRY_CASES = {
    "experimental.resize": each_of(
        {"size": [12, 15]},
        {"size": [12, 40], "interp_type": 0},
        layouts=("HWC", "CHW"),
        dtypes=("uint8", "float32"),
        oracle=False,
    ),
}

NN, LINEAR, CUBIC, LANCZOS3, TRIANGULAR, GAUSSIAN = (ndd.types.DALIInterpType(i) for i in range(6))


@pytest.fixture(params=["cpu", "gpu"])
def device(request, emulated_gpu):
    return request.param


def images(layout="HWC", dtype="uint8"):
    rng = np.random.default_rng(5)
    result = []
    for h, w in ((23, 31), (8, 9), (1, 1), (40, 17)):
        extents = {"H": h, "W": w, "C": 3, "F": 2, "D": 4}
        numbers = rng.integers(0, 256, [extents[a] for a in layout])
        result.append(numbers.astype(dtype))
    return result


def run(operator, arrays, layout, device="cpu", **args):
    result = operator(ndd.batch(arrays, layout=layout).to_device(device), **args)
    result = result if isinstance(result, tuple) else (result,)
    return [[np.asarray(a) for a in batch.cpu()] for batch in result]


@pytest.mark.parametrize("layout", ["HWC", "CHW", "FHWC", "FCHW", "CFHW", "DHWC", "CDHW"])
@pytest.mark.parametrize("interp", [LINEAR, CUBIC, LANCZOS3, GAUSSIAN])
@pytest.mark.drawn(1)
def test_as_resize(layout, interp, device):
    size = [5, 12, 19] if "D" in layout else [12, 19]
    for dtype in drawn_types(("uint8", "int16", "uint16", "float32"), 1, "experimental.resize"):
        arrays = images(layout, dtype)
        args = {"size": size, "interp_type": interp}
        ours = run(ndd.experimental.resize, arrays, layout, device, **args)
        for a, b in zip(ours[0], run(ndd.resize, arrays, layout, device, **args)[0], strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


# What CV-CUDA takes (one H200, CV-CUDA of DALI 2.4.0), for sizes where pixels are equally near or float32 decides.
NEAREST = {
    (40, 23): [0, 2, 4, 6, 7, 9, 11, 13, 14, 16, 18, 20, 21, 23, 25, 26, 28, 30, 32, 33, 35, 37, 39],
    (40, 46): [
        *[0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 10, 11, 12, 13, 14, 15, 16, 16, 17, 18, 19],
        *[20, 21, 22, 23, 23, 24, 25, 26, 27, 28, 29, 29, 30, 31, 32, 33, 34, 35, 36, 36, 37, 38, 39],
    ],
    (8, 12): [0, 1, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7],
    (8, -12): [7, 7, 6, 5, 5, 4, 3, 2, 2, 1, 0, 0],
    (40, 12): [1, 5, 8, 11, 15, 18, 21, 25, 28, 31, 35, 38],
    (40, -12): [38, 35, 31, 28, 25, 21, 18, 14, 11, 8, 4, 1],
}


@pytest.mark.parametrize(("source", "size"), NEAREST)
@pytest.mark.drawn(1)
def test_nearest_as_recorded(source, size, device):
    expected = NEAREST[source, size]
    line = np.arange(source, dtype=np.uint8)
    for axis in (0, 1):
        image = line.reshape((source, 1, 1) if axis == 0 else (1, source, 1))
        wanted = [size, 1] if axis == 0 else [1, size]
        result = run(ndd.experimental.resize, [image], "HWC", device, size=wanted, interp_type=NN)[0][0]
        assert result.ravel().tolist() == expected


def test_nearest_along_one_axis_only(device):
    image = images(dtype="float32")[3]
    args = {"min_filter": LINEAR, "mag_filter": NN, "dtype": ndd.float32}
    result = run(ndd.experimental.resize, [image], "HWC", device, size=[12, 31], **args)[0][0]
    narrow = run(ndd.experimental.resize, [image], "HWC", device, size=[12, 17], min_filter=LINEAR)[0][0]
    expected = run(ndd.experimental.resize, [narrow], "HWC", device, size=[12, 31], interp_type=NN)[0][0]
    np.testing.assert_allclose(result, expected, atol=1e-3)


@pytest.mark.drawn(1)
def test_sizes_regions_and_attributes(device):
    for args in (
        {"resize_x": 20}, {"resize_shorter": 15, "max_size": 20}, {"size": [20, 15], "mode": "not_larger"},
        {"size": [12, 9], "roi_start": [0.1, 0.2], "roi_end": [0.9, 0.5], "roi_relative": True},
        {"size": [20, 15], "save_attrs": True}, {"size": [-20, 15]}, {"resize_longer": 15.5, "subpixel_scale": False},
        {"size": [5, 7], "antialias": False}, {"size": [9, 9], "dtype": ndd.float32},
    ):  # fmt: skip
        ours, theirs = (run(f, images(), "HWC", device, **args) for f in (ndd.experimental.resize, ndd.resize))
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            for x, y in zip(a, b, strict=True):
                np.testing.assert_array_equal(x, y, str(args))


@pytest.mark.drawn(1)
def test_a_size_for_each_sample(device):
    sizes = [[3, 4], [20, 30], [7, 7], [9, 50]]
    result = run(ndd.experimental.resize, images(), "HWC", device, size=ndd.batch(sizes), interp_type=NN)[0]
    assert [list(a.shape[:2]) for a in result] == sizes


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({}, "one way"), ({"size": [3, 3], "resize_x": 3}, "one way"), ({"size": [3, 3], "mode": "bogus"}, "mode"),
        ({"size": [3, 3], "roi_start": [1, 1]}, "together"), ({"size": [3, 3], "dtype": ndd.int32}, "dtype"),
        ({"size": [3, 3, 3]}, "size"),
    ],
)  # fmt: skip
def test_misuse(args, text):
    with pytest.raises(RuntimeError, match=text):
        run(ndd.experimental.resize, images(), "HWC", **args)


def test_refused_types():
    for dtype in ("int8", "int32", "float64", "float16"):
        with pytest.raises(RuntimeError, match="type"):
            run(ndd.experimental.resize, images(dtype=dtype), "HWC", size=[3, 3])
