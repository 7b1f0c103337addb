"""`.cpu_batch`: samples of one shape in one call, or one for each thread; everything else sample by sample."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ndd

calls: list[tuple[int, ...]] = []


@ndd.operator(register=False)
def scaled(array, other=None, /, *, factor: ndd.PerSample[float] = 2.0, shift: int = 1):
    """array * factor + shift."""
    return ndd.like(array)


@scaled.plan
def _(array, other, *, factor, shift):
    return ndd.Plan(array.shapes, {"factors": factor.each()}, {"shift": shift})


@scaled.cpu
def _(array, other, out, factors, shift):
    if array.size and array.flat[0] < 0:
        raise ValueError("negative")
    out[...] = array * factors + shift


@scaled.cpu_batch
def _(array, out, factors, shift):
    calls.append(array.shape)
    if array.size and array.min() < 0:
        raise ValueError("somewhere")
    out[...] = array * factors.reshape(-1, *(1,) * (array.ndim - 1)) + shift


@ndd.operator(register=False)
def weighted(array, /, *, weight: ndd.PerSample[float] = 2.0):
    """array * weight, by a kernel for whole batches alone."""
    return ndd.like(array)


@weighted.cpu_batch
def _(array, out, weight):
    calls.append(array.shape)
    if array.size and array.min() < 0:
        raise ValueError("negative")
    out[...] = array * np.reshape(weight, (-1, *(1,) * (array.ndim - 1)))


@ndd.operator(register=False)
def total(first, /, *arrays):
    """The sum of all."""
    return ndd.like(first)


@total.cpu
def _(arrays, out):
    out[...] = sum(arrays)


@total.cpu_batch
def _(arrays, out):
    calls.append((len(arrays), *arrays[0].shape))
    out[...] = sum(arrays)


@pytest.fixture(autouse=True)
def _no_calls():
    calls.clear()


def _batch(n: int, shape: tuple[int, ...], together: bool) -> ndd.Batch:
    data = np.arange(n * int(np.prod(shape)), dtype=np.float32).reshape(n, *shape)
    return ndd.as_batch(ndd.tensor(data)) if together else ndd.batch(list(data))


@pytest.mark.parametrize("together", [True, False])
def test_samples_of_one_shape_are_computed_in_one_call(together):
    batch = _batch(5, (2, 3), together)
    factors = np.arange(5, dtype=np.float32)
    result = scaled(batch, factor=ndd.batch(list(factors)), shift=3).torch().numpy()
    np.testing.assert_array_equal(result, batch.torch().numpy() * factors[:, None, None] + 3)
    assert calls == [(5, 2, 3)]


def test_large_batches_are_divided_among_threads():
    batch = _batch(9, (1 << 15,), True)
    with ndd.EvalContext(num_threads=3):
        result = scaled(batch, factor=ndd.batch(list(np.arange(9.0)))).torch().numpy()
    np.testing.assert_array_equal(result, batch.torch().numpy() * np.arange(9, dtype=np.float32)[:, None] + 1)
    assert sorted(calls) == [(3, 1 << 15)] * 3


@pytest.mark.parametrize("large", [False, True])
def test_ragged_and_large_separate_samples_go_one_by_one(large):
    arrays = [np.ones(1 << 14, np.float32)] * 3 if large else [np.ones(k, np.float32) for k in (1, 2, 3)]
    result = scaled(ndd.batch(arrays))
    assert [np.asarray(t).tolist() for t in result] == [[3.0] * len(a) for a in arrays]
    assert not calls


def test_the_sample_that_fails_is_named():
    with pytest.raises(ValueError, match="scaled: sample 2: negative"):
        scaled(ndd.batch([[1.0], [2.0], [-1.0]])).evaluate()


def test_a_tensor_counts_as_a_batch_of_one():
    assert scaled(ndd.tensor([1.0, 2.0])).torch().tolist() == [3.0, 5.0]
    assert calls == [(1, 2)]


@pytest.mark.parametrize("together", [True, False])
def test_variadic_operators_take_all_inputs_as_a_tuple(together):
    batch = _batch(4, (3,), together)
    np.testing.assert_array_equal(total(batch, batch, batch).torch(), 3 * batch.torch())
    assert calls == [(3, 4, 3)]


def test_one_tensor_beside_a_batch_serves_every_sample():
    batch = _batch(4, (3,), True)
    np.testing.assert_array_equal(
        total(batch, ndd.tensor(np.float32([1, 2, 3]))).torch(), batch.torch() + torch.tensor([1.0, 2.0, 3.0])
    )
    assert not calls


def test_the_kernel_for_whole_batches_serves_samples_of_different_shapes_one_by_one():
    batch = ndd.batch([np.ones((2, 3), np.float32), np.ones((1, 4), np.float32)])
    found = weighted(batch, weight=ndd.batch([3.0, 5.0]))
    assert [np.unique(np.asarray(t)).tolist() for t in found] == [[3.0], [5.0]]
    assert calls == [(1, 2, 3), (1, 1, 4)]
    bad = ndd.batch([np.ones((2, 3), np.float32), -np.ones((1, 4), np.float32)])
    with pytest.raises(ValueError, match="weighted: sample 1: negative"):
        weighted(bad).evaluate()
