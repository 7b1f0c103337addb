"""Devices and element types as objects."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch

import ndd


def test_names(two_gpus):
    assert ndd.Device("gpu:0") == ndd.Device("gpu") == ndd.Device("cuda") == ndd.Device("gpu", 0)
    assert ndd.Device("gpu:1") != ndd.Device("gpu:0") != ndd.Device("cpu")
    assert (str(ndd.Device("gpu:1")), str(ndd.Device("cpu"))) == ("gpu:1", "cpu")
    assert repr(ndd.Device("gpu:1")) == "Device(device_type='gpu', device_id=1)"
    assert repr(ndd.Device("cpu")) == "Device(device_type='cpu')"
    assert ndd.device(torch.device("cuda", 1)) == ndd.Device("gpu:1")
    assert len({ndd.Device("gpu"), ndd.Device("gpu:0"), ndd.Device("cpu")}) == 2


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("gpu:0", 0), "invalid device name"),
        (("gpu:x",), "invalid device name"),
        (("cpu:0",), "invalid device id"),
        (("cpu", 99), "invalid device id"),
        (("gpu:99",), "invalid device id"),
        (("gpu", -1), "invalid device id"),
        (("tpu",), "invalid device type"),
        (("",), "invalid device type"),
    ],
)
@pytest.mark.drawn(2)
def test_wrong_names(emulated_gpu, arguments, text):
    with pytest.raises(ValueError, match=f"(?i){text}"):
        ndd.Device(*arguments)


def test_conversions():
    assert ndd.device(None) is None
    assert ndd.device("cpu") == ndd.device(ndd.Device("cpu")) == ndd.device(torch.device("cpu")) == ndd.Device("cpu")
    with pytest.raises(ValueError, match="id"):
        ndd.device(ndd.Device("cpu"), 0)
    with pytest.raises(TypeError):
        ndd.device(3)
    assert pickle.loads(pickle.dumps(ndd.Device("cpu"))) == copy.copy(ndd.Device("cpu")) == ndd.Device("cpu")


def test_without_a_gpu():
    from ndd._tensor.device import gpu_count

    if gpu_count():
        pytest.skip("there is a GPU")
    for attempt in (lambda: ndd.Device("gpu"), lambda: ndd.tensor([1]).gpu()):
        with pytest.raises(RuntimeError, match="doctor"):
            attempt()
    for attempt in (
        lambda: ndd.Device("gpu:9999"),
        lambda: ndd.tensor([1], device="gpu:0"),
        lambda: ndd.tensor(1).gpu(0),
    ):
        with pytest.raises(ValueError, match=r"(?i)invalid device id.*doctor"):  # as DALI says of a number
            attempt()
    with pytest.raises(ValueError, match="num_threads"):
        ndd.ThreadPool(-1)
    assert ndd.Device.current() == ndd.Device("cpu")
    assert ndd.get_default_stream() is None
    assert ndd.EvalContext.current().cuda_stream is None
    with pytest.raises(RuntimeError):
        ndd.Stream()


def test_current_device_nests(two_gpus):
    assert ndd.Device.current() == ndd.Device("gpu:0")
    with ndd.Device("cpu"):
        assert ndd.Device.current() == ndd.Device("cpu")
        with ndd.Device("gpu:1"):
            assert ndd.Device.current() == ndd.Device("gpu:1")
        assert ndd.Device.current() == ndd.Device("cpu")


def test_moving_values(two_gpus):
    t = ndd.tensor([[1, 2]], layout="HW")
    assert t.cpu() is t
    g = t.gpu()
    assert (g.device, g.dtype, g.layout, g.shape) == (ndd.Device("gpu:0"), t.dtype, "HW", (1, 2))
    assert g.gpu() is g
    assert g.gpu(1).device == ndd.Device("gpu:1")
    assert g.gpu(1).cpu().torch().tolist() == [[1, 2]]
    assert t.to_device("cpu", force_copy=True) is not t
    b = ndd.batch([[1, 2, 3], [4]]).gpu()
    assert [s.cpu().torch().tolist() for s in b] == [[1, 2, 3], [4]]
    assert ndd.batch([[1], [2]], device="gpu").device == ndd.Device("gpu:0")
    assert ndd.as_batch([ndd.tensor([1]).gpu(1), ndd.tensor([2])]).device == ndd.Device("gpu:1")
    assert ndd.batch(b, device="cpu").shape == [(3,), (1,)]
    for dtype in (ndd.bfloat16, ndd.bool, ndd.float16, ndd.InterpType):
        x = ndd.tensor([1, 0], dtype=dtype)
        assert x.gpu().cpu().torch().tolist() == x.torch().tolist()
        assert x.gpu().dtype is dtype


def test_pickles_of_gpu_values_come_back_on_the_cpu(emulated_gpu):
    again = pickle.loads(pickle.dumps(ndd.batch([[1, 2], [3]]).gpu() + 1))
    assert again.device == ndd.Device("cpu")
    assert [s.torch().tolist() for s in again] == [[2, 3], [4]]


def test_operators_follow_their_inputs(two_gpus):
    x = ndd.tensor(np.arange(12, dtype=np.uint8).reshape(2, 2, 3), layout="HWC")
    assert ndd.flip(x).device == ndd.Device("cpu")
    assert ndd.flip(x.gpu(1)).device == ndd.Device("gpu:1")
    assert ndd.flip(x, device="gpu").device == ndd.Device("gpu:0")
    assert ndd.flip(x.gpu(), device="cpu").device == ndd.Device("cpu")
    with ndd.Device("gpu:1"):
        assert ndd.flip(x, device="gpu").device in (ndd.Device("gpu:1"), ndd.Device("gpu:0"))
    np.testing.assert_array_equal(np.asarray(ndd.flip(x.gpu()).cpu()), np.asarray(ndd.flip(x)))
    with pytest.raises(ValueError, match=r"(?i)cpu and gpu|gpu and cpu"):
        x.gpu() + x


def test_element_types():
    assert ndd.dtype("u8") is ndd.dtype(np.uint8) is ndd.dtype(np.dtype("u1")) is ndd.dtype(torch.uint8) is ndd.uint8
    assert ndd.dtype(ndd.types.FLOAT16) is ndd.float16
    assert (ndd.float16.exponent_bits, ndd.float16.significand_bits, ndd.float16.bytes) == (5, 10, 2)
    assert (ndd.bfloat16.exponent_bits, ndd.bfloat16.significand_bits) == (8, 7)
    assert (ndd.float64.exponent_bits, ndd.float64.significand_bits) == (11, 52)
    assert ndd.int8.exponent_bits is None
    assert ndd.bfloat16.type_id is None
    assert repr(ndd.int32) == "DType(kind=Kind.signed, bits=32)"
    for name in ("int", "half", "f33", "float31"):
        with pytest.raises(ValueError):
            ndd.dtype(name)
    assert ndd.dtype(float) is ndd.dtype("float32") is ndd.float32
    assert (ndd.dtype(bool), ndd.dtype(int)) == (ndd.bool, ndd.int32)
    for wrong in (None, np.complex64, "U5", object()):
        with pytest.raises((TypeError, ValueError)):
            ndd.dtype(wrong)


@pytest.mark.oracle
def test_element_types_equal_dali(dali):
    for name in ("u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "f32", "f64", "bool", "bfloat16"):
        ours, theirs = ndd.dtype(name), dali.dtype(name)
        for fact in ("bits", "bytes", "exponent_bits", "significand_bits"):
            assert getattr(ours, fact) == getattr(theirs, fact), f"{name}.{fact}"
        assert str(ours) == str(theirs)
        assert repr(ours) == repr(theirs)
        assert ours.kind.name == theirs.kind.name
        if theirs.type_id is not None:
            assert int(ours.type_id) == int(theirs.type_id)
            assert ndd.dtype(theirs.type_id) is ours
