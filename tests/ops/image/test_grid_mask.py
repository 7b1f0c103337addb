"""`ndd.grid_mask` beside DALI, and on the emulated GPU."""

from __future__ import annotations

import numpy as np
import pytest
from calling import call
from cases import Case, EachSample, drawn_arguments, each_of
from compare import check_same
from selection import drawn_types, repeated

import ndd

ARGUMENTS = {"tile": 5, "angle": 0.4, "ratio": 0.6, "shift_x": 1.5, "shift_y": -2.0}
REGISTRY_CASES = {
    "grid_mask": [
        *each_of(
            {},
            {"tile": 9, "ratio": 0.4, "angle": 0.3, "shift_x": 2.0},
            {
                "tile": EachSample([5, 9, 3]),
                "angle": EachSample([0.1, 2.0, -1.0]),
                "shift_y": EachSample([0.0, 2.5, -7.0]),
            },
            layouts=("HWC",),
        ),
        # DALI takes the first two axes for rows and columns.
        Case(ARGUMENTS, layouts=("CHW", "HW", "FHWC"), oracle=False),
    ],
}
RANGES = {
    "angle": (-7.0, 7.0), "ratio": (-0.1, 1.1), "shift_x": (-40.0, 40.0), "shift_y": (-40.0, 40.0), "tile": (1, 30),
}  # fmt: skip
DALI_TYPES = ["uint8", "int16", "int32", "float32"]
OTHER_TYPES = ["int8", "uint16", "uint32", "int64", "uint64", "float16", "float64", "bool"]


def image(shape, kind="uint8"):
    return np.ones(shape, kind) if kind == "bool" else (1 + np.arange(np.prod(shape)) % 100).reshape(shape).astype(kind)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.drawn(1)
def test_as_dali(dali, seed):
    rng = np.random.default_rng(seed)
    for _ in repeated(60, 20):
        form, kind = rng.choice(["one", "ragged"]), rng.choice(drawn_types(DALI_TYPES, 2, "grid_mask"))
        samples = [image((*rng.integers(1, 60, 2), rng.choice([1, 2, 3, 5])), kind) for _ in range(3)]
        case = Case(drawn_arguments(rng, RANGES, 3 if form == "ragged" else None))
        arguments = ("grid_mask", case, [(samples, rng.choice(["HWC", None]))], form)
        assert check_same(dali, lambda m, a=arguments: call(m, *a), note=case)


def test_large_and_at_the_borders_of_squares(dali):
    x = image((500, 700, 1))
    for arguments in (
        {"tile": 47, "ratio": 0.9966}, {"tile": 10, "ratio": 0.3}, {"tile": 7, "angle": np.pi / 2}, {"tile": 1},
        {"tile": 3, "ratio": 1 / 3, "shift_x": 1.0}, {"tile": 16, "angle": 0.7853981633974483, "shift_y": -1e4},
        {"tile": 4, "ratio": 1.0}, {"tile": 4, "ratio": 0.0}, {"tile": 4, "ratio": float("nan")},
        {"tile": 2.5}, {"tile": 9, "angle": 1e6}, {"tile": 9, "angle": float("nan")}, {"shift_x": float("inf")},
    ):  # fmt: skip
        assert check_same(dali, lambda m, a=arguments: m.grid_mask(m.tensor(x, layout="HWC"), **a), note=arguments)
    for shape in [(0, 5, 3), (4, 0, 3), (4, 5, 0), (1, 1, 1), (1, 7, 1), (7, 1, 3)]:
        assert check_same(dali, lambda m, s=shape: m.grid_mask(m.tensor(image(s), layout="HWC"), tile=3), note=shape)
    assert check_same(dali, lambda m: m.grid_mask(m.tensor(image((8, 9, 3)), layout="XYZ"), tile=4))


@pytest.mark.parametrize("tile", [0, -3])
def test_tile_must_be_positive(dali, tile):
    assert not check_same(dali, lambda m: m.grid_mask(m.tensor(image((4, 5, 1)), layout="HWC"), tile=tile))
    batch = ndd.batch([image((4, 5, 1))] * 2, layout="HWC")
    with ndd.EvalMode.sync_cpu, pytest.raises(RuntimeError, match=f"sample 1.*must be positive, got {tile}"):
        ndd.grid_mask(batch, tile=ndd.batch([np.int32(2), np.int32(tile)]))


@pytest.mark.parametrize("layout", ["HW", "CHW", "DHWC", "FHWC", "FCHW", "FHW", "FDHWC", "DCHW"])
def test_every_layout_masks_rows_and_columns(layout):
    """DALI reads rows and columns off the first two axes: here the layout says."""
    extents = {"H": 9, "W": 13, "C": 3, "F": 2, "D": 2}
    x = image([extents[c] for c in layout])
    plain = np.asarray(ndd.grid_mask(ndd.tensor(np.ones((9, 13, 1), np.uint8), layout="HWC"), **ARGUMENTS))[..., 0]
    mask = plain.reshape([extents[c] if c in "HW" else 1 for c in layout])
    masked = ndd.grid_mask(ndd.tensor(x, layout=layout), **ARGUMENTS)
    assert masked.layout == layout
    np.testing.assert_array_equal(np.asarray(masked), x * mask)


def test_arguments_of_each_frame():
    x = image((2, 9, 13, 3))
    masked = np.asarray(ndd.grid_mask(ndd.tensor(x, layout="FHWC"), tile=ndd.tensor(np.array([3, 4]), layout="F")))
    for frame, tile in enumerate((3, 4)):
        alone = ndd.grid_mask(ndd.tensor(x[frame], layout="HWC"), tile=tile)
        np.testing.assert_array_equal(masked[frame], np.asarray(alone))


@pytest.mark.parametrize("kind", OTHER_TYPES)
@pytest.mark.long
def test_types_that_dali_refuses(kind):
    x = image((9, 13, 3), kind)
    expected = np.asarray(ndd.grid_mask(ndd.tensor(x.astype(np.int32), layout="HWC"), **ARGUMENTS)).astype(kind)
    masked = np.asarray(ndd.grid_mask(ndd.tensor(x, layout="HWC"), **ARGUMENTS))
    assert masked.dtype == expected.dtype
    np.testing.assert_array_equal(masked, expected)


@pytest.mark.parametrize(("shape", "layout"), [((3,), "H"), ((3, 4, 5), "HCW"), ((3, 4, 5), "WHC"), ((3,), None),
                                               ((), None), ((2, 3, 4, 3), None), ((2,), "W")])  # fmt: skip
def test_other_layouts_refused(shape, layout):
    with pytest.raises(RuntimeError, match="Expected"):
        ndd.grid_mask(ndd.tensor(image(shape), layout=layout))
