"""The pool of host memory: buffers come again, and are given up when there are too many."""

from __future__ import annotations

import numpy as np

from ndd._tensor import memory
from ndd._tensor.memory import host_empty


def kept():
    return sum(block.nbytes for blocks in memory._free.values() for block, _ in blocks)


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
    monkeypatch.setattr(memory, "_kept", 0)
    for size in range(1, 80):
        some = [host_empty(size << 14, np.uint8) for _ in range(3)]
        del some
        assert kept() <= (10 << 20)
    assert memory._kept == kept() > 0
