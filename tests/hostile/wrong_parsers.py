"""Parsers with the mistakes that `bounds_checked` is to find."""

from __future__ import annotations

from typing import Any

import numpy as np
from hostile.bounds_checked import Parser, fenced

from ndd._compiled.jit import kernel
from ndd._cpu.element_copies import copy_bytes


@kernel
def _behind(data, at):
    return data[at]


@kernel
def _copied_too_far(source, target, count):
    copy_bytes(target.ctypes.data, source.ctypes.data, np.uintp(count))


def overrun(count: int) -> Any:
    return _behind(np.zeros(count, np.uint8), count)


def beyond_a_fence(count: int) -> Any:
    return _copied_too_far(np.zeros(count + 1, np.uint8), fenced(count), count + 1)


def much_memory(count: int) -> Any:
    return np.ones(1 << 32, np.uint8)


def slow(count: int) -> Any:
    while True:
        count += 1


def right(count: int) -> Any:
    return _behind(np.zeros(count, np.uint8), count - 1)


PARSERS: dict[str, Parser] = {
    "overrun": Parser(lambda rng: 10, overrun),
    "fenced": Parser(lambda rng: 10, beyond_a_fence),
    "memory": Parser(lambda rng: 10, much_memory),
    "hang": Parser(lambda rng: 10, slow),
    "right": Parser(lambda rng: 10, right),
}
