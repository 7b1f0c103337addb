"""`torch.empty` on a GPU without releasing the interpreter.

A loop with lookahead waits 0.5 ms to get the interpreter back, twice for a batch of 64 (see `small_arrays`). Torch has
functions for the code that its compiler generates. They take memory from the same allocator, keep the interpreter, and need
a sixth of the time. A torch that lacks them gets `torch.empty`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def empty(shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
    """An uninitialised, contiguous tensor, of a torch.dtype and on a torch.device."""
    make, wanted, current = _places.get(device) or _place(device)
    # These functions use the current GPU, which is almost always the right one. On another one they would make a context.
    if make is not None and (wanted is None or current() == wanted):
        try:
            return make(*_extents(shape), dtype)
        except (RuntimeError, TypeError):  # memory may be short: the error of `torch.empty` is clearer
            pass
    return torch.empty(shape, dtype=dtype, device=device)


_Place = tuple[Callable[..., Any] | None, int | None, Callable[[], int]]
_places: dict[Any, _Place] = {}


def _place(device: Any) -> _Place:
    """The function that makes a tensor from extents, strides and a torch.dtype on a torch.device; the GPU that must be current,
    and the function that tells which one is."""
    make: Callable[..., Any] | None
    try:
        from torch._C._dynamo import guards  # a torch to come may lack it

        make = getattr(guards, f"_empty_strided_{device.type}")
    except (ImportError, AttributeError):
        make = None
    number = None if device.type == "cpu" else device.index
    # A tenth of the time of the public function.
    current = getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)  # pyright: ignore[reportPrivateUsage]
    place = _places[device] = make, number, current
    return place


_layouts: dict[tuple[int, ...], tuple[tuple[int, ...], tuple[int, ...]]] = {}


def _extents(shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Extents and strides as Python integers."""
    if len(shape) == 1:  # a ragged batch in one buffer: each batch has another size
        return (int(shape[0]),), (1,)
    layout = _layouts.get(shape)
    if layout is None:
        if len(_layouts) > 256:
            _layouts.clear()
        strides = [1] * len(shape)
        for axis in range(len(shape) - 1, 0, -1):
            strides[axis - 1] = strides[axis] * max(int(shape[axis]), 1)
        layout = _layouts[shape] = tuple(map(int, shape)), tuple(strides)
    return layout
