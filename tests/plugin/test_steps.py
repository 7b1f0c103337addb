"""What a step of an iterator holds."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
from numbers_pipeline import construct, fed, two

import ndd
import ndd.plugin.pytorch as plugin
from ndd import fn

DALI_DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool"]


def test_a_step_is_a_list_of_dicts_of_tensors():
    iterator = plugin.DALIClassificationIterator(two(), reader_name="Reader")
    step = next(iterator)
    assert isinstance(step, list)
    assert list(step[0]) == ["data", "label"]
    data, label = step[0].values()
    assert (data.dtype, label.dtype, tuple(label.shape)) == (torch.float32, torch.int32, (2, 1))
    assert data.is_contiguous()
    assert iter(iterator) is iterator
    assert (iterator.batch_size, iterator.size, iterator._size) == (2, 8, 8)
    assert iterator.output_map == ["data", "label"]
    assert iterator.next()[0]["label"].flatten().tolist() == [3, 4]
    with pytest.raises(TypeError):
        iterator[0]


@pytest.mark.parametrize("name", [*DALI_DTYPES, "uint16", "uint32", "uint64"])
def test_types_and_scalars(our, name):
    values = np.arange(4).astype(name)
    iterator = construct(our, fed([values[:2], values[2:]]))
    steps = [step[0]["label"] for step in iterator]
    assert {s.dtype for s in steps} == {getattr(torch, name)}
    assert [tuple(s.shape) for s in steps] == [(2,), (2,)]
    assert torch.cat(steps).to(torch.int64).tolist() == values.astype(np.int64).tolist()


def test_shapes_may_change_between_batches(our):
    shapes = [(2, 3, 4), (2, 5, 1)]
    for dynamic in (False, True):
        iterator = construct(our, fed([np.ones(s) for s in shapes]), dynamic_shape=dynamic)
        assert [tuple(s[0]["label"].shape) for s in iterator] == shapes


def test_a_short_last_batch_cuts_every_output():
    iterator = plugin.DALIClassificationIterator(
        two(), reader_name="Reader", last_batch_policy=plugin.LastBatchPolicy.PARTIAL
    )
    last = list(iterator)[-1][0]
    assert last["label"].tolist() == [[7]]
    assert last["data"].tolist() == [[70.0]]


def test_tensors_stay_valid_and_may_be_written_to(our):
    source = [np.full((2, 1000), i, np.int32) for i in range(6)]
    iterator = construct(our, fed(source))
    kept = []
    for i, step in enumerate(iterator):
        kept.append(step[0]["label"])
        if i % 2:
            kept[-1] += 100
    del iterator
    gc.collect()
    assert [t.unique().tolist() for t in kept] == [[0], [101], [2], [103], [4], [105]]
    assert [s[0, 0] for s in source] == list(range(6))


def test_no_copy_is_made():
    batch = ndd.batch(np.zeros((2, 8), np.float32))
    (step,) = plugin.DALIGenericIterator(iter([(batch,)]), ["x"])
    assert step[0]["x"].data_ptr() == batch.torch().data_ptr()


RAGGED = [np.arange(n, dtype=np.int32) + 10 * n for n in (2, 0, 3)]


def ragged_pipe():
    return fed([RAGGED, RAGGED], batch_size=3)


def test_ragged_outputs(our):
    with pytest.raises(RuntimeError, match="DALIRaggedIterator"):
        construct(our, ragged_pipe())
    with pytest.raises(RuntimeError, match="ragged"):
        plugin.DALIRaggedIterator(ragged_pipe(), ["x"])
    lists = plugin.DALIRaggedIterator(ragged_pipe(), ["x"], output_types=[plugin.DALIRaggedIterator.SPARSE_LIST_TAG])
    for step in lists:
        assert [t.tolist() for t in step[0]["x"]] == [a.tolist() for a in RAGGED]
    coo = plugin.DALIRaggedIterator(ragged_pipe(), ["x"], output_types=[plugin.DALIRaggedIterator.SPARSE_COO_TAG])
    sparse = next(coo)[0]["x"]
    assert tuple(sparse.shape) == (3, 3)
    assert sparse.to_dense().tolist() == [[20, 21, 0], [0, 0, 0], [30, 31, 32]]


@pytest.mark.oracle
@pytest.mark.parametrize("tag", ["sparse_list", "sparse_coo", "dense"])
def test_ragged_outputs_are_dalis(their, tag):
    batch = [a[:2] if tag == "dense" else a for a in (RAGGED[0], RAGGED[2])]
    result = []
    for library, functions, iterators in ((ndd, fn, plugin), (their.pipelines, their.fn, their.plugin)):
        pipe = fed([batch], library=library, functions=functions)
        result.append(next(iterators.DALIRaggedIterator(pipe, ["x"], output_types=[tag]))[0]["x"])
    ours, theirs = result
    if tag == "sparse_list":
        assert [t.tolist() for t in ours] == [t.tolist() for t in theirs]
    elif tag == "sparse_coo":
        assert ours.coalesce().indices().tolist() == theirs.coalesce().indices().tolist()
        assert ours.to_dense().tolist() == theirs.to_dense().tolist()
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    else:
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("tag", ["sparse_list", "sparse_coo", "dense"])
def test_ragged_partial(one, tag):
    iterator = plugin.DALIRaggedIterator(
        one(),
        ["x"],
        reader_name="Reader",
        output_types=[tag],
        last_batch_policy=plugin.LastBatchPolicy.PARTIAL,
    )
    last = list(iterator)[-1][0]["x"]
    assert len(last) == 1
    assert int(last[0][0]) == 7
