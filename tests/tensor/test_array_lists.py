"""Batches of lists of arrays: what one by one gives, whatever the arrays are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch

import ndd
from ndd._tensor import array_lists, construct

RNG = np.random.default_rng(0)
ARRAYS = {
    "one shape": [RNG.integers(0, 9, (3, 4, 2), np.uint8) for _ in range(5)],
    "ragged": [RNG.integers(0, 9, (3 + k, 4), np.int16) for k in range(5)],
    "empty ones": [np.zeros((k % 2, 3), np.float32) for k in range(4)],
    "numbers": [np.array(1.5 * k) for k in range(3)],
    "strided": [RNG.random((6, 8, 3))[::2, ::-1] for _ in range(3)],
    "Fortran": [np.asfortranarray(RNG.random((4, 5))) for _ in range(3)],
    "booleans": [RNG.random((2, 2)) > 0.5 for _ in range(3)],
    "halves": [RNG.random(4).astype(np.float16) for _ in range(3)],
    "two types": [np.zeros(2, np.uint8), np.full(2, 300, np.int32)],
    "read-only": [np.broadcast_to(np.float32(k), (2, 3)) for k in range(3)],
    "other byte order": [np.arange(3, dtype=">i4"), np.arange(3, dtype=">i4")],
    "bytes": [b"abc", b"", b"defgh"],
}


@pytest.mark.parametrize("make", [ndd.batch, ndd.as_batch])
@pytest.mark.parametrize("name", ARRAYS)
def test_values_of_each(name, make):
    data = ARRAYS[name]
    each = [np.frombuffer(a, np.uint8) if isinstance(a, bytes) else a for a in data]
    for result in (make(data), make(tuple(data)), make(iter(data)), make([*map(torch.from_numpy, _of_torch(each))])):
        assert result.shape == [a.shape for a in each]
        assert result.dtype.numpy == np.result_type(*each).newbyteorder("=")
        for image, array in zip(result.tensors, each, strict=True):
            np.testing.assert_array_equal(np.asarray(image), array)


def _of_torch(arrays):
    return [np.ascontiguousarray(a, a.dtype.newbyteorder("=")).reshape(a.shape).copy() for a in arrays]


@pytest.mark.parametrize("name", ["one shape", "ragged", "strided"])
def test_a_copy_is_of_its_own_and_a_view_is_not(name):
    arrays = [array.copy() for array in ARRAYS[name]]
    copied, shared = ndd.batch(arrays), ndd.as_batch(arrays)
    before = [array.copy() for array in arrays]
    for array in arrays:
        array[...] = 1
    for image, view, array in zip(copied.tensors, shared.tensors, before, strict=True):
        np.testing.assert_array_equal(np.asarray(image), array)
        assert (np.asarray(view) == 1).all()


def test_what_is_shared_is_read_before_the_call_returns():
    arrays = [np.zeros((2, 2), np.uint8) for _ in range(3)]
    flipped = ndd.flip(ndd.as_batch(arrays, layout="HW"))
    for array in arrays:
        array[...] = 7
    assert all((np.asarray(image) == 0).all() for image in flipped.tensors)


def test_a_sequence_that_makes_its_samples_is_read_once():
    class Made(Sequence):
        asked = 0

        def __len__(self):
            return 3

        def __getitem__(self, index):
            if index >= 3:
                raise IndexError
            self.asked += 1
            return np.full(2, self.asked)

    result = Made()
    assert [np.asarray(image).tolist() for image in ndd.batch(result).tensors] == [[1, 1], [2, 2], [3, 3]]
    assert result.asked == 3


def test_errors_are_those_of_one_by_one():
    with pytest.raises(RuntimeError, match="sample 0 has 1, sample 1 has 2"):
        ndd.batch([np.zeros(2), np.zeros((2, 2))])
    with pytest.raises(ValueError, match="the same number of dimensions as every sample"):
        ndd.batch([np.zeros(2), np.zeros(2)], layout="HW")
    with pytest.raises(RuntimeError, match="NumPy's type complex128"):
        ndd.batch([np.zeros(2, complex), np.zeros(2, complex)])


@pytest.mark.parametrize("joined", ["batch", "as_batch", "Batch"])
def test_samples_of_different_rank_raise_what_dali_raises(joined):
    flat, plane = np.zeros(3), np.zeros((2, 3))

    def cases(module):
        tensor, marked = module.tensor(flat), module.tensor(plane, layout="HW")
        return [
            ([flat, plane], None, "RuntimeError"),
            ([flat, plane], "W", "RuntimeError"),
            ([flat, plane], "HW", "ValueError"),
            ([flat, 1.0], None, "TypeError"),
            ([flat, 1.0], "W", "ValueError"),
            ([tensor, plane], None, "TypeError"),
            ([plane, tensor], None, "TypeError"),
            ([[1.0], plane], None, "TypeError"),
            ([marked, flat], None, "ValueError"),
            ([marked, 1.0], None, "ValueError"),
            ([marked, tensor], None, "TypeError"),
            ([flat, marked], None, "TypeError"),
        ]

    def raised(module):
        for samples, layout, _ in cases(module):
            with pytest.raises((RuntimeError, TypeError, ValueError)) as caught:
                getattr(module, joined)(samples, layout=layout).evaluate()
            yield type(caught.value).__name__

    expected = [kind for *_, kind in cases(ndd)]
    assert list(raised(ndd)) == expected
    assert list(raised(pytest.importorskip("nvidia.dali.experimental.dynamic"))) == expected


def test_torch_s_gradients_and_masks_take_the_long_way():
    with pytest.raises(RuntimeError, match="requires grad"):
        ndd.batch([torch.zeros(2, requires_grad=True)] * 2)
    halves = ndd.batch([torch.ones(2, dtype=torch.bfloat16)] * 2)
    assert halves.dtype is ndd.bfloat16
    masked = ndd.batch([np.ma.masked_array([1, 2], [True, False])] * 2)
    assert np.asarray(masked.tensors[0]).tolist() == [1, 2]


def test_no_step_for_each_array(monkeypatch):
    monkeypatch.setattr(construct, "build_tensor", None)
    for data in (ARRAYS["one shape"], ARRAYS["ragged"], [*map(torch.from_numpy, ARRAYS["one shape"])]):
        assert ndd.batch(data).batch_size == len(data)
        assert ndd.as_batch(data, dtype=ndd.as_batch(data).dtype).batch_size == len(data)
    assert array_lists.arrays_alike([1.5, 2.5], None, None, True) is None
