"""Memory by the functions of torch's compiler is as good as `torch.empty`'s."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest
import torch
from memory import least_growth

from ndd._tensor import allocation

_CPU = torch.device("cpu")
_TYPES = (
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16", "float32",
    "float64", "complex64",
)  # fmt: skip


@pytest.mark.parametrize("name", _TYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 0, 2), (2, 3, 4)])
def test_every_type_and_shape(name, shape):
    assert all(allocation._place(torch.device(kind))[0] is not None for kind in ("cpu", "cuda"))
    dtype = getattr(torch, name)
    result, expected = allocation.empty(shape, dtype, _CPU), torch.empty(shape, dtype=dtype)
    assert (result.dtype, result.shape, result.stride(), result.device) == (
        expected.dtype, expected.shape, expected.stride(), expected.device,
    )  # fmt: skip
    assert result.zero_().sum() == 0


def test_numbers_of_numpy_are_extents_too():
    assert allocation.empty((np.int64(3),), torch.uint8, _CPU).shape == (3,)
    assert allocation.empty((np.int64(3), np.int64(2)), torch.uint8, _CPU).stride() == (2, 1)


def test_a_torch_without_them_is_asked_as_usual(monkeypatch):
    monkeypatch.setattr(allocation, "_places", {_CPU: (None, None, int)})
    assert allocation.empty((2, 3), torch.uint8, _CPU).shape == (2, 3)


def test_what_they_refuse_is_torchs_to_say(monkeypatch):
    with pytest.raises(RuntimeError, match=r"not enough memory|can't allocate|Storage size"):
        allocation.empty((1 << 60,), torch.uint8, _CPU)


def test_they_are_not_called_while_another_gpu_is_current(monkeypatch):
    """They would make a context there, of 300 to 500 MB."""
    wanted, current, made = torch.device("meta", 1), [0], []
    monkeypatch.setattr(allocation, "_places", {wanted: (lambda *_: made.append(1) or "made", 1, lambda: current[0])})
    assert allocation.empty((2,), torch.uint8, wanted).device.type == "meta"
    assert not made
    current[0] = 1
    assert allocation.empty((2,), torch.uint8, wanted) == "made"


def test_the_interpreter_is_not_let_go_of():
    """With turns of a minute another thread comes on only where this one lets it."""
    turns, ended = [0], threading.Event()

    def other():
        while not ended.is_set():
            turns[0] += 1
            time.sleep(0)

    usual = sys.getswitchinterval()
    thread = threading.Thread(target=other)
    sys.setswitchinterval(60)
    try:
        thread.start()
        while turns[0] < 2:
            time.sleep(1e-3)
        before = turns[0]
        result = [allocation.empty((4096,), torch.float32, _CPU) for _ in range(2000)]
        after = turns[0]
    finally:
        sys.setswitchinterval(usual)
        ended.set()
        thread.join()
    assert len(result) == 2000  # to free them lets go of it
    assert after == before


def test_the_memory_is_given_back():
    def run():
        for _ in range(8):
            allocation.empty((1 << 24,), torch.uint8, _CPU).zero_()

    assert least_growth(run) < 1 << 24
