"""An operator never rewrites its inputs: what shares memory with the user's arrays goes on sharing it."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch

import ndd

PICTURE = np.arange(6 * 8 * 3, dtype=np.uint8).reshape(6, 8, 3)
VIEWS = {
    "columns": lambda a: a[:, ::2],
    "rows": lambda a: a[1:5:2],
    "backwards": lambda a: a[::-1],
    "transposed": lambda a: a.transpose(1, 0, 2),
    "window": lambda a: a[1:4, 2:7],
}
OPERATORS = {
    "flip": (lambda x: ndd.flip(x), lambda a: a[:, ::-1]),
    "cast": (lambda x: ndd.cast(x, dtype=ndd.int16), lambda a: a.astype(np.int16)),
    "add": (lambda x: x + 1, lambda a: a + 1),
    "reshape": (lambda x: ndd.reshape(x, shape=[-1], layout=""), lambda a: a.reshape(-1)),
    "slice": (lambda x: ndd.slice(x, 1, 1, axes=[0]), lambda a: a[1:2]),
}
both = pytest.mark.parametrize(("operator", "expected"), OPERATORS.values(), ids=OPERATORS)


@both
@pytest.mark.parametrize("mode", ["eager", "deferred", "sync_full"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_tensor_goes_on_sharing(view, mode, operator, expected):
    base = PICTURE.copy()
    a = VIEWS[view](base)
    value = ndd.as_tensor(a, layout="HWC")
    with ndd.EvalMode[mode]:
        for number in (0, 100):
            a[0, 0, 0] = number  # seen by the value, and by the next call
            assert np.asarray(value)[0, 0, 0] == number
            np.testing.assert_array_equal(operator(value), expected(a))
            assert np.shares_memory(np.asarray(value), base)


@both
@pytest.mark.parametrize("view", VIEWS)
def test_a_batch_goes_on_sharing(view, operator, expected):
    bases = [PICTURE + i for i in range(3)]
    arrays = [VIEWS[view](b) for b in bases]
    value = ndd.as_batch(arrays, layout="HWC")
    for number in (0, 100):
        arrays[1][0, 0, 0] = number
        for i, result in enumerate(operator(value).tensors):
            np.testing.assert_array_equal(result, expected(arrays[i]))
    for i in range(3):
        assert np.shares_memory(np.asarray(value.select(i)), bases[i])


@both
def test_views_of_a_batch_go_on_sharing(operator, expected):
    """Slices of a batch in one piece, and samples picked from it."""
    base = np.stack([PICTURE, PICTURE + 1, PICTURE + 2, PICTURE + 3])
    whole = ndd.as_batch(base, layout="HWC")
    for value, of in ((whole.slice[:, ::2], base[:, :, ::2]), (whole.select(slice(0, 4, 2)), base[::2])):
        for number in (0, 100):
            of[1, 0, 0, 0] = number
            for i, result in enumerate(operator(value).tensors):
                np.testing.assert_array_equal(result, expected(of[i]))
            assert np.shares_memory(np.asarray(value.select(1)), base)
    item = whole.select(2)[::-1]
    np.testing.assert_array_equal(operator(item), expected(base[2, ::-1]))
    assert np.shares_memory(np.asarray(item), base)


@both
def test_a_torch_tensor_goes_on_sharing(operator, expected):
    base = torch.from_numpy(PICTURE.copy())
    strided = base[:, ::2]
    value = ndd.as_tensor(strided, layout="HWC")
    for number in (0, 100):
        base[0, 0, 0] = number
        np.testing.assert_array_equal(operator(value), expected(strided.numpy()))
        assert value.torch().data_ptr() == base.data_ptr()


def test_the_gpu_path_leaves_inputs_alone(emulated_gpu):
    """Addresses handed to a kernel are those of contiguous copies, which the value itself does not keep as its own."""
    base = torch.from_numpy(np.stack([PICTURE, PICTURE + 1])).to("cuda" if emulated_gpu.real else "cpu")
    whole = ndd.as_batch(base, layout="HWC", device="gpu")
    value = whole.slice[:, ::2]
    before = [t.data_ptr() for t in value.evaluate()._store.arrays()]
    for number in (7, 9):
        for t in whole._store.arrays():
            t[0, 0, 0] = number
        result = ndd.flip(value).cpu()
        for i in range(2):
            picture = PICTURE + i
            picture[0, 0, 0] = number
            np.testing.assert_array_equal(result.select(i), picture[:, ::2][:, ::-1])
        assert [t.data_ptr() for t in value._store.arrays()] == before


def test_one_element_of_a_gpu_value_is_read_back(emulated_gpu):
    numbers = np.arange(6 * 8 * 4, dtype=np.float32).reshape(6, 8, 4)
    value = ndd.tensor(numbers, layout="HWC").gpu()
    assert np.asarray(value[1, 2, 3].cpu()) == numbers[1, 2, 3]
    assert np.asarray(value[1, 2, 3].gpu().cpu()) == numbers[1, 2, 3]
    np.testing.assert_array_equal(value[1:2, 2, 3].cpu(), numbers[1:2, 2, 3])
    np.testing.assert_array_equal(value[:, 2, 3].cpu(), numbers[:, 2, 3])


def test_contiguous_gives_itself_or_a_sibling():
    base = np.stack([PICTURE] * 4)
    for value in (ndd.as_batch(base), ndd.as_batch(list(base)), ndd.as_batch(base).select(slice(0, 4, 2))):
        store = value.evaluate()._store
        assert store.contiguous() is store  # each sample is contiguous, though the batch may not be in one piece
        assert store.pointers().tolist() == [a.ctypes.data for a in store.arrays()]
    strided = ndd.as_batch(base).slice[:, ::2].evaluate()._store
    packed = strided.contiguous()
    assert packed is not strided
    assert packed.shapes == strided.shapes
    assert packed.layout == strided.layout
    addresses = packed.pointers().tolist()
    gc.collect()
    assert addresses == [a.ctypes.data for a in packed.arrays()]
    for a, b in zip(packed.arrays(), strided.arrays(), strict=True):
        assert a.flags.c_contiguous
        np.testing.assert_array_equal(a, b)
    numbers = ndd.as_batch(np.arange(8)[::2])
    assert numbers.evaluate()._store.contiguous().pointers().tolist() == [
        a.ctypes.data for a in numbers._store.arrays()
    ]


def test_addresses_stay_good_while_the_store_lives():
    strided = ndd.as_batch(np.stack([PICTURE] * 2)).slice[:, ::2].evaluate()._store
    addresses = strided.pointers()
    gc.collect()
    for address, array in zip(addresses.tolist(), strided.arrays(), strict=True):
        held = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_uint8 * array.size).from_address(address))
        np.testing.assert_array_equal(held, array.reshape(-1))
