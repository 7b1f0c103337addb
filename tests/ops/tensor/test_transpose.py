"""`ndd.transpose` beside DALI, and on the emulated GPU."""

import itertools

import numpy as np
import pytest
from cases import each_of
from compare import check_same
from number_samples import random_array
from selection import drawn

import ndd

REGISTRY_CASES = {
    "transpose": each_of({}, {"perm": [2, 0, 1]}, {"perm": [1, 0, 2], "transpose_layout": False}, layouts=("HWC",)),
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


@pytest.mark.parametrize("kind", TYPES)
def test_every_permutation_as_dali(dali, kind):
    rng = np.random.default_rng(1)
    for ndim in range(5):
        samples = [random_array(rng, s, kind) for s in ((2, 3, 4, 5)[:ndim], (40, 1, 3, 2)[:ndim])]
        for order in [None, *map(list, itertools.permutations(range(ndim)))]:
            layout = "ABCD"[:ndim] or None
            if ndim or order is None:
                check_same(
                    dali, lambda m, p=order, s=samples, x=layout: m.transpose(m.batch(s, layout=x), perm=p), note=order
                )


@pytest.mark.parametrize(
    "shape", [(70, 90), (3, 100), (100, 3), (4, 50), (50, 4), (2, 50), (1, 7), (0, 3), (3, 33, 65)]
)
@pytest.mark.drawn(3)
def test_sizes_as_numpy(shape):
    for kind in drawn(("float32", "uint8", "uint16", "float64"), 1, "transpose"):
        array = random_array(np.random.default_rng(0), shape, kind)
        order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
        np.testing.assert_array_equal(np.asarray(ndd.transpose(ndd.tensor(array), perm=order)), array.transpose(order))


CASES = [
    {"perm": [-1, 0]}, {"perm": [1, 1]}, {"perm": [0]}, {"perm": [0, 1, 2]}, {"transpose_layout": False},
    {"output_layout": "AB"}, {"perm": [0, 1], "output_layout": "AB"}, {"output_layout": "ABC"},
    {"output_layout": "AB", "transpose_layout": False},
]  # fmt: skip


@pytest.mark.parametrize("arguments", CASES)
@pytest.mark.parametrize("layout", ["HW", None])
def test_arguments_as_dali(dali, arguments, layout):
    x = np.arange(6).reshape(2, 3)
    check_same(dali, lambda m: m.transpose(m.tensor(x, layout=layout), **arguments), note=arguments)


def test_gpu_as_cpu(emulated_gpu):
    rng = np.random.default_rng(3)
    for kind in drawn(("float32", "float16", "uint8", "int64"), 1, "transpose on GPUs"):
        batch = ndd.batch([random_array(rng, (h, 3, 4, 2), kind) for h in (1, 5, 2)])
        for order in itertools.permutations(range(4)):
            on_cpu, on_gpu = ndd.transpose(batch, perm=order), ndd.transpose(batch.gpu(), perm=order)
            for a, b in zip(on_gpu.cpu(), on_cpu, strict=True):
                np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    assert ndd.transpose(ndd.tensor(3).gpu()).cpu().item() == 3
