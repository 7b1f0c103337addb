"""`remap` against the rule written out in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from cases import Case, image
from recorded_remap import ROWS

import ndd
from ndd.experimental.remap import _blend, _blend_by_numpy

REGISTRY_INPUTS = {
    "one channel": (lambda rng, i, dtype: image(rng, i, "HW", dtype)[..., None], "HWC"),
    "map x": (lambda rng, i, dtype: (rng.random((9, 8)) * 8).astype(np.float32), None),
}
REGISTRY_CASES = {
    "experimental.remap": [
        Case({}, inputs=("one channel", "map x", "map x"), dtypes=("uint8", "uint16", "int16", "float32"), oracle=False)
    ],
}

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
    arguments = (ndd.tensor(a, layout=layout).to_device(device) for a, layout in ((image, "HWC"), (x, "HW"), (y, "HW")))
    return np.asarray(ndd.experimental.remap(*arguments, **args).cpu())


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
@pytest.mark.drawn(1)
def test_linear(dtype, origin, shift, channels, device):
    image, (x, y) = picture((12, 15, channels), dtype), maps(9, 20)
    result = run(image, x, y, device, pixel_origin=origin)
    assert result.dtype == image.dtype
    np.testing.assert_allclose(result, by_hand(image, x, y, shift), atol=0.501 if result.dtype.kind != "f" else 1e-3)


@pytest.mark.parametrize("interp", [NN, LINEAR, CUBIC])
@pytest.mark.drawn(1)
def test_the_identity(interp, device):
    image = picture((7, 9, 3))
    y, x = np.indices((7, 9), np.float32)
    np.testing.assert_array_equal(run(image, x, y, device, interp=interp, pixel_origin="center"), image)
    np.testing.assert_array_equal(run(image, x + 0.5, y + 0.5, device, interp=interp), image)


@pytest.mark.parametrize(("step", "offset", "interp", "origin", "expected"), ROWS)
@pytest.mark.drawn(1)
def test_what_dali_gave(step, offset, interp, origin, expected, device):
    """Exactly, in 8 bits: nearest, linear and cubic, inside, at the border, and between the pixels."""
    image = np.random.default_rng(2).integers(0, 255, (9, 11, 1), np.uint8, endpoint=True)
    y, x = np.mgrid[0:9, 0:11]
    x, y = (x * step + offset).astype(np.float32), (y * step + min(offset, 7.4)).astype(np.float32)
    result = run(image, x, y, device, interp=ndd.types.DALIInterpType(interp), pixel_origin=origin)
    np.testing.assert_array_equal(result.ravel(), np.frombuffer(bytes.fromhex(expected), np.uint8))


@pytest.mark.drawn(1)
def test_cubic_goes_through_four_pixels(device):
    """A parabola and a cubic come back exactly; at the left edge the first pixel stays."""
    line = np.arange(12, dtype=np.float32)
    image = (0.1 * line**3 - line**2 + 3)[None, :, None]
    x = np.array([[2.3, 4.75, 8.01, -0.4, -0.001, 0.0]], np.float32)
    result = run(image, x, np.zeros_like(x), device, interp=CUBIC, pixel_origin="center").ravel()
    np.testing.assert_allclose(result[:3], 0.1 * x[0, :3] ** 3 - x[0, :3] ** 2 + 3, rtol=1e-4)
    np.testing.assert_allclose(result[3:], 3, rtol=1e-5)


@pytest.mark.drawn(1)
def test_halves_go_away_from_zero(device):
    image = np.array([[[2], [3], [3], [2]], [[-2], [-3], [-3], [-2]]], np.int16)
    x, y = np.array([[0.5], [0.5]], np.float32), np.array([[0.0], [1.0]], np.float32)
    result = run(image, x, y, device, interp=LINEAR, pixel_origin="center").ravel()
    np.testing.assert_array_equal(result, [3, -3])


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


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int32", "uint64", "int64", "float16", "float64", "bool"])
def test_types_that_dali_refuses(dtype):
    image, (x, y) = np.zeros((4, 5, 1), dtype), maps(4, 5)
    with pytest.raises(RuntimeError, match="input type"):
        run(image, x, y)


@pytest.mark.parametrize(("layout", "shape"), [("CHW", (3, 4, 5)), ("FHW", (2, 4, 5)), ("WHC", (5, 4, 3))])
def test_layouts_that_dali_refuses(layout, shape):
    x, y = (ndd.tensor(a, layout="HW") for a in maps(4, 5))
    with pytest.raises(ValueError, match="layout"):
        ndd.experimental.remap(ndd.tensor(np.zeros(shape, np.uint8), layout=layout), x, y).torch()


@pytest.mark.parametrize("interp", [3, 4, 5])
def test_filters_that_dali_refuses(interp):
    with pytest.raises(RuntimeError, match="interpolation"):
        run(picture((4, 5, 1)), *maps(4, 5), interp=ndd.types.DALIInterpType(interp))


@pytest.mark.parametrize(
    ("layout", "shape"),
    [("HWC", (4, 5, 1)), (None, (4, 5, 1)), ("FHW", (3, 4, 5)), (None, (2, 4, 5)), ("FHWC", (2, 4, 5, 1))],
)
def test_maps_that_dali_refuses_for_two_frames(layout, shape):
    video = ndd.tensor(picture((2, 4, 5, 3)), layout="FHWC")
    arguments = ndd.tensor(np.zeros(shape, np.float32), layout=layout)
    with pytest.raises(RuntimeError, match="remap"):
        ndd.experimental.remap(video, arguments, arguments).torch()


def test_maps_for_each_frame(device):
    image, both = picture((2, 4, 5, 3)), [maps(4, 5), [m + np.float32(0.3) for m in maps(4, 5)]]
    x, y = (np.stack([pair[i] for pair in both]) for i in range(2))
    arguments = [
        ndd.tensor(a, layout=layout).to_device(device) for a, layout in ((image, "FHWC"), (x, "FHW"), (y, "FHW"))
    ]
    result = np.asarray(ndd.experimental.remap(*arguments).cpu())
    for frame in range(2):
        np.testing.assert_array_equal(result[frame], run(image[frame], x[frame], y[frame]))


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int16, np.float32])
def test_numpy_answers_to_the_last_bit_while_the_kernel_is_compiled(kind):
    rng = np.random.default_rng(7)
    image = rng.integers(0, 256, (31, 43, 3)).astype(kind)
    maps = [(rng.random((40, 50)) * 1.2 * n - 0.1 * n).astype(np.float32) for n in (43, 31)]
    maps[0][0, :4], maps[1][1, :3] = (np.nan, np.inf, -0.5, 43), (-0.5, -0.25, 31)
    limits = (np.iinfo(kind).min, np.iinfo(kind).max) if kind is not np.float32 else (0, 0)
    how = kind is not np.float32, np.float32(limits[0]), np.float32(limits[1])
    for shift in (0.0, 0.5):
        result = [np.empty((40, 50, 3), kind) for _ in range(2)]
        for answer, out in zip((_blend_by_numpy, _blend.waited_for), result, strict=True):
            answer(image, *maps, out, np.float32(shift), *how)
        np.testing.assert_array_equal(*result)
