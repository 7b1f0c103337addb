"""`feed_ndarray` and `to_torch_tensor`."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch

import ndd
from ndd import fn
from ndd.plugin.pytorch import feed_ndarray, to_torch_tensor, torch_utils

NAMES = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool"]
UNSIGNED = ["uint16", "uint32", "uint64"]


def outputs(name="int32", shapes=((2, 3), (2, 3))):
    @ndd.pipeline_def(batch_size=2, prefetch_queue_depth=1)
    def body():
        return fn.external_source(source=lambda i: [np.full(s, i + 1, name) for s in shapes])

    pipe = body()
    return pipe, pipe.run()[0]


def test_tensors_share_memory_and_stay():
    kept = []
    for name in [*NAMES, *UNSIGNED]:
        pipe, result = outputs(name)
        tensor = result[0]
        shared, copied = to_torch_tensor(tensor, copy=False), to_torch_tensor(tensor)
        assert shared.dtype == copied.dtype == getattr(torch, name)
        assert shared.data_ptr() == tensor.data_ptr() != copied.data_ptr(), name
        shared.zero_()
        assert not np.asarray(tensor).any(), name
        assert copied.to(torch.int64).unique().tolist() == [1], name
        pipe.run()
        kept.append(shared)
    del pipe, result, tensor
    gc.collect()
    assert [shared.to(torch.int64).unique().tolist() for shared in kept] == [[0]] * len(kept)
    assert torch_utils.to_torch_tensor is to_torch_tensor


def test_lists_are_refused():
    _, result = outputs()
    with pytest.raises(TypeError, match="as_tensor"):
        to_torch_tensor(result, copy=False)
    with pytest.raises(TypeError, match="expected a tensor of a pipeline, got NoneType"):
        to_torch_tensor(None, copy=False)
    assert tuple(to_torch_tensor(result.as_tensor()).shape) == (2, 2, 3)
    assert to_torch_tensor(ndd.tensor([1, 2])).tolist() == [1, 2]


def test_feeding_an_array():
    _, result = outputs()
    target = torch.zeros((2, 2, 3), dtype=torch.int32)
    assert feed_ndarray(result.as_tensor(), target) is target
    assert target.unique().tolist() == [1]
    item = torch.zeros((2, 3), dtype=torch.int32)
    assert feed_ndarray(result[1], item, cuda_stream=0).sum() == 6
    strided = torch.zeros((3, 2), dtype=torch.int32).t()
    assert feed_ndarray(result[1], strided, cuda_stream=None).sum() == 6


WRONG = [
    (lambda o: o, torch.zeros((2, 2, 3), dtype=torch.int32), AssertionError),
    (lambda o: o[0], np.zeros((2, 3), np.int32), AssertionError),
    (lambda o: o[0], torch.zeros((2, 3)), AssertionError),
    (lambda o: o[0], torch.zeros((3, 2), dtype=torch.int32), AssertionError),
]


@pytest.mark.parametrize(("pick", "target", "error"), WRONG)
def test_what_cannot_be_fed(pick, target, error):
    _, result = outputs()
    with pytest.raises(error):
        feed_ndarray(pick(result), target)


def test_a_stream_is_a_stream():
    _, result = outputs()
    with pytest.raises(TypeError, match="cuda_stream"):
        feed_ndarray(result[0], torch.zeros((2, 3), dtype=torch.int32), cuda_stream="default")


@pytest.mark.oracle
@pytest.mark.parametrize(("pick", "target", "error"), WRONG)
def test_dali_refuses_the_same(pick, target, error):
    dali = pytest.importorskip("nvidia.dali")
    import nvidia.dali.fn as their_fn
    import nvidia.dali.plugin.pytorch as theirs

    @dali.pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def body():
        return their_fn.external_source(source=lambda i: [np.full((2, 3), i + 1, np.int32)] * 2)

    result = body().run()[0]
    with pytest.raises(error):
        theirs.feed_ndarray(pick(result), target)
