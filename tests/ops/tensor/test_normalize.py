"""`ndd.normalize` against DALI; what the GPU reads."""

# ruff: noqa: B023  (every closure runs before the loop goes on)
from __future__ import annotations

import functools

import numpy as np
import pytest
from cases import U8, each_of
from compare import assert_same, check_same
from number_samples import NAMES, NUMPY

import ndd
from ndd._compiled.sample_loops import _by_fallback
from ndd._operator import partition

REGISTRY_CASES = {
    "normalize": each_of(
        {},
        {"axes": [0]},
        {"axes": [0, 1], "shift": 1.0, "scale": 2.0},
        {"axes": [2], "ddof": 1},
        {"axes": [0, 2], "epsilon": 1.0},
        {"dtype": U8, "scale": 50.0, "shift": 100.0},
        {"batch": True, "epsilon": 0.5},
        inputs=("cube",),
        dtypes=("uint8", "int16", "int32", "float32"),
    )
    # DALI refuses plain numbers here (it wants arrays of the input's rank): CPU and GPU are compared with each other.
    + each_of(
        {"axes": [2], "mean": 3.0, "ddof": 1},
        {"axes": [0, 2], "mean": 3.0, "stddev": 4.0, "epsilon": 1.0},
        inputs=("cube",),
        dtypes=("uint8", "int16", "int32", "float32"),
        oracle=False,
    ),
}

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def values(kind, shape, seed=0):
    return (np.random.default_rng(seed).random(shape) * 120).astype(NUMPY[kind])


def close(result, wanted):
    assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=2e-5 * (np.abs(wanted).max(initial=0) + 1))
    else:
        apart = np.abs(result.astype(float) - wanted.astype(float))
        assert apart.max(initial=0) <= 1
        assert (apart > 0).mean() < 0.01


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
def test_types(dali, source, target):
    x = values(source, (20, 30))
    extra = {"scale": 50.0, "shift": 100.0}
    check_same(dali, lambda m: m.normalize(m.tensor(x), dtype=getattr(m, NUMPY[target]), **extra), close=close)


@pytest.mark.parametrize("shape", [(40, 50, 3), (7, 3), (3, 10, 4, 9), (11,), (1, 1), (0, 3)])
@pytest.mark.drawn(1)
def test_axes(dali, shape):
    for kind in ("f32", "u8"):
        x = values(kind, shape)
        for axes in (None, [0], [0, 1], [1], [len(shape) - 1], [0, 2], [1, 3], list(range(len(shape))), [-1], [9], []):
            extra = {} if axes is None else {"axes": axes}
            for more in ({}, {"ddof": 1, "epsilon": 3.0}, {"scale": 2.0, "shift": -1.0}):
                check_same(dali, lambda m: m.normalize(m.tensor(x), **extra, **more), close=close)


def test_axis_names(dali):
    for extra in ({"axis_names": "W"}, {"axis_names": "HW"}, {"axis_names": "C"}, {"axis_names": "W", "axes": [0]}):
        check_same(dali, lambda m: m.normalize(m.tensor(X, layout="HW"), **extra), close=close)
    assert ndd.normalize(ndd.tensor(X, layout="HW")).layout == "HW"


def test_given_arrays(dali):
    row, column = np.array([[1, 2, 3]], np.float32), np.array([[1], [2]], np.float32)
    for extra in (
        {"mean": row}, {"mean": column}, {"mean": row, "axes": [0]}, {"mean": column, "axes": [0]}, {"stddev": column},
        {"mean": row, "stddev": row}, {"mean": row, "stddev": column}, {"mean": row, "stddev": row * 0},
        {"mean": row, "stddev": row, "epsilon": 2.0}, {"mean": row[0], "axes": [0]}, {"mean": row, "ddof": 1},
        {"stddev": column, "axes": [1], "scale": 3.0, "shift": 1.0}, {"mean": row.astype(np.float64)},
    ):  # fmt: skip
        arrays = {k: v for k, v in extra.items() if isinstance(v, np.ndarray)}
        item = lambda m: m.normalize(m.tensor(X), **{**extra, **{k: m.tensor(v) for k, v in arrays.items()}})  # noqa: E731
        check_same(dali, item, close=close)
        each = lambda m: {k: m.batch([v, v + 1]) for k, v in arrays.items()}  # noqa: E731
        check_same(dali, lambda m: m.normalize(m.batch([X, X * 2]), **{**extra, **each(m)}), close=close)


def test_plain_numbers():
    for arguments, wanted in (
        ({"mean": 2.0, "stddev": 2.0}, (X + 1 - 2) / 2),
        ({"mean": 3.0}, (X - 2) / np.sqrt(((X - 2) ** 2).mean())),
        ({"mean": ndd.batch([1.0, 2.0]), "stddev": ndd.batch([1.0, 4.0])}, (X + 1 - 2) / 4),
        ({"batch": True, "mean": 1.0, "stddev": 2.0}, (X + 1 - 1) / 2),
        ({"mean": 1.0, "stddev": 0.0}, X * 0),
    ):
        result = ndd.normalize(ndd.batch([X, X + 1]), **arguments)
        np.testing.assert_allclose(np.asarray(result.select(1)), wanted, rtol=1e-6)


def test_constant_values_give_the_shift(dali):
    x = np.full((3, 4), 7, np.float32)
    for extra in ({}, {"shift": 3.0}, {"epsilon": 0.1}, {"ddof": 12}, {"ddof": 20}):
        check_same(dali, lambda m: m.normalize(m.tensor(x), **extra), close=close)


def test_whole_batches(dali):
    a, b = values("f32", (20, 9, 3)), values("f32", (20, 9, 3), 1) * 2
    for arrays in ([a, b], [a, b[:5]], [a]):
        for extra in (
            {},
            {"axes": [0]},
            {"axes": [1, 2]},
            {"axes": [0, 1], "ddof": 1},
            {"axes": [1]},
            {"epsilon": 2.0},
        ):
            check_same(dali, lambda m: m.normalize(m.batch(arrays), batch=True, **extra), close=close)
    check_same(dali, lambda m: m.normalize(m.batch([X, X]), batch=True, mean=m.batch([X[:1], X[:1]])), close=close)


@pytest.mark.parametrize("axes", [None, [0], [0, 1], [1, 2]])
@pytest.mark.drawn(1)
def test_gpu_reads_many_samples_once(emulated_gpu, axes):
    arrays = [values("u8", (h, 7, 3), h) for h in (1, 40, 90)] + [values("u8", (30, 7, 3), h) for h in range(70)]
    arrays.append(values("u8", (200, 7, 3), 200))  # too long a row for a warp, if all axes are averaged
    b = ndd.batch([*arrays, np.full((4, 7, 3), 9, np.uint8), np.zeros((0, 7, 3), np.uint8)])
    extra = {} if axes is None else {"axes": axes}
    for more in ({"ddof": 1}, {"epsilon": 2.0, "scale": 3.0, "shift": 1.0}):
        wanted, result = ndd.normalize(b, **extra, **more), ndd.normalize(b.gpu(), **extra, **more)
        for item, other in zip(result.cpu(), wanted, strict=True):
            close(np.asarray(item), np.asarray(other))
    texts = emulated_gpu.texts.items()
    rows = axes == [1, 2]
    assert {"#define KIND KIND_MOMENTS" in text for text, names in texts if "reduce" in names} == (
        set() if rows else {True}
    )
    assert ("normalize_rows" in emulated_gpu.launches) == rows


def test_names_the_sample_that_does_not_fit():
    bad = ndd.batch([np.zeros((1, 3), np.float32), np.zeros((1, 2), np.float32)])
    with pytest.raises(RuntimeError, match=r"sample 1: `mean` has shape \(1, 2\)"):
        ndd.normalize(ndd.batch([X, X]), mean=bad).evaluate()
    assert_same(np.asarray(ndd.normalize(ndd.tensor(X[:0]))), X[:0])


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("strided", [True, False])
@pytest.mark.drawn(1)
def test_samples_in_turn(strided, compiled, monkeypatch, tasks):
    """Ragged, with empty ones; what is worked out, numbers, arrays of each sample, and numbers of the whole batch."""
    if not compiled:
        monkeypatch.setattr(partition, "loop_over_samples", lambda item: functools.partial(_by_fallback, item))
    shapes = [(0, 3, 3), (1, 1, 3), (5, 0, 3), *((40 + k, 30, 3) for k in range(40))]
    arrays = [values("u8", s, k) for k, s in enumerate(shapes)]
    batch = ndd.as_batch([ndd.as_tensor(np.repeat(a, 2, 1)[:, ::2] if strided else a) for a in arrays]).evaluate()
    means = ndd.batch([np.full((1, 1, 3), k, np.float32) for k in range(len(shapes))]).evaluate()
    for extra in ({}, {"mean": 20.0}, {"mean": means, "stddev": 3.0}, {"batch": True, "epsilon": 1.0}):
        tasks.clear()
        with ndd.EvalContext(num_threads=3):
            result = ndd.normalize(batch, axes=[0, 1], ddof=1, shift=0.5, **extra).tensors
        assert tasks == [3]
        if "batch" in extra:
            everything = np.concatenate([a.reshape(-1, 3) for a in arrays]).astype(np.float64)
            spread = np.sqrt(everything.var(axis=0, ddof=1) + 1)
            wanted = [(a - everything.mean(axis=0)) / spread + 0.5 for a in arrays]
        else:
            own = [extra if extra.get("mean") is not means else {**extra, "mean": m} for m in means]
            wanted = [
                np.asarray(ndd.normalize(ndd.tensor(a), axes=[0, 1], ddof=1, shift=0.5, **o))
                for a, o in zip(arrays, own, strict=True)
            ]
        for item, other in zip(result, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(item), other, rtol=1e-5, atol=1e-5)
