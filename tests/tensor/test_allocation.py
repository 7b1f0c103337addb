"""Memory by torch's C functions is as good as `torch.empty`'s."""

from __future__ import annotations

import pytest
import torch
from memory import least_growth

from ndd._tensor import allocation


@pytest.mark.parametrize("name", allocation._TYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 0, 2), (2, 3, 4)])
def test_every_type_and_shape(name, shape):
    make = allocation._by_c()
    assert make is not None
    found, expected = (
        make(shape, getattr(torch, name), torch.device("cpu")),
        torch.empty(shape, dtype=getattr(torch, name)),
    )
    assert (found.dtype, found.shape, found.stride(), found.device) == (
        expected.dtype, expected.shape, expected.stride(), expected.device,
    )  # fmt: skip
    assert found.zero_().sum() == 0


def test_what_the_functions_do_not_know_is_torchs_own(monkeypatch):
    assert allocation.empty((2,), torch.complex64, torch.device("cpu")).dtype == torch.complex64
    monkeypatch.setattr(allocation, "_by_c", lambda: None)
    assert allocation.empty((2, 3), torch.uint8, torch.device("cpu")).shape == (2, 3)


def test_the_memory_is_given_back():
    def run():
        for _ in range(8):
            allocation.empty((1 << 24,), torch.uint8, torch.device("cpu")).zero_()

    assert least_growth(run) < 1 << 24
