"""`ndd.one_hot` against DALI, and the GPU against the CPU."""

# ruff: noqa: B023  (every closure runs before the loop goes on)
from __future__ import annotations

import numpy as np
import pytest
from cases import I32, each_of
from compare import assert_same, check_same
from number_samples import NAMES, NUMPY
from selection import drawn_types

import ndd

REGISTRY_INPUTS = {"classes": (lambda rng, i, dtype: rng.integers(0, 6, (4 + i,)).astype(np.int32), None)}
REGISTRY_CASES = {
    "one_hot": each_of(
        {"num_classes": 6},
        {"num_classes": 6, "on_value": 2.0, "dtype": I32, "axis": 0},
        inputs=("classes",),
        dtypes=("int32",),
    ),
}

INPUTS = [
    1, [1], [[1]], [1, 2], [1, -1, 3], [[1, 2]], [[0, 1, 2], [2, 1, 0]], np.zeros(0, np.int32), [1.7, -0.5],
    [np.nan, np.inf, -1.0, -0.99],
    np.array([250, 3], np.uint8),
]  # fmt: skip


@pytest.mark.parametrize("axis", [-2, -1, 0, 1, 2, 3])
@pytest.mark.drawn(1)
def test_shapes(dali, axis):
    for x in INPUTS:
        for classes in (0, 1, 3):
            if axis == -1 and np.ndim(x) and np.size(x) == 1:
                continue  # DALI's answer depends on what it was asked before
            check_same(dali, lambda m: m.one_hot(m.tensor(x), axis=axis, num_classes=classes))
            check_same(dali, lambda m: m.one_hot(m.batch([x, x]), axis=axis, num_classes=classes))


def test_single_labels_lose_their_axes_unless_an_axis_is_given():
    assert ndd.one_hot(ndd.batch([[1], [2]]), num_classes=3, axis=-1).shape == [(1, 3), (1, 3)]
    for b in ([[1], [2]], [[[1]], [[2]]]):
        assert ndd.one_hot(ndd.batch(b), num_classes=3).shape == [(3,), (3,)]
        assert ndd.one_hot(ndd.batch(b), num_classes=3, axis=0).shape == [(3, *np.shape(v)) for v in b]


def test_ragged_batches(dali):
    for b in ([1, 2], [[1], [2, 0]], [[[1]], [[2], [0]]]):
        check_same(dali, lambda m: m.one_hot(m.batch(b), num_classes=3))


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
def test_types(dali, source, target):
    x = np.array([0, 1, 2, 5]).astype(NUMPY[source])
    for on, off in ((1, 0), (300, -1), (2.5, -1.5)):
        check_same(
            dali,
            lambda m: m.one_hot(
                m.tensor(x),
                num_classes=4,
                dtype=getattr(m, NUMPY[target]),
                on_value=on,
                off_value=off,
            ),
        )


def test_layouts(dali):
    for axis in (-1, 0, 1):
        check_same(dali, lambda m: m.one_hot(m.tensor([1, 2], layout="X"), num_classes=3, axis_name="C", axis=axis))
    check_same(dali, lambda m: m.one_hot(m.tensor([1, 2], layout="X"), num_classes=3))
    check_same(dali, lambda m: m.one_hot(m.tensor(1), num_classes=3, axis_name="C"))
    check_same(dali, lambda m: m.one_hot(m.tensor([1, 2]), num_classes=3, axis_name="C"))
    check_same(dali, lambda m: m.one_hot(m.tensor([1, 2], layout="X"), num_classes=3, axis_name="CD"))
    for labels in ([[1], [2]], [[[1]], [[0]]], [[1], [2, 0]]):
        check_same(dali, lambda m: m.one_hot(m.batch(labels), num_classes=3, axis_name="C"))
    result = ndd.one_hot(ndd.tensor([1], layout="X"), num_classes=3, axis_name="C")
    assert (result.layout, result.shape) == ("XC", (1, 3))


def test_large_labels_have_no_class():
    assert not np.asarray(ndd.one_hot(ndd.tensor(np.array([2**32 + 1, -(2**40)])), num_classes=3)).any()


@pytest.mark.parametrize("source", ["u8", "i64", "u64", "f32"])
@pytest.mark.drawn(1)
def test_gpu_equals_cpu(emulated_gpu, source):
    rng = np.random.default_rng(0)
    low = 0 if source[0] == "u" else -2
    b = ndd.batch([rng.integers(low, 6, (h, 4)).astype(NUMPY[source]) for h in (1, 5, 2)])
    for axis in (-1, 0, 1):
        for kind in drawn_types(("f32", "u8", "i64"), 2, "one_hot"):
            extra = {"num_classes": 5, "axis": axis, "dtype": ndd.dtype(kind), "on_value": 3.5, "off_value": -1}
            wanted, result = ndd.one_hot(b, **extra), ndd.one_hot(b.gpu(), **extra)
            for i in range(3):
                assert_same(np.asarray(result.select(i).cpu()), np.asarray(wanted.select(i)), 0)


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"])
def test_values_that_do_not_fit(dali, kind):
    for on in (2.7, -2.7, 300.5, -70000.0, 3e9, -3e9, 1e10, -1e10, 1e19, -1e19, float("nan")):
        check_same(dali, lambda m, on=on: m.one_hot(m.tensor([0]), num_classes=1, dtype=getattr(m, kind), on_value=on))
