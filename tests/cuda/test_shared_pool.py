"""Streams that take large blocks from one pool."""

from __future__ import annotations

import contextlib
import threading
from types import SimpleNamespace

import pytest
import torch

import ndd
from ndd._cuda import shared_pool
from ndd._tensor import memory
from ndd._tensor.device import Device


class Block:
    """In place of a tensor on a GPU: where it was allocated, and the streams that use it."""

    def __init__(self, place):
        self.place, self.users = place, []

    def record_stream(self, stream):
        self.users.append(stream)


@pytest.fixture
def places(monkeypatch):
    """The streams on which this thread allocates, the innermost last."""
    result = ["current"]

    @contextlib.contextmanager
    def on_stream(stream, device_id):
        result.append((stream, device_id))
        yield
        result.pop()

    def empty(shape, torch_dtype, device):
        return Block(result[-1])

    monkeypatch.setattr(shared_pool, "on_stream", on_stream)
    monkeypatch.setattr(shared_pool, "empty", empty)
    monkeypatch.setattr(shared_pool, "_owners", lambda device_id: f"pool {device_id}")
    monkeypatch.setattr(memory, "torch_device", lambda device: torch.device("cuda", device))
    monkeypatch.setattr(memory._Allocating, "make", staticmethod(empty))
    monkeypatch.setattr(memory, "allocating", memory._Allocating())  # on leaving the pool it keeps the `empty` of here
    return result


def stream(device_id):
    return SimpleNamespace(device_id=device_id, _torch=f"stream of {device_id}")


def allocate(device, nbytes=1 << 21):
    return memory.device_empty((nbytes // 4,), torch.float32, device)


def test_large_blocks_are_of_the_pool_and_known_to_be_used_by_the_stream(places):
    with shared_pool.taking_from_pool(stream(1)):
        large, small, elsewhere = allocate(1), allocate(1, 1000), allocate(0)
        other_thread = []
        thread = threading.Thread(target=lambda: other_thread.append(allocate(1)))
        thread.start()
        thread.join()
    assert (large.place, large.users) == (("pool 1", 1), ["stream of 1"])
    for block in (small, elsewhere, *other_thread, allocate(1)):
        assert (block.place, block.users) == ("current", [])


def test_it_ends_with_an_error_too(places):
    with pytest.raises(KeyError), shared_pool.taking_from_pool(stream(0)), shared_pool.taking_from_pool(stream(1)):
        raise KeyError
    assert allocate(1).place == "current"


@pytest.mark.gpu
def test_four_streams_keep_what_they_use_at_a_time(cuda):
    """Each writes 64 MB and lets go of it, in turn."""
    device, streams = Device("gpu", 0), [ndd.Stream(device_id=0) for _ in range(4)]
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    for k in range(40):
        own = streams[k % 4]
        with shared_pool.on_stream(own, 0), shared_pool.taking_from_pool(own):
            block = memory.device_empty((1 << 24,), torch.float32, device)
            block.fill_(float(k))
            total = block[:: 1 << 20].sum()
        own.synchronize()
        assert total.item() == 16.0 * k
    assert torch.cuda.memory_reserved() - before <= 3 * 64 << 20
