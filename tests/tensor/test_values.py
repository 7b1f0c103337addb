"""Making values, against DALI: element types, layouts, copies and views, errors; then what DALI has not."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
import torch
from compare import check_same

import ndd
from ndd import types

RNG = np.random.default_rng(7)
F64 = np.array([2.2, 2.5, -1.5, 300.7, -0.5])

# What both libraries are given, as the arguments of `tensor`.
TENSORS = {
    "int": (5,),
    "float": (5.5,),
    "bool": (True,),
    "big": (2**31,),
    "too big": (2**40,),
    "negative too big": (-(2**31) - 1,),
    "list": ([1, 2, 3],),
    "nested": ([[1, 2], [3, 4]],),
    "floats": ([1.5, 2],),
    "bools": ([True, False],),
    "mixed": ([1, True],),
    "tuple": ((1, 2),),
    "empty": ([],),
    "ragged list": ([[1, 2], [3]],),
    "string": ("text",),
    "strings": (["a", "b"],),
    "complex": (1j,),
    "none": (None,),
    "none in list": ([1, None],),
    "numpy f64": (F64,),
    "numpy scalar": (np.float64(2.5),),
    "numpy u16": (np.uint16(3),),
    "numpy int64": (np.arange(3),),
    "numpy f16": (np.arange(3, dtype=np.float16),),
    "numpy bool": (np.array([True, False]),),
    "numpy complex": (np.zeros(2, complex),),
    "numpy strings": (np.array(["a"]),),
    "numpy 0d": (np.array(7, np.uint8),),
    "numpy empty": (np.zeros((0, 3), np.float32),),
    "torch": (torch.arange(4),),
    "torch f16": (torch.zeros(2, dtype=torch.float16),),
    "enum": (types.INTERP_LINEAR,),
    "enums": ([types.RGB, types.GRAY],),
    "f64 to i32": (F64, np.int32),
    "f64 to u8": (F64, np.uint8),
    "list to u8": ([2.7, 300, -1], "u8"),
    "list to f16": ([1, 2], "f16"),
    "float to i32": (2.7, "i32"),
    "int to bool": (3, "bool"),
    "f64 to f32": (np.array([0x1000001], np.float64), np.float32),
    "torch dtype": ([1, 2], torch.float64),
    "unknown name": ([1], "int"),
    "layout": (np.zeros((2, 3, 3), np.uint8), None, None, "HWC"),
    "layout too long": (np.zeros((2, 3), np.uint8), None, None, "HWC"),
    "layout of scalar": (5, None, None, "H"),
    "empty layout": (np.zeros((2, 3)), None, None, ""),
    "layout no text": ([1], None, None, 3),
    "device": ([1], None, "cpu"),
    "unknown device": ([1], None, "tpu"),
    "cpu with a number": ([1], None, "cpu:0"),
}
BATCHES = {
    "ints": ([1, 2, 3],),
    "lists": ([[1, 2], [3]],),
    "arrays": ([np.zeros((2, 3), np.uint8), np.ones((1, 3), np.uint8)],),
    "mixed types": ([np.zeros(2, np.uint8), np.zeros(2, np.float32)],),
    "int then float": ([1, 2.5],),
    "float then int": ([2.5, 1],),
    "ranks differ": ([np.zeros((2, 3)), np.zeros(2)],),
    "array": (np.arange(12).reshape(3, 4),),
    "torch": (torch.arange(6).reshape(2, 3),),
    "vector": (np.arange(3, dtype=np.float32),),
    "scalar": (np.float32(3),),
    "number": (3,),
    "text": ("abc",),
    "none": (None,),
    "none inside": ([1, None],),
    "empty": ([],),
    "empty with type": ([], np.int32),
    "empty with layout": ([], np.int32, None, "HW"),
    "generator": ("generator",),
    "dtype": ([[1.7, 2.2], [3.5]], np.int32),
    "layout": (np.zeros((2, 3, 4, 3), np.uint8), None, None, "HWC"),
    "layout too long": (np.zeros((2, 3)), None, None, "HWC"),
    "enums": ([types.INTERP_LINEAR, types.INTERP_NN],),
    "torch list": ([torch.zeros(2), torch.ones(3)],),
    "range": (range(4),),
}


def theirs_of(arguments):
    """The same arguments with DALI's own enums."""
    from nvidia.dali import types as dali_types

    def convert(value):
        if isinstance(value, list):
            return [convert(v) for v in value]
        name = type(value).__name__
        return getattr(dali_types, name)(int(value)) if name.startswith("DALI") else value

    return tuple(convert(a) for a in arguments)


def outcome(make, arguments):
    """What came out: facts and numbers, or the type of the error."""
    if isinstance(arguments[0] if arguments else None, str) and arguments[0] == "generator":
        arguments = ((np.full(k, k) for k in (1, 2)),)
    try:
        value = make(*arguments).evaluate()
    except Exception as error:
        return type(error)
    facts = [type(value).__name__, str(value.dtype), value.ndim, value.layout, value.shape, str(value.device)]
    samples = list(value) if hasattr(value, "batch_size") else [value]
    if str(value.dtype).endswith("Type"):
        return facts
    return [*facts, [np.asarray(s).tolist() for s in samples]]


# DALI drops the imaginary part without a word; `None` raises one type from `batch` and another from `as_batch`; samples get the
# type of the first one, whatever becomes of their numbers (see test_mixed_types.py).
DIFFERENT = {"complex", "numpy complex", "none-as_batch"} | {
    f"{name}-{make}" for name in ("mixed types", "int then float") for make in ("batch", "as_batch")
}


@pytest.mark.oracle
@pytest.mark.parametrize("make", ["tensor", "as_tensor"])
@pytest.mark.parametrize("name", TENSORS)
def test_tensors_equal_dali(dali, name, make):
    ours = outcome(getattr(ndd, make), TENSORS[name])
    theirs = outcome(getattr(dali, make), theirs_of(TENSORS[name]))
    assert ours == theirs or (name in DIFFERENT and isinstance(ours, type))


@pytest.mark.oracle
@pytest.mark.parametrize("make", ["batch", "as_batch"])
@pytest.mark.parametrize("name", BATCHES)
def test_batches_equal_dali(dali, name, make):
    ours = outcome(getattr(ndd, make), BATCHES[name])
    theirs = outcome(getattr(dali, make), theirs_of(BATCHES[name]))
    assert ours == theirs or f"{name}-{make}" in DIFFERENT


@pytest.mark.oracle
@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize("layout", [None, "NHWC", "XY"])
@pytest.mark.parametrize("own", [None, "HWC"])
@pytest.mark.parametrize("ragged", [False, True])
def test_a_batch_as_one_tensor_equals_dali(dali, pad, layout, own, ragged):
    arrays = [RNG.integers(0, 9, (2, 3 + ragged * i, 3)).astype(np.uint8) for i in range(3)]
    results = []
    for package in (ndd, dali):
        b = package.batch(arrays, layout=own)
        results.append(outcome(lambda p=package, b=b: p.as_tensor(b, layout=layout, pad=pad), ()))
    if own is None and layout is not None and not ragged:  # DALI forgets the layout here, and does not check it
        assert results[0] is ValueError if layout == "XY" else results[0][3] == layout
    else:
        assert results[0] == results[1]


@pytest.mark.parametrize("make", [ndd.tensor, ndd.batch])
def test_the_plain_functions_copy(make):
    array = np.arange(6.0).reshape(2, 3)
    value = make(array)
    array[:] = -1
    first = value if make is ndd.tensor else value.select(0)
    assert np.asarray(first).reshape(-1)[0] == 0


@pytest.mark.parametrize("make", [ndd.as_tensor, ndd.as_batch, ndd.Tensor, ndd.Batch])
def test_as_and_the_classes_share(make):
    array = np.arange(6.0).reshape(2, 3)
    value = make(array)
    array[0, 0] = -1
    first = value.select(0) if isinstance(value, ndd.Batch) else value
    assert np.asarray(first).reshape(-1)[0] == -1
    converted = make(array, dtype=np.float32)
    array[0, 0] = -2
    first = converted.select(0) if isinstance(converted, ndd.Batch) else converted
    assert np.asarray(first).reshape(-1)[0] == -1


def test_a_list_of_values_is_shared_sample_by_sample():
    a, b = ndd.tensor([1.0, 2.0]), ndd.tensor([3.0])
    shared = ndd.as_batch([a, b])
    assert np.shares_memory(np.asarray(shared.select(0)), np.asarray(a))
    assert not np.shares_memory(np.asarray(ndd.batch([a, b]).select(0)), np.asarray(a))
    assert ndd.as_tensor(a) is a
    assert ndd.as_batch(shared) is shared


def test_an_operator_on_shared_memory_reads_it_at_the_call():
    array = np.zeros(4, np.float32)
    with ndd.EvalMode.deferred:
        out = ndd.as_tensor(array) + 1
    array[:] = 9
    assert np.asarray(out).tolist() == [1, 1, 1, 1]


def test_strided_memory_is_a_view():
    base = np.arange(24).reshape(4, 6)
    for view in (base[:, ::2], base.T, base[::-1], base[1:3, 2:4]):
        value = ndd.as_tensor(view)
        np.testing.assert_array_equal(np.asarray(value), view)
        assert np.shares_memory(np.asarray(value), base)
        np.testing.assert_array_equal(np.asarray(ndd.flip(ndd.as_tensor(view, layout="HW"))), view[:, ::-1])
        np.testing.assert_array_equal(value.torch().numpy(), view)


def test_byte_order_and_read_only_memory():
    big = np.arange(3, dtype=">i4")
    assert np.asarray(ndd.tensor(big)).tolist() == [0, 1, 2]
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    out = ndd.as_tensor(frozen).torch()
    out[0] = 5
    assert frozen[0] == 0


def test_source_info_and_layout_travel():
    b = ndd.batch(np.zeros((2, 4, 4, 3), np.uint8), layout="HWC")
    b._value().source_info = ["a", "b"]
    assert b.select(1).source_info == "b"
    assert b.select([1]).source_info == ["b"]
    assert b.slice[0].source_info == ["a", "b"]
    assert b.slice[0].layout == "WC"
    assert pickle.loads(pickle.dumps(b)).source_info == ["a", "b"]


@pytest.mark.parametrize("dtype", [d for d in vars(ndd).values() if isinstance(d, ndd.DType)], ids=str)
def test_every_type_pickles_copies_and_prints(dtype):
    value = ndd.tensor([[1, 0], [1, 1]], dtype=dtype, layout="HW")
    for again in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        assert (again.dtype, again.layout, again.shape) == (dtype, "HW", (2, 2))
        assert repr(again) == repr(value)
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert f"dtype={dtype}" in repr(value)
    assert value.torch().shape == (2, 2)
    assert ndd.cast(value, dtype=ndd.float32).torch().tolist() == [[1, 0], [1, 1]]


def test_a_pickle_holds_the_value_alone():
    big = ndd.tensor(np.zeros((1000, 1000), np.uint8))
    corner = big[:10, :10]
    assert len(pickle.dumps(corner)) < 1000
    strided = pickle.loads(pickle.dumps(ndd.as_tensor(np.arange(10)[::-1])))
    assert np.asarray(strided).tolist() == list(range(9, -1, -1))
    pending = pickle.loads(pickle.dumps(ndd.batch([1, 2]) + 1))
    assert [t.item() for t in pending] == [2, 3]


def test_empty_batches_pickle():
    empty = pickle.loads(pickle.dumps(ndd.batch(np.zeros((2, 4, 4, 3), np.uint8), layout="HWC").select([])))
    assert (empty.batch_size, empty.ndim, empty.layout, empty.dtype) == (0, 3, "HWC", ndd.uint8)


def test_forged_pickles_are_refused():
    batch, item = ndd.batch([np.zeros((2, 3), np.uint8), np.ones((1, 3), np.uint8)], layout="HW"), ndd.tensor([1, 2])
    dtype, ndim, layout, arrays, batched, info = batch.__getstate__()
    assert ndd.Batch.__new__(ndd.Batch).__setstate__((dtype, ndim, layout, arrays, batched, info)) is None
    for state in (
        None, (), (dtype,), (dtype, arrays), ("u8", ndim, layout, arrays, batched, info),
        (ndd.float32, ndim, layout, arrays, batched, info), (dtype, 3, "HWC", arrays, batched, info),
        (dtype, ndim, "HWC", arrays, batched, info), (dtype, ndim, layout, arrays, False, info),
        (dtype, ndim, layout, [arrays[0], arrays[0][0]], batched, info), (dtype, ndim, layout, None, batched, info),
        (dtype, ndim, layout, [arrays[0][:, ::2]], batched, info), (dtype, ndim, layout, [b"abc"], batched, info),
        (dtype, ndim, layout, arrays, batched, ["one"]), (dtype, ndim, layout, arrays, None, info),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="Batch: the pickled state is not a value of ndd"):
            ndd.Batch.__new__(ndd.Batch).__setstate__(state)
    swapped = [np.array([1, 2], np.dtype("i4").newbyteorder())]
    with pytest.raises(ValueError, match="Tensor: the pickled state is not a value of ndd: expected sample 0 "):
        ndd.Tensor.__new__(ndd.Tensor).__setstate__((item.dtype, 1, None, swapped, False, None))


def test_deepcopy_shares_nothing():
    value = ndd.as_batch([np.zeros(3), np.zeros(2)])
    again = copy.deepcopy(value)
    np.asarray(value.select(0))[0] = 5
    assert np.asarray(again.select(0))[0] == 0


def test_handles_are_read_from_many_threads():
    value = ndd.cast(ndd.batch([np.full(1000, i) for i in range(8)]), dtype=ndd.float32)
    result, errors = [], []

    def read():
        try:
            result.append(sum(float(np.asarray(t).sum()) for t in value))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert result == [28000.0] * 8


def test_size_and_bytes():
    t = ndd.tensor(np.zeros((2, 3), np.float16))
    assert (t.size, t.itemsize, t.nbytes, t.ndim) == (6, 2, 12, 2)
    assert ndd.tensor(3).size == 1
    assert ndd.tensor(np.zeros((0, 4))).size == 0


def test_what_a_value_is_not():
    t, b = ndd.tensor([1, 2]), ndd.batch([[1, 2], [3]])
    for value in (t, b):
        with pytest.raises(TypeError):
            hash(value)
        assert bool(value) is True
    with pytest.raises(TypeError, match=r"batch_size"):
        len(b)
    with pytest.raises(TypeError, match=r"select.*slice"):
        b[0]
    with pytest.raises(ValueError, match="2 elements"):
        t.item()
    assert ndd.tensor([7]).item() == 7
    assert [x.item() for x in t] == [1, 2]
    with pytest.raises(TypeError, match="0-d"):
        iter(ndd.tensor(1))


@pytest.mark.parametrize(
    ("size", "error"), [(-1, ValueError), (-7, ValueError), (2.5, TypeError), ("2", TypeError), (None, TypeError)]
)
@pytest.mark.parametrize("sample", [[1.0, 2.0], ndd.tensor([1, 2])])
def test_no_such_broadcast(sample, size, error):
    with pytest.raises(error, match=r"Batch\.broadcast: batch_size must (not be negative|be an integer), got"):
        ndd.Batch.broadcast(sample, size)


def test_broadcast():
    assert ndd.Batch.broadcast([1.0, 2.0], 0).batch_size == 0
    assert ndd.Batch.broadcast([1.0, 2.0], np.int64(2)).batch_size == 2
    b = ndd.Batch.broadcast([1.0, 2.0], 3)
    assert b.shape == [(2,)] * 3
    assert (b + ndd.batch([1.0, 2.0, 3.0])).torch().tolist() == [[2, 3], [3, 4], [4, 5]]
    shared = ndd.tensor([5])
    assert np.shares_memory(np.asarray(ndd.Batch.broadcast(shared, 2).select(1)), np.asarray(shared))


def test_select_and_tensors():
    b = ndd.batch([[0], [1], [2], [3]])
    assert b.select(-1).item() == 3
    assert [t.item() for t in b.select([3, 0, 0])] == [3, 0, 0]
    assert [t.item() for t in b.select(slice(1, None, 2))] == [1, 3]
    assert b.select(...) is b
    assert len(b.tensors) == 4
    assert [t.item() for t in b.tensors[1:3]] == [1, 2]
    assert b.tensors[[2, 1]].as_batch().shape == [(1,)] * 2
    assert [t.item() for t in b.tensors.tolist()] == [0, 1, 2, 3]
    assert ndd.tensor(b.tensors).shape == (4, 1)
    for wrong, error in ((4, IndexError), (-5, IndexError), ("a", TypeError), (1.5, TypeError), ([9], IndexError)):
        with pytest.raises(error):
            b.select(wrong)
    assert ndd.Tensor(batch=b, index_in_batch=2).item() == 2


def test_pending_values_may_be_selected_without_waiting():
    with ndd.EvalMode.deferred:
        b = ndd.cast(ndd.batch([[1.5], [2.5]]), dtype=ndd.int32)
        item = b.select(1)
        assert (item.dtype, item.ndim) == (ndd.int32, 1)
        assert b._pending.state == 0
        assert item.item() == 3


LAYOUTS = [(make, layout) for make in ("batch", "as_batch") for layout in ("A", "ABC", "AB", "")]


@pytest.mark.parametrize(("make", "layout"), [*LAYOUTS, ("tensor", ""), ("as_tensor", "")])
def test_another_layout_for_a_batch_as_dali(dali, make, layout):
    check_same(dali, lambda m: getattr(m, make)(m.batch([np.zeros((2, 3))] * 2, layout="HW"), layout=layout))
