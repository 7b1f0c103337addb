"""The pool of host memory: buffers come again, and are given up when there are too many."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from ndd._tensor import memory
from ndd._tensor.memory import free_bytes, host_empty


def test_a_buffer_comes_again():
    first = host_empty((1000, 1000), np.float32)
    address = first.ctypes.data
    view = first[10:]
    del first
    other = host_empty(10**6, np.float32)
    assert other.ctypes.data != address  # a view is alive
    del view
    assert host_empty((10**6,), np.float32).ctypes.data == address


def test_memory_that_is_kept_has_a_limit(monkeypatch):
    monkeypatch.setattr(memory, "_TOTAL", 10 << 20)
    monkeypatch.setattr(memory, "_free", {})
    for size in range(1, 80):
        some = [host_empty(size << 14, np.uint8) for _ in range(3)]
        assert free_bytes() <= (10 << 20)
        del some
    assert free_bytes() > 0


@pytest.mark.parametrize(("limit", "gib"), [(2**63 - 4096, 16), (16 << 30, 4), (1 << 30, 1), (None, 16)])
def test_the_limit_follows_the_memory_of_machine_and_container(monkeypatch, limit, gib):
    monkeypatch.setattr(memory, "memory_limit", lambda: limit)
    monkeypatch.setattr("os.sysconf", lambda name: 4096 if name == "SC_PAGE_SIZE" else 16 << 20)
    assert memory.most_free_bytes() == gib << 30


def test_what_is_kept_makes_room_for_another_size(monkeypatch):
    monkeypatch.setattr(memory, "_free", {})
    kept_ones = [host_empty(1 << 20, np.uint8) for _ in range(3)]
    del kept_ones
    assert free_bytes() >= 3 << 20
    wanted, empty = 2 << 20, np.empty

    def of_a_small_machine(size, dtype):
        if size + free_bytes() > 4 << 20:
            raise MemoryError
        return empty(size, dtype)

    monkeypatch.setattr(np, "empty", of_a_small_machine)
    assert host_empty(wanted, np.uint8).nbytes == wanted
    with pytest.raises(MemoryError, match="8,388,608 bytes"):
        host_empty(8 << 20, np.uint8)


def test_a_larger_buffer_that_waits_is_taken_before_a_new_one(monkeypatch):
    """And goes back to its own size."""
    monkeypatch.setattr(memory, "_free", {})
    large = host_empty(2 << 20, np.uint8)
    address = large.ctypes.data
    del large
    small = host_empty(1 << 20, np.uint8)
    assert small.ctypes.data == address
    assert free_bytes() == 0
    del small
    assert free_bytes() == 2 << 20
    tiny = host_empty((1 << 20) - (1 << 18), np.uint8)  # less than half of it would be in use
    assert tiny.ctypes.data != address
    assert free_bytes() == 2 << 20
    assert host_empty(2 << 20, np.uint8).ctypes.data == address


def test_no_step_of_python_runs_where_a_buffer_ends(monkeypatch):
    """There the handler of a signal would run, and what it raises would be lost."""
    monkeypatch.setattr(memory, "_free", {})  # a block of another size might wait there
    some, steps = host_empty((1000, 1000), np.float32), []
    before = free_bytes()
    sys.setprofile(lambda frame, event, _: steps.append((event, frame.f_code.co_name)))
    try:
        some = None
    finally:
        sys.setprofile(None)
    assert some is None
    assert free_bytes() == before + (4 << 20)
    assert [name for event, name in steps if event == "call"] == []


def test_two_large_buffers_come_again(monkeypatch):
    """What an operator made, and what the next one made of it."""
    monkeypatch.setattr(memory, "_free", {})
    size = 160 << 20
    for _ in range(2):
        first, second = host_empty(size, np.uint8), host_empty(size, np.uint8)
        del first, second
        assert free_bytes() == 2 * size


def test_a_batch_of_large_buffers_comes_again(monkeypatch):
    """16 clips of 720p: what a loop over videos lets go of where an epoch ends."""
    monkeypatch.setattr(memory, "_free", {})
    size, result = 44_236_800, []

    def counted(shape, dtype, empty=np.empty):
        result.append(shape)
        return empty(shape, dtype)

    monkeypatch.setattr(np, "empty", counted)
    for _ in range(3):
        clips = [host_empty(size, np.uint8) for _ in range(16)]
        del clips
    assert len(result) == 16
    assert free_bytes() == 16 * (48 << 20)


def test_more_than_all_that_may_be_kept_of_one_size(monkeypatch):
    monkeypatch.setattr(memory, "_TOTAL", 1 << 30)
    monkeypatch.setattr(memory, "_free", {})
    many = [host_empty(100 << 20, np.uint8) for _ in range(16)]
    del many
    assert (1 << 30) - (112 << 20) < free_bytes() <= 1 << 30
    large = host_empty((1 << 30) + 1, np.uint8)
    del large
    assert free_bytes() <= 1 << 30
