"""coord_flip beside DALI, every combination of its arguments; video, the GPU, misuse."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cases import each_of
from compare import check_same

import ndd

REGISTRY_CASES = {
    "coord_flip": each_of({}, {"flip_y": 1, "center_x": 0.4}, inputs=("points",), dtypes=("float32",)),
}

COUNTS = (4, 0, 1)


def points(columns, counts=COUNTS):
    rng = np.random.default_rng(columns)
    return [rng.standard_normal((n, columns)).astype(np.float32) for n in counts]


def call(arrays, each=(), batched=True, **arguments):
    def run(module):
        options = {k: module.batch(v) if k in each else v for k, v in arguments.items()}
        return module.coord_flip(module.batch(arrays) if batched else module.tensor(arrays[0]), **options)

    return run


# A layout is always given: without one DALI takes that of its first call for every later one.
LAYOUTS = [(1, "x"), (1, "xyz"), (2, "xy"), (2, "yx"), (2, "xyz"), (2, "zyx"), (3, "xyz"), (3, "zxy")]


@pytest.mark.oracle
@pytest.mark.parametrize(("columns", "layout"), LAYOUTS)
def test_bit_for_bit_as_dali(dali, columns, layout):
    for flips in itertools.product((0, 1), repeat=3):
        arguments = dict(zip(("flip_x", "flip_y", "flip_z"), flips, strict=True))
        assert check_same(dali, call(points(columns), layout=layout, **arguments))
        moved = {"center_x": 0.3, "center_y": -4.0, "center_z": 7}
        assert check_same(dali, call(points(columns), layout=layout, batched=False, **arguments, **moved))


@pytest.mark.oracle
def test_values_of_samples(dali):
    for each, arguments in (
        (("flip_x", "center_x"), {"flip_x": [0, 1, 2], "center_x": [0.1, 0.2, 0.3]}),
        (("flip_y", "center_y"), {"flip_y": [True, False, True], "center_y": [1, 2, 3]}),
    ):
        assert check_same(dali, call(points(2), each, layout="xy", **arguments))
        same = points(2, (5, 5, 5))
        assert check_same(dali, call(same, each, layout="xy", **arguments))
    assert check_same(dali, lambda m: m.coord_flip(m.batch(points(2)), layout="xy", flip_y=m.tensor(1)))


@pytest.mark.oracle
def test_misuse_as_dali(dali):
    for i, item in enumerate(
        [
            call([np.ones((3, 2))], layout="xy"),
            call([np.ones((3, 2), np.int32)], layout="xy"),
            call([np.ones(3, np.float32)], layout="x"),
            call([np.ones((2, 3, 2), np.float32)], layout="xy"),
            call([np.ones((3, 4), np.float32)], layout="xyz"),
            call(points(2), layout="x"),
            call(points(3), layout="xy"),
            call(points(2), layout="xz"),
            call(points(2), layout="xx"),
            call(points(1), layout="y"),
            call(points(2), layout="XY"),
            call(points(2), layout="xy", center_x="a"),
        ]
    ):
        assert not check_same(dali, item, note=i)


def test_without_a_layout_the_columns_are_x_y_z():
    result = ndd.coord_flip(ndd.tensor(np.float32([[0.25, 0.5, 0.75]])), flip_x=1, flip_y=1, flip_z=1, center_z=0)
    assert np.asarray(result).tolist() == [[0.75, 0.5, -0.75]]


def test_numbers_that_stay_stay_as_they_are():
    kept = np.float32([[-0.0, np.inf], [0.0, np.nan]])
    result = np.asarray(ndd.coord_flip(kept, flip_x=0))
    np.testing.assert_array_equal(result.view(np.int32), kept.view(np.int32))


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.drawn(1)
def test_gpu_as_cpu(emulated_gpu, columns):
    batch = ndd.batch(points(columns))
    arguments = {"flip_x": ndd.batch([1, 0, 1]), "flip_y": 1, "flip_z": 1, "center_y": 0.25}
    for a, b in zip(ndd.coord_flip(batch.gpu(), **arguments).cpu(), ndd.coord_flip(batch, **arguments), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_boxes_follow_a_mirrored_image():
    """Two corners of a box, in pixels: the image of width 8 is mirrored about 4."""
    corners = np.float32([[1, 2], [3, 5]])
    assert np.asarray(ndd.coord_flip(corners, center_x=4)).tolist() == [[7, 2], [5, 5]]
