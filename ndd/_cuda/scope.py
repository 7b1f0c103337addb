"""Sets torch's current device and stream, and waits for memory that another stream writes."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch

from ndd._tensor import Store


class on_stream:
    """Makes torch allocate and copy on `stream` of GPU `device_id`: a context manager (torch's two cost 25 us).

    It calls the functions below `torch.cuda.set_stream` and `current_stream`, which identify a stream by three numbers. Making and
    comparing stream objects would take three times as long as everything else.
    """

    __slots__ = ("_before", "_device_id", "_ours", "_there")

    def __init__(self, stream: Any, device_id: int):
        self._ours = stream.place or _place(stream)
        self._device_id = device_id

    def __enter__(self) -> None:
        functions = _functions()
        self._before = self._there = functions.current(functions.device())
        if self._before != self._ours:
            if self._before[1] != self._device_id:
                self._there = functions.current(self._device_id)
            _set(functions, self._ours)  # and its device

    def __exit__(self, *exception: Any) -> None:
        if self._before != self._ours:
            functions = _functions()
            _set(functions, self._there)
            if self._there is not self._before:
                functions.back_to(self._before[1])


class _Functions(NamedTuple):
    device: Any
    current: Any
    set: Any
    back_to: Any  # makes the previous GPU current; `set` would create a context there, which takes half a gigabyte


@functools.cache
def _functions() -> _Functions:
    """torch's internal functions, or the same through its public ones."""
    try:
        c = torch._C
        return _Functions(c._cuda_getDevice, c._cuda_getCurrentStream, c._cuda_setStream, c._cuda_maybeExchangeDevice)
    except AttributeError:

        def current(device: int) -> tuple[int, int, int]:
            return _numbers(torch.cuda.current_stream(device))

        def set_stream(**numbers: int) -> None:
            torch.cuda.set_stream(torch.cuda.Stream(**numbers))

        return _Functions(torch.cuda.current_device, current, set_stream, torch.cuda.set_device)


def _set(functions: _Functions, place: tuple[int, int, int]) -> None:
    functions.set(stream_id=place[0], device_index=place[1], device_type=place[2])


def _place(stream: Any) -> tuple[int, int, int]:
    stream.place = _numbers(stream._torch)
    return stream.place


def _numbers(stream: Any) -> tuple[int, int, int]:
    return stream.stream_id, stream.device_index, stream.device_type


def wait_for(store: Store, stream: Any) -> None:
    """Makes `stream` wait for pending writes to `store`, and tells the allocator that `stream` reads it."""
    ours = stream._torch
    elsewhere = store.stream is not ours and (store.stream is None or store.stream != ours)
    if elsewhere and store.stream is not None:
        ours.wait_stream(store.stream)
    if store.ready is not None:
        ours.wait_event(store.ready)
    if elsewhere:
        for tensor in store.owners():
            tensor.record_stream(ours)
