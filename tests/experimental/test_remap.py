"""`remap` against the rule written out in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import ndd

NN, LINEAR, CUBIC, LANCZOS3 = (ndd.types.DALIInterpType(i) for i in range(4))


@pytest.fixture(params=["cpu", "gpu"])
def device(request, emulated_gpu):
    return request.param


def picture(shape, dtype="uint8"):
    return np.random.default_rng(3).integers(0, 250, shape).astype(dtype)


def maps(h, w):
    rng = np.random.default_rng(4)
    y, x = np.indices((h, w), np.float32)
    return [(a + rng.uniform(-4, 4, (h, w))).astype(np.float32) for a in (x, y)]


def run(image, x, y, device="cpu", **args):
    given = (ndd.tensor(a, layout=layout).to_device(device) for a, layout in ((image, "HWC"), (x, "HW"), (y, "HW")))
    return np.asarray(ndd.experimental.remap(*given, **args).cpu())


def by_hand(image, x, y, shift):
    h, w = image.shape[:2]
    u, v = x - np.float32(shift), y - np.float32(shift)
    inside = (u >= -0.5) & (u < w) & (v >= -0.5) & (v < h)
    left, top = np.floor(u).astype(int), np.floor(v).astype(int)
    fx, fy = (u - left)[..., None], (v - top)[..., None]
    at = lambda j, i: image[(top + j).clip(0, h - 1), (left + i).clip(0, w - 1)].astype(np.float64)  # noqa: E731
    mixed = (at(0, 0) * (1 - fx) + at(0, 1) * fx) * (1 - fy) + (at(1, 0) * (1 - fx) + at(1, 1) * fx) * fy
    return np.where(inside[..., None], mixed, 0)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize(("origin", "shift"), [("corner", 0.5), ("center", 0.0)])
@pytest.mark.parametrize("channels", [1, 3])
def test_linear(dtype, origin, shift, channels, device):
    image, (x, y) = picture((12, 15, channels), dtype), maps(9, 20)
    found = run(image, x, y, device, pixel_origin=origin)
    assert found.dtype == image.dtype
    np.testing.assert_allclose(found, by_hand(image, x, y, shift), atol=0.501 if found.dtype.kind != "f" else 1e-3)


@pytest.mark.parametrize("interp", [NN, LINEAR, CUBIC])
def test_the_identity(interp, device):
    image = picture((7, 9, 3))
    y, x = np.indices((7, 9), np.float32)
    np.testing.assert_array_equal(run(image, x, y, device, interp=interp, pixel_origin="center"), image)
    np.testing.assert_array_equal(run(image, x + 0.5, y + 0.5, device, interp=interp), image)


def test_points_that_are_none(device):
    x = np.array([[np.nan, np.inf, -np.inf, 1e30, -1e30]], np.float32)
    assert not run(picture((4, 5, 1)), x, np.ones_like(x), device).any()


def test_misuse():
    image, (x, y) = picture((4, 5, 1)), maps(4, 5)
    for args, kind in (({"pixel_origin": "middle"}, RuntimeError), ({"interp": LANCZOS3}, RuntimeError)):
        with pytest.raises(kind, match="remap"):
            run(image, x, y, **args)
    with pytest.raises(RuntimeError, match="shapes"):
        run(image, x, y[:2])
    with pytest.raises(RuntimeError, match="float32"):
        run(image, x.astype(np.float64), y)
