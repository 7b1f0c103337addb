"""`ndd.batch_permutation` and `ndd.permute_batch` against DALI."""

from __future__ import annotations

import numpy as np
import pytest
from cases import EachSample, each_of

import ndd
from ndd.random import RNG

REGISTRY_CASES = {
    "batch_permutation": each_of({}, inputs=()),
    "permute_batch": each_of({"indices": EachSample([2, 0, 1])}, inputs=("matrix",)),
}


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 64, 1001])
@pytest.mark.parametrize("repeat", [False, True])
@pytest.mark.parametrize("derange", [False, True])
def test_orders_equal_dali(dali, n, repeat, derange):
    arguments = {"batch_size": n, "allow_repetitions": repeat, "no_fixed_points": derange}
    actual = []
    for library in (ndd, dali):
        result = library.batch_permutation(rng=library.random.RNG(17), **arguments)
        actual.append([int(np.array(t)) for t in result.evaluate().tensors])
    assert actual[0] == actual[1]
    assert repeat or sorted(actual[0]) == list(range(n))
    assert n == 1 or not derange or all(i != k for i, k in enumerate(actual[0]))
    assert ndd.batch_permutation(batch_size=n).dtype == ndd.int32


def test_a_very_long_order():
    order = ndd.batch_permutation(batch_size=70_000, rng=RNG(1)).torch().numpy()
    np.testing.assert_array_equal(np.sort(order), np.arange(70_000))
    assert (order == np.arange(70_000)).sum() < 20


def test_an_order_needs_a_batch_size():
    with pytest.raises(ValueError, match=r"batch_size.*batch_permutation"):
        ndd.batch_permutation()


def test_orders_are_made_on_the_cpu(emulated_gpu):
    with pytest.raises(ValueError, match="device"):
        ndd.batch_permutation(batch_size=3, device="gpu")


def test_samples_move_with_what_belongs_to_them():
    batch = ndd.batch([[1], [2, 3], [4]], layout="W")
    batch._value().source_info = ["a", "b", "c"]
    for indices in (
        [2, 0, 1],
        ndd.batch([2, 0, 1]),
        ndd.batch([[2], [0], [1]]),
        np.array([2, 0, 1]),
        ndd.tensor([2, 0, 1]),
    ):
        moved = ndd.permute_batch(batch, indices=indices).evaluate()
        assert moved.shape == [(1,), (1,), (2,)]
        assert moved.layout == "W"
        assert moved.source_info == ["c", "a", "b"]
    assert ndd.permute_batch(batch, indices=1).shape == [(2,)] * 3
    assert ndd.permute_batch(batch, indices=[2, 2, 2]).shape == [(1,)] * 3


def test_mixing_a_batch_with_itself():
    order = ndd.batch_permutation(batch_size=4, no_fixed_points=True, rng=RNG(3))
    images = ndd.batch([np.full((2, 2), i, np.float32) for i in range(4)])
    mixed = images * 0.5 + ndd.permute_batch(images, indices=order) * 0.5
    expected = [(i + int(np.array(k))) / 2 for i, k in enumerate(order.tensors)]
    assert [float(np.array(t)[0, 0]) for t in mixed.tensors] == expected


@pytest.mark.parametrize(
    ("indices", "words"), [([0, 1], "as many"), ([0, 1, 3], "position 2"), ([-1, 0, 1], "position 0")]
)
def test_refused(indices, words):
    with pytest.raises(RuntimeError, match=words), ndd.EvalMode.sync_cpu:
        ndd.permute_batch(ndd.batch([1, 2, 3]), indices=indices)


def test_on_the_gpu(emulated_gpu):
    batch = ndd.batch([[1], [2, 3], [4]]).gpu()
    moved = ndd.permute_batch(batch, indices=ndd.batch([2, 0, 1]))
    assert moved.device == ndd.Device("gpu")
    assert [np.array(t.cpu()).tolist() for t in moved.tensors] == [[4], [1], [2, 3]]
