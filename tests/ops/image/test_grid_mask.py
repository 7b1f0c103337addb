"""`ndd.grid_mask` beside DALI, and on the emulated GPU."""

from __future__ import annotations

import random

import numpy as np
import pytest
from cases import EachSample, each_of
from compare import arrays_of, check_same, value
from selection import drawn_types

import ndd
from ndd.ops.image.grid_mask import _by_numpy, _mask

REGISTRY_CASES = {
    "grid_mask": each_of(
        {},
        {"tile": 9, "ratio": 0.4, "angle": 0.3, "shift_x": 2.0},
        {"tile": EachSample([5, 9, 3]), "angle": EachSample([0.1, 2.0, -1.0]), "shift_y": EachSample([0.0, 2.5, -7.0])},
        layouts=("HWC",),
        dtypes=("uint8", "int16", "float32"),
    ),
}

DALI_TYPES = ["uint8", "int16", "int32", "float32"]
OTHER_TYPES = ["int8", "uint16", "uint32", "int64", "uint64", "float16", "float64", "bool"]


def image(shape, kind="uint8"):
    return np.ones(shape, kind) if kind == "bool" else (1 + np.arange(np.prod(shape)) % 100).reshape(shape).astype(kind)


def random_arguments(pick, n):
    """Constants, and values for each sample as a Batch, or one as a Tensor."""
    ranges = {
        "angle": (-7, 7), "ratio": (-0.1, 1.1), "shift_x": (-40, 40), "shift_y": (-40, 40), "tile": (1, 30),
    }  # fmt: skip
    found = {}
    for name, (low, high) in ranges.items():
        way = pick.choice(["none", "constant", "batch", "tensor"])
        draw = pick.randint if name == "tile" else pick.uniform
        kind = np.int32 if name == "tile" else np.float32
        drawn = draw(low, high)
        if way == "constant":
            found[name] = lambda m, v=drawn: v
        elif way == "tensor":
            found[name] = lambda m, v=drawn, k=kind: m.tensor(np.array(v, k))
        elif way == "batch" and n is not None:
            values = [kind(draw(low, high)) for _ in range(n)]
            found[name] = lambda m, v=values: m.batch(v)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_as_dali(dali, seed):
    pick = random.Random(seed)
    for _ in range(60):
        n = pick.choice([None, 1, 3])
        kind, channels = pick.choice(drawn_types(DALI_TYPES, 3, "grid_mask")), pick.choice([1, 2, 3, 3, 5])
        samples = [image((pick.randint(1, 60), pick.randint(1, 60), channels), kind) for _ in range(n or 1)]
        layout = pick.choice(["HWC", None])
        given = random_arguments(pick, n)

        def call(m, samples=samples, layout=layout, n=n, given=given):
            return m.grid_mask(value(m, samples, layout, n is not None), **{k: f(m) for k, f in given.items()})

        assert check_same(dali, call, note=(n, kind, list(given)))


def test_large_and_at_the_borders_of_squares(dali):
    x = image((500, 700, 1))
    for arguments in (
        {"tile": 47, "ratio": 0.9966}, {"tile": 10, "ratio": 0.3}, {"tile": 7, "angle": np.pi / 2}, {"tile": 1},
        {"tile": 3, "ratio": 1 / 3, "shift_x": 1.0}, {"tile": 16, "angle": 0.7853981633974483, "shift_y": -1e4},
        {"tile": 4, "ratio": 1.0}, {"tile": 4, "ratio": 0.0}, {"tile": 4, "ratio": float("nan")},
        {"tile": 2.5}, {"tile": 9, "angle": 1e6}, {"tile": 9, "angle": float("nan")}, {"shift_x": float("inf")},
    ):  # fmt: skip
        assert check_same(dali, lambda m, a=arguments: m.grid_mask(m.tensor(x, layout="HWC"), **a), note=arguments)


@pytest.mark.parametrize("shape", [(0, 5, 3), (4, 0, 3), (4, 5, 0), (1, 1, 1), (1, 7, 1), (7, 1, 3)])
def test_tiny_and_empty(dali, shape):
    assert check_same(dali, lambda m: m.grid_mask(m.tensor(image(shape), layout="HWC"), tile=3))


@pytest.mark.parametrize("tile", [0, -3])
def test_tile_must_be_positive(dali, tile):
    assert not check_same(dali, lambda m: m.grid_mask(m.tensor(image((4, 5, 1)), layout="HWC"), tile=tile))
    batch = ndd.batch([image((4, 5, 1))] * 2, layout="HWC")
    with ndd.EvalMode.sync_cpu, pytest.raises(RuntimeError, match=f"sample 1.*must be positive, got {tile}"):
        ndd.grid_mask(batch, tile=ndd.batch([np.int32(2), np.int32(tile)]))


ARGUMENTS = {"tile": 5, "angle": 0.4, "ratio": 0.6, "shift_x": 1.5, "shift_y": -2.0}


@pytest.mark.parametrize("layout", ["HW", "CHW", "DHWC", "FHWC", "FCHW", "FHW", "FDHWC", "DCHW"])
def test_every_layout_masks_rows_and_columns(layout):
    """DALI reads rows and columns off the first two axes: here the layout says."""
    extents = {"H": 9, "W": 13, "C": 3, "F": 2, "D": 2}
    x = image([extents[c] for c in layout])
    plain = np.asarray(ndd.grid_mask(ndd.tensor(np.ones((9, 13, 1), np.uint8), layout="HWC"), **ARGUMENTS))[..., 0]
    mask = plain.reshape([extents[c] if c in "HW" else 1 for c in layout])
    found = ndd.grid_mask(ndd.tensor(x, layout=layout), **ARGUMENTS)
    assert found.layout == layout
    np.testing.assert_array_equal(np.asarray(found), x * mask)


def test_arguments_of_each_frame():
    x = image((2, 9, 13, 3))
    found = np.asarray(ndd.grid_mask(ndd.tensor(x, layout="FHWC"), tile=ndd.tensor(np.array([3, 4]), layout="F")))
    for frame, tile in zip(range(2), (3, 4), strict=True):
        alone = ndd.grid_mask(ndd.tensor(x[frame], layout="HWC"), tile=tile)
        np.testing.assert_array_equal(found[frame], np.asarray(alone))


@pytest.mark.parametrize("kind", OTHER_TYPES)
def test_types_that_dali_refuses(kind):
    x = image((9, 13, 3), kind)
    expected = np.asarray(ndd.grid_mask(ndd.tensor(x.astype(np.int32), layout="HWC"), **ARGUMENTS)).astype(kind)
    found = np.asarray(ndd.grid_mask(ndd.tensor(x, layout="HWC"), **ARGUMENTS))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("shape", "layout"), [((3,), "H"), ((3, 4, 5), "HCW"), ((3, 4, 5), "WHC"), ((3,), None),
                                               ((), None), ((2, 3, 4, 3), None), ((2,), "W")])  # fmt: skip
def test_other_layouts_refused(shape, layout):
    with pytest.raises(RuntimeError, match="Expected"):
        ndd.grid_mask(ndd.tensor(image(shape), layout=layout))


def test_letters_without_rows_and_columns(dali):
    assert check_same(dali, lambda m: m.grid_mask(m.tensor(image((8, 9, 3)), layout="XYZ"), tile=4))


@pytest.mark.parametrize("kind", ["uint8", "int16", "float16", "float32", "int64", "bool"])
@pytest.mark.parametrize("layout", ["HWC", "CHW", "HW", "FHWC"])
def test_gpu_as_cpu(emulated_gpu, kind, layout):
    samples = []
    for h, w, c in ((23, 31, 3), (1, 1, 3), (70, 50, 1), (0, 4, 3), (5, 6, 7)):
        extents = {"H": h, "W": w, "C": c, "F": 2}
        samples.append(image([extents[letter] for letter in layout], kind))
    batch = ndd.batch(samples, layout=layout)
    emulated_gpu.launches.clear()
    found = ndd.grid_mask(batch.gpu(), **ARGUMENTS)
    expected = ndd.grid_mask(batch, **ARGUMENTS)
    for a, b in zip(arrays_of(found), arrays_of(expected), strict=True):
        np.testing.assert_array_equal(a, b)
    assert emulated_gpu.launches == ["grid_mask"]


@pytest.mark.parametrize(("bits", "channels"), [("u1", 3), ("u4", 2)])
def test_numpy_answers_to_the_last_bit_while_the_kernel_is_compiled(bits, channels):
    rng = np.random.default_rng(6)
    image = rng.integers(0, 256, (2, 61, 83, channels)).astype(bits)
    for _ in range(20):
        grid = np.append(rng.standard_normal(4) / [9, 9, 1, 1], 0.4).astype(np.float32)
        found = [np.empty_like(image) for _ in range(2)]
        for answer, out in zip((_by_numpy, _mask.waited_for), found, strict=True):
            answer(image, out, grid)
        np.testing.assert_array_equal(*found)
