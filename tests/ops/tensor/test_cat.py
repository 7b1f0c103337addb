"""`ndd.cat` and `ndd.stack` beside DALI, and on the emulated GPU."""

import random

import numpy as np
import pytest
from cases import each_of
from compare import check_same, value
from number_samples import random_array
from selection import drawn, drawn_types, repeated

import ndd

REGISTRY_CASES = {
    "cat": each_of({}, {"axis": 1}, inputs=("matrix", "matrix")),
    "stack": each_of({}, {"axis": 1, "axis_name": "N"}, inputs=("plane", "plane")),
}

TYPES = [
    "uint8",
    "int8",
    "uint16",
    "int16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    "bool",
]


def a(m, *shape, layout=None, dtype=np.uint8):
    return m.tensor(np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape), layout=layout)


CASES = {
    f"{name} {number}": case
    for name, cases in {
        "stack": [
            *[lambda m, k=k: m.stack(a(m, 2, 3), a(m, 2, 3), axis=k) for k in range(-4, 4)],
            *[
                lambda m, k=k: m.stack(a(m, 2, 3, layout="HW"), a(m, 2, 3), axis=1, axis_name=k)
                for k in ("C", "CD", "")
            ],
            lambda m: m.stack(a(m, 2, 3), a(m, 2, 3, layout="HW"), axis_name="C"),
            lambda m: m.stack(a(m, 2, 3, layout="HW")),
            lambda m: m.stack(1, 2, 3),
            lambda m: m.stack(1, 2, axis_name="C"),
            lambda m: m.stack(a(m, 2, 3), a(m, 2, 4)),
            lambda m: m.stack(a(m, 2, 3), a(m, 2, 3, dtype=np.int32)),
            lambda m: m.stack(a(m, 2, 3), a(m, 2)),
            lambda m: m.stack(),
        ],
        "cat": [
            *[lambda m, k=k: m.cat(a(m, 2, 3, layout="HW"), a(m, 2, 3), axis=k) for k in range(-3, 3)],
            *[lambda m, k=k: m.cat(a(m, 2, 3, layout="HW"), a(m, 2, 3), axis_name=k) for k in ("W", "Z", "HW")],
            lambda m: m.cat(a(m, 2, 3), a(m, 2, 3, layout="HW")),
            lambda m: m.cat(a(m, 2, 3), a(m, 2, 3), axis_name="W"),
            lambda m: m.cat(a(m, 2, 3, layout="HW"), a(m, 2, 3), axis_name="W", axis=1),
            lambda m: m.cat(a(m, 2, 3), a(m, 2, 4), axis=1),
            lambda m: m.cat(a(m, 2, 3), a(m, 2, 4)),
            lambda m: m.cat(a(m, 2, 3), a(m, 2, 3, dtype=np.int32)),
            lambda m: m.cat(a(m, 2, 3), a(m, 2)),
            lambda m: m.cat(1, 2),
            lambda m: m.cat(a(m, 2, 3)),
            lambda m: m.cat(a(m, 0, 3), a(m, 2, 3)),
            lambda m: m.cat(a(m, 0, 3), a(m, 0, 3)),
        ],
    }.items()
    for number, case in enumerate(cases)
}


@pytest.mark.parametrize("name", CASES)
def test_cases_as_dali(dali, name):
    check_same(dali, CASES[name], note=name)


@pytest.mark.parametrize("seed", range(2))
def test_batches_as_dali(dali, seed):
    pick, rng = random.Random(seed), np.random.default_rng(seed)
    for _ in repeated(60, 20):
        ndim, kind, n, count = (
            pick.randint(1, 4),
            pick.choice(drawn_types(TYPES, 2, "cat")),
            pick.randint(1, 3),
            pick.randint(1, 4),
        )
        axis = pick.randrange(ndim)
        shapes = [[pick.randint(0 if pick.random() < 0.1 else 1, 5) for _ in range(ndim)] for _ in range(n)]
        inputs = []
        for _ in range(count):
            own = [[pick.randint(1, 4) if k == axis else e for k, e in enumerate(s)] for s in shapes]
            inputs.append([random_array(rng, s, kind) for s in own])
        check_same(dali, lambda m, x=inputs, k=axis: m.cat(*[value(m, i, None, True) for i in x], axis=k), note=shapes)
        same = [[random_array(rng, s, kind) for s in shapes] for _ in range(count)]
        check_same(dali, lambda m, x=same, k=axis: m.stack(*[value(m, i, None, True) for i in x], axis=k), note=shapes)


def test_tensor_beside_batch(dali):
    check_same(dali, lambda m: m.stack(a(m, 2, 1), m.batch([np.ones((2, 1), np.uint8)] * 2)))


def test_gpu_as_cpu(emulated_gpu):
    rng = np.random.default_rng(2)
    for kind in drawn(("uint8", "float64", "float16", "bool"), 2, "cat on GPUs"):
        first = ndd.batch([random_array(rng, (2, h, 3), kind) for h in (3, 1, 2)])
        second = ndd.batch([random_array(rng, (2, h, 3), kind) for h in (1, 4, 2)])
        for values, arguments in (((first, second, first), {"axis": 1}), ((first,), {})):
            on_gpu = ndd.cat(*[v.gpu() for v in values], **arguments)
            for x, y in zip(on_gpu.cpu(), ndd.cat(*values, **arguments), strict=True):
                np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
        for axis in range(4):
            on_gpu = ndd.stack(first.gpu(), first.gpu(), axis=axis)
            for x, y in zip(on_gpu.cpu(), ndd.stack(first, first, axis=axis), strict=True):
                np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    assert set(emulated_gpu.launches) == {"join"}


@pytest.mark.parametrize("axis", [0, 1])
def test_inputs_without_elements_are_left_out(dali, axis):
    shapes = [(2, 0), (3, 0), (0, 3), (0, 5), (2, 3), (0, 7), (0, 0)]
    for first in shapes:
        for second in shapes:
            check_same(dali, lambda m, f=first, s=second: m.cat(a(m, *f), a(m, *s), axis=axis), note=(first, second))
    check_same(dali, lambda m: m.cat(a(m, 2, 0), a(m, 3, 4), a(m, 5, 0), axis=axis))
    parts = [[np.ones((0, 3)), np.ones((2, 3))], [np.ones((2, 5)), np.ones((2, 1))]]
    check_same(dali, lambda m: m.cat(*map(m.batch, parts), axis=1))


def test_one_is_left_out_on_the_gpu(emulated_gpu):
    parts = [np.ones((2, 3), np.uint8), np.ones((0, 5), np.uint8), np.full((2, 2), 7, np.uint8)]
    result = ndd.cat(*[ndd.tensor(p).gpu() for p in parts], axis=1)
    assert np.array_equal(np.asarray(result.cpu()), np.concatenate([parts[0], parts[2]], axis=1))
