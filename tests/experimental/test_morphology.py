"""`dilate` and `erode` against a plain loop over the window, and against OpenCV."""

from __future__ import annotations

import numpy as np
import pytest
from cases import each_of

import ndd
from ndd._compiled.background import background

_MORPHOLOGY = ("uint8", "uint16", "float32")

REGISTRY_CASES = {
    "experimental.dilate": each_of(
        {},
        {"mask_size": [5, 2], "iterations": 2, "border_mode": "reflect"},
        {"mask_size": 11, "anchor": [0, 3]},
        dtypes=_MORPHOLOGY,
        oracle=False,
    ),
    "experimental.erode": each_of(
        {},
        {"mask_size": [5, 2], "iterations": 2, "border_mode": "wrap"},
        {"mask_size": 11, "anchor": [0, 3]},
        dtypes=_MORPHOLOGY,
        oracle=False,
    ),
}

OPERATORS = ("dilate", "erode")
BORDERS = ("constant", "replicate", "reflect", "reflect_101", "wrap")
PAD = {"replicate": "edge", "reflect": "symmetric", "reflect_101": "reflect", "wrap": "wrap"}

# mask, anchor, iterations
WINDOWS = (
    *[((3, 3), (-1, -1), 1), ((5, 2), (-1, -1), 1), ((4, 4), (0, 3), 1), ((1, 7), (0, -1), 1), ((11, 13), (-1, 2), 1)],
    *[((3, 3), (-1, -1), 3), ((2, 3), (-1, -1), 2), ((3, 5), (2, 0), 2), ((40, 1), (-1, -1), 1), ((3, 3), (5, 7), 1)],
    *[((2, 2), (9, 0), 2), ((8, 9), (4, 4), 1)],
)


def numbers(seed, shape, dtype="uint8"):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return (rng.standard_normal(shape) * 100).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def by_hand(op, image, mask=(3, 3), anchor=(-1, -1), iterations=1, border="constant"):
    """Every window looked at whole; `image` is [H, W, ...], mask and anchor are (x, y)."""
    width, height = mask
    left, above = (m // 2 if a < 0 else a for m, a in zip(mask, anchor, strict=True))
    best = np.maximum if op == "dilate" else np.minimum
    for _ in range(iterations):
        more = [(max(above, height), max(above, height)), (max(left, width), max(left, width))]
        pad = more + [(0, 0)] * (image.ndim - 2)
        if border == "constant":
            limits = np.finfo if image.dtype.kind == "f" else np.iinfo
            outside = limits(image.dtype).min if op == "dilate" else limits(image.dtype).max
            wide = np.pad(image, pad, constant_values=outside)
        else:
            wide = np.pad(image, pad, mode=PAD[border])
        h, w = image.shape[:2]
        y, x = more[0][0] - above, more[1][0] - left
        parts = [wide[j : j + h, i : i + w] for j in range(y, y + height) for i in range(x, x + width)]
        image = best.reduce(parts)
    return image


@pytest.fixture(params=["cpu", "gpu"])
def device(request, emulated_gpu):
    return request.param


def run(op, images, layout, device="cpu", **args):
    result = getattr(ndd.experimental, op)(ndd.batch(images, layout=layout).to_device(device), **args)
    return [np.asarray(a) for a in result.cpu()]


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.drawn(1)
def test_masks_anchors_and_borders(op, border, device):
    images = [numbers(i, s) for i, s in enumerate([(13, 17, 3), (5, 6, 3), (1, 1, 3), (2, 30, 3)])]
    for mask, anchor, iterations in WINDOWS:
        got = run(op, images, "HWC", device, mask_size=mask, anchor=anchor, iterations=iterations, border_mode=border)
        for image, result in zip(images, got, strict=True):
            expected = by_hand(op, image, mask, anchor, iterations, border)
            np.testing.assert_array_equal(result, expected, f"{mask} {anchor} {iterations} {image.shape}")


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("layout", ["HW", "HWC", "CHW", "FHWC", "FCHW", ""])
@pytest.mark.drawn(1)
def test_types_and_layouts(op, dtype, layout, device):
    extents = {"H": 9, "W": 12, "C": 5, "F": 2}
    axes = layout or "HWC"
    image = numbers(3, [extents[a] for a in axes], dtype)
    result = getattr(ndd.experimental, op)(ndd.tensor(image, layout=layout or None).to_device(device), mask_size=[4, 3])
    assert result.layout == axes
    assert result.dtype == ndd.tensor(image).dtype
    spatial = [axes.index("H"), axes.index("W")]
    expected = np.moveaxis(by_hand(op, np.moveaxis(image, spatial, [0, 1]), (4, 3)), [0, 1], spatial)
    np.testing.assert_array_equal(np.asarray(result.cpu()), expected)


@pytest.mark.parametrize("op", OPERATORS)
def test_as_opencv(op):
    cv2 = pytest.importorskip("cv2")
    image = numbers(4, (64, 148, 3))
    for size, iterations in [((3, 3), 1), ((7, 4), 1), ((3, 3), 4)]:
        expected = getattr(cv2, op)(image, np.ones(size[::-1], np.uint8), iterations=iterations)
        result = run(op, [image], "HWC", mask_size=size, iterations=iterations)[0]
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.drawn(1)
def test_a_mask_and_an_anchor_for_each_sample(op, device):
    images = [numbers(i, (8 + i, 15 - i, 2)) for i in range(3)]
    masks, anchors = [[3, 3], [1, 6], [5, 2]], [[-1, -1], [0, 5], [2, 0]]
    expected = [by_hand(op, i, m, a) for i, m, a in zip(images, masks, anchors, strict=True)]
    for mask, anchor in [
        (ndd.batch(masks), ndd.batch(anchors)),
        ([np.array(m) for m in masks], [np.array(a) for a in anchors]),
    ]:
        for a, b in zip(run(op, images, "HWC", device, mask_size=mask, anchor=anchor), expected, strict=True):
            np.testing.assert_array_equal(a, b)
    square = run(op, images, "HWC", device, mask_size=ndd.batch([1, 5, 2]))
    for a, image, k in zip(square, images, [1, 5, 2], strict=True):
        np.testing.assert_array_equal(a, by_hand(op, image, (k, k)))


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.drawn(1)
def test_a_mask_for_each_frame(op, device):
    video = numbers(1, (3, 9, 8, 1))
    masks = np.array([[1, 3], [3, 1], [5, 5]], np.int32)
    per_frame = ndd.batch([masks], layout="F*")
    result = run(op, [video], "FHWC", device, mask_size=per_frame)[0]
    for frame, image, mask in zip(result, video, masks.tolist(), strict=True):
        np.testing.assert_array_equal(frame, by_hand(op, image, mask))


@pytest.mark.parametrize("background_too", [True, False])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_threads_take_samples_in_turn(dtype, background_too, monkeypatch):
    """Ragged, empty, strided and read-only ones, larger than a strip of rows; other windows are left to OpenCV."""
    monkeypatch.setattr(background, "allowed", background_too)
    sizes = [(150, 170, 3), (0, 5, 3), (1, 1, 3), (2, 90, 3), (160, 3, 3), (40, 50, 3)]
    images = [numbers(i, s, dtype) for i, s in enumerate(sizes)]
    images[4] = images[4].repeat(2, 1)[:, ::2]
    images[0].flags.writeable = False
    apart = ndd.as_batch([ndd.as_tensor(a, layout="HWC") for a in images])
    with ndd.EvalContext(num_threads=3):
        for op in OPERATORS:
            for masks in ([[3, 3]] * 6, [[3, 3], [5, 2], [2, 4], [200, 1], [4, 4], [1, 1]]):
                result = getattr(ndd.experimental, op)(apart, mask_size=ndd.batch(masks), border_mode="reflect_101")
                for image, mask, item in zip(images, masks, result.tensors, strict=True):
                    if image.size:
                        expected = by_hand(op, image, mask, border="reflect_101")
                        np.testing.assert_array_equal(np.asarray(item), expected, f"{op} {mask} {image.shape}")
    background.finish()


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.drawn(1)
def test_empty_images(op, device):
    result = run(op, [numbers(0, (0, 5, 3)), numbers(0, (4, 5, 3))], "HWC", device)
    assert [a.shape for a in result] == [(0, 5, 3), (4, 5, 3)]


@pytest.mark.drawn(1)
def test_negative_numbers_stay_negative(device):
    image = -np.abs(numbers(0, (5, 6), "float32")) - 1
    assert run("dilate", [image], "HW", device)[0].max() <= -1


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"mask_size": [0, 3]}, "positive"), ({"mask_size": [3, 3, 3]}, "2 numbers"), ({"anchor": [0, 0, 0]}, "2 numbers"),
        ({"iterations": 0}, "at least 1"), ({"border_mode": "mirror"}, "border mode"), ({"mask_size": -2}, "positive"),
    ],
)  # fmt: skip
def test_misuse(op, args, text):
    with pytest.raises(RuntimeError, match=text):
        run(op, [numbers(0, (5, 6, 3))], "HWC", **args)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint32", "uint64", "float64", "float16"])
def test_refused_types(op, dtype):
    with pytest.raises(RuntimeError, match="type"):
        run(op, [numbers(0, (5, 6, 3), dtype)], "HWC")


@pytest.mark.parametrize("op", OPERATORS)
def test_refused_layouts(op):
    with pytest.raises(ValueError, match="layout"):
        run(op, [numbers(0, (5, 6, 3))], "WHC")
