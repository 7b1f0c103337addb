"""full, ones, zeros, their `_like` forms, and get_property, beside DALI."""

import numpy as np
import pytest
from cases import F32, U8, Case, each_of
from compare import check_same

import ndd

REGISTRY_CASES = {
    "full": each_of({"shape": [3, 4]}, inputs=("scalar",)),
    "full_like": [Case({}, inputs=("matrix", "scalar"))],
    "ones": each_of({}, {"shape": [3, 4], "dtype": F32}, inputs=()),
    "zeros": each_of({}, {"shape": [3, 4], "dtype": U8}, inputs=()),
    "ones_like": each_of({}, inputs=("matrix",)),
    "zeros_like": each_of({}, {"dtype": F32}, inputs=("matrix",)),
    "get_property": each_of({"key": "layout"}, layouts=("HWC",), dtypes=("uint8",)),
}

B = [np.ones((2, 1), np.uint8), np.ones((1, 3), np.uint8)]
TYPES = [
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "uint64",
    "int64",
    "float16",
    "float32",
    "float64",
    "bool",
]
CASES = [
    lambda m: m.full(3, shape=[2, 2]),
    lambda m: m.full(3.5, shape=[2]),
    lambda m: m.full(3),
    lambda m: m.full([1, 2], shape=[2, 2]),
    lambda m: m.full([1, 2, 3], shape=[2, 2]),
    lambda m: m.full([[1, 2]], shape=[2]),
    lambda m: m.full(1, shape=[2, 2], layout="HW"),
    lambda m: m.full(1, shape=[2, 2], layout="HWC"),
    lambda m: m.full(1, shape=[2], batch_size=2),
    lambda m: m.full(m.batch([1, 2]), shape=[2]),
    lambda m: m.full(1, shape=m.batch([[1], [2]])),
    lambda m: m.full(1, shape=[-1]),
    lambda m: m.full(1, shape=2),
    lambda m: m.full(True, shape=[2]),
    lambda m: m.full_like(m.batch(B, layout="HW"), 5),
    lambda m: m.full_like(m.tensor(B[0], layout="HW"), 5.5),
    lambda m: m.full_like(m.tensor(B[1], layout="HW"), [1, 2, 3]),
    lambda m: m.full_like(m.tensor(B[1], layout="HW"), [1, 2]),
    lambda m: m.ones(),
    lambda m: m.ones(shape=[2], layout="A"),
    lambda m: m.ones(shape=[2], layout="AB"),
    lambda m: m.zeros(shape=[1], batch_size=2),
    lambda m: m.zeros(shape=m.batch([[1], [2]])),
    lambda m: m.ones_like(m.batch(B, layout="HW")),
    lambda m: m.zeros_like(m.tensor(B[0], layout="HW")),
    lambda m: m.get_property(m.tensor(B[0], layout="HW"), key="layout"),
    lambda m: m.get_property(m.tensor(B[0]), key="layout"),
    lambda m: m.get_property(m.batch(B, layout="HW"), key="layout"),
    lambda m: m.get_property(m.tensor(B[0]), key="source_info"),
    lambda m: m.get_property(m.tensor(B[0]), key="color"),
    lambda m: m.get_property(m.tensor(B[0])),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_cases_as_dali(dali, number):
    check_same(dali, CASES[number])


@pytest.mark.parametrize("kind", TYPES)
def test_types_as_dali(dali, kind):
    for name in ("ones", "zeros"):
        check_same(dali, lambda m, name=name: getattr(m, name)(shape=[3], dtype=getattr(m, kind)))
        like = f"{name}_like"
        check_same(dali, lambda m, like=like: getattr(m, like)(m.batch(B, layout="HW"), dtype=getattr(m, kind)))


def test_beyond_dali():
    assert ndd.full([1, 2]).torch().tolist() == [1, 2]
    assert ndd.ones(shape=[2], dtype=ndd.bfloat16).torch().tolist() == [1.0, 1.0]


def test_source_info():
    from ndd._tensor import make_batch

    batch = make_batch([np.ones(1, np.uint8)] * 2, source_info=["a.jpg", None])
    assert [bytes(np.asarray(t)) for t in ndd.get_property(batch, key="source_info")] == [b"a.jpg", b""]


def test_on_gpu(emulated_gpu):
    result = ndd.zeros(shape=ndd.batch([[1], [2]]), device="gpu")
    assert result.device == ndd.Device("gpu:0")
    assert result.shape == [(1,), (2,)]
    assert ndd.full_like(result, 3).cpu().select(1).torch().tolist() == [3, 3]
    assert ndd.get_property(ndd.tensor([[1]], layout="AB").gpu(), key="layout").cpu().torch().tolist() == [65, 66]
