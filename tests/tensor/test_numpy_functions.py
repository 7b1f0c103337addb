"""NumPy's functions on values: arrays come out; operators between an array and a value stay ndd's."""

from __future__ import annotations

import numpy as np
import pytest
from scenarios import outcomes

import ndd

a = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def functions(m, do):
    t, i = m.as_tensor(a), m.as_tensor(np.arange(3))

    def added(accumulator):
        accumulator += t
        return accumulator

    for call in (
        lambda: np.sqrt(t), lambda: np.sum(t), lambda: np.mean(t, axis=0), lambda: np.maximum(t, 2), lambda: np.maximum(2, t),
        lambda: np.add(t, t), lambda: np.add(t, 2), lambda: added(a.copy()), lambda: np.clip(t, 1, 3), lambda: np.max(t),
        lambda: np.concatenate([t, t]), lambda: np.stack([t, a]), lambda: np.where(t, 1, 0), lambda: np.add.reduce(t),
        lambda: np.multiply.outer(t, i), lambda: np.isnan(t), lambda: np.invert(i), lambda: np.any(t), lambda: np.allclose(t, a),
        lambda: np.multiply(t, 2, out=np.zeros_like(a)), lambda: np.dot(t, np.ones(3)), lambda: np.sum(t, axis=1, keepdims=True),
        lambda: np.add(t, 1, dtype=np.float64), lambda: np.ones((1, 2), np.float32) @ t,
    ):  # fmt: skip

        def arguments(call=call):
            result = call()
            return type(result).__name__, str(getattr(result, "dtype", "")), np.asarray(result).tolist()

        do(arguments)


@pytest.mark.oracle
def test_as_dali():
    dali = pytest.importorskip("nvidia.dali.experimental.dynamic")
    assert outcomes(functions, ndd) == outcomes(functions, dali)


@pytest.mark.parametrize("make", [ndd.as_tensor, lambda x: ndd.batch([x, x])])
def test_operators_are_ours(make):
    value = make(a)
    for result in (
        a + value,
        a - value,
        a * value,
        a / 2 / value,
        a**value,
        a < value,
        a == value,
        np.float64(2) + value,
        value + a,
    ):
        assert isinstance(result, type(value))
    assert (np.arange(3, dtype=np.float32) + value).dtype == ndd.float32


def test_a_batch_is_no_array():
    with pytest.raises(TypeError, match=r"numpy.sqrt takes arrays, got a Batch.*ndd.math"):
        np.sqrt(ndd.batch([a, a]))
    with pytest.raises(TypeError, match="got a Batch"):
        np.sum(ndd.batch([a, a]))
    total = a.copy()
    with pytest.raises(TypeError, match="got a Batch"):
        total += ndd.batch([a, a])


def test_not_from_the_gpu(emulated_gpu):
    with pytest.raises(TypeError, match=r"\.cpu\(\)"):
        np.sqrt(ndd.as_tensor(a).gpu())
