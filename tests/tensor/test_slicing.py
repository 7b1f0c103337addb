"""Indexing: NumPy's rules inside a sample, layouts, bounds that differ between samples, errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import ndd

X = np.arange(4 * 5 * 6, dtype=np.int32).reshape(4, 5, 6)
S = slice
KEYS = [
    0, -1, S(1, 3), S(None, None, -1), S(3, 0, -2), S(-3, None), S(2, 100), S(10, 20), S(3, 1), ..., (0, 1),
    (0, ..., 2), (..., -1), (S(None), 2), (S(1, 3), S(None, None, 2), S(None, None, -1)), (0, 1, 2),
    (S(None), S(None), S(None)),
    (np.int64(1), np.array(2)),
]  # fmt: skip


def layout_after(key, layout="DHW"):
    key = key if isinstance(key, tuple) else (key,)
    if ... in [k for k in key if not isinstance(k, np.ndarray)]:
        at = [k is ... for k in key].index(True)
        key = key[:at] + (S(None),) * (3 - len(key) + 1) + key[at + 1 :]
    kept = [c for i, c in enumerate(layout) if i >= len(key) or isinstance(key[i], slice)]
    return "".join(kept) or None


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("mode", list(ndd.EvalMode))
def test_a_tensor_slices_as_numpy(key, mode):
    with mode:
        t = ndd.tensor(X, layout="DHW")
        result = t[key]
        assert (result.dtype, result.layout, result.ndim) == (t.dtype, layout_after(key), X[key].ndim)
        np.testing.assert_array_equal(np.asarray(result), X[key])


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("form", ["whole", "ragged"])
def test_a_batch_slices_inside_every_sample(key, form):
    arrays = [X, X + 1] if form == "whole" else [X, X[:, :4], X[:, :, :5] + 1]
    b = ndd.batch(arrays, layout="DHW")
    result = b.slice[key]
    assert (result.layout, result.ndim) == (layout_after(key), X[key].ndim)
    for sample, array in zip(result, arrays, strict=True):
        np.testing.assert_array_equal(np.asarray(sample), array[key])


@pytest.mark.drawn(1)
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_a_gpu_batch_slices_as_a_cpu_batch(key, emulated_gpu):
    arrays = [X, X[:, :4], X[:, :, :5] + 1]
    result = ndd.batch(arrays, layout="DHW").gpu().slice[key].cpu()
    assert result.layout == layout_after(key)
    for sample, array in zip(result, arrays, strict=True):
        np.testing.assert_array_equal(np.asarray(sample), array[key])


def test_slices_are_views():
    t = ndd.tensor(X)
    assert np.shares_memory(np.asarray(t[1:3, ::2]), np.asarray(t))
    b = ndd.batch([X, X])
    assert np.shares_memory(np.asarray(b.slice[1].select(0)), np.asarray(b.select(0)))


def test_bounds_may_differ_between_samples():
    b = ndd.batch([[1, 2, 3, 4], [5, 6, 7]])
    result = b.slice[ndd.batch([1, -1]) :]
    assert [s.torch().tolist() for s in result] == [[2, 3, 4], [7]]
    assert [s.item() for s in b.slice[ndd.batch([3, 0])]] == [4, 5]
    assert [s.torch().tolist() for s in b.slice[:: ndd.batch([2, -1])]] == [[1, 3], [7, 6, 5]]
    assert [s.torch().tolist() for s in b.slice[: ndd.tensor(2)]] == [[1, 2], [5, 6]]
    assert ndd.tensor(X)[ndd.tensor(1), ndd.tensor(2) :].shape == (3, 6)
    with pytest.raises(ValueError, match="3 != 2"):
        b.slice[ndd.batch([1, 2, 3])]


@pytest.mark.oracle
def test_errors_equal_dali(dali):
    keys = [
        4,
        -5,
        (0, 0, 0, 0),
        (0, [0], 0, 0),
        (0, 5),
        (..., ...),
        (0, ..., ..., 1),
        S(None, None, 0),
        "a",
        1.5,
        None,
        [0, 1],
        np.arange(2),
        S("a"),
    ]
    for key, (package, results) in itertools.product(keys, ((ndd, {}), (dali, {}))):
        try:
            results[str(key)] = np.asarray(package.tensor(X)[key]).tolist()
        except Exception as error:
            results[str(key)] = type(error)
        if package is dali:
            ours = _outcome(key)
            assert ours == results[str(key)] or str(key) in DIFFERENT, f"{key}: {ours}, DALI {results[str(key)]}"


# DALI's own error types for what is no index at all.
DIFFERENT = {"a", "None", "[0, 1]"}


def _outcome(key):
    try:
        return np.asarray(ndd.tensor(X)[key]).tolist()
    except Exception as error:
        return type(error)


def test_a_batch_is_no_index_of_a_tensor():
    for index in (ndd.batch([0, 1]), S(ndd.batch([0, 1]), None)):
        with pytest.raises(ValueError, match=r"Inconsistent batch size: 2 indices for 1 sample"):
            ndd.tensor([1, 2])[index].evaluate()


def test_late_errors_name_axis_and_sample():
    with pytest.raises(RuntimeError, match=r"(?s)axis 0 of length 1.*sample #1"):
        ndd.batch([[1, 2], [3]]).slice[1].evaluate()


def test_whole_slices_and_rounded_bounds_are_dalis(dali):
    """As many whole slices as one likes take all, also of a scalar; bounds that are floats are rounded, half away."""
    for package in (ndd, dali):
        assert package.tensor(5)[:].item() == 5
        assert package.tensor(5)[..., :, :].item() == 5
        assert [t.item() for t in package.batch([1, 2]).slice[:].tensors] == [1, 2]
        assert package.batch([[1, 2, 3]]).slice[1:, :].shape == [(2,)]
        picked = package.batch([[1, 2, 3], [4, 5, 6]]).slice[package.batch([0.5, 1.4])]
        assert [t.item() for t in picked.tensors] == [2, 5]
        for index in (0, slice(0, 1), (slice(None), 0)):
            with pytest.raises(RuntimeError), package.EvalMode.sync_cpu:
                package.batch([1, 2]).slice[index].evaluate()
        with pytest.raises(ValueError, match="broadcast a Batch"):
            package.Batch.broadcast(package.batch([1, 2]), 2)
