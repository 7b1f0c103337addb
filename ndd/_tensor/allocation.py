"""`torch.empty` on a GPU without releasing the interpreter.

A loop with lookahead waits 0.5 ms to get the interpreter back, twice for a batch of 64 (see `small_arrays`). Torch has
functions for the code that its compiler generates. They take memory from the same allocator, keep the interpreter, and need
a sixth of the time. A torch that lacks them gets `torch.empty`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def empty(shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
    """An uninitialised, contiguous tensor, of a torch.dtype and on a torch.device."""
    make, wanted = _places.get(device) or _place(device)
    if make is not None:
        try:
            tensor = make(*_extents(shape), dtype)
        except (RuntimeError, TypeError):  # memory may be short: the error of `torch.empty` is clearer
            tensor = None
        # These functions use the current GPU, which is almost always the right one.
        if tensor is not None and (wanted is None or tensor.get_device() == wanted):
            return tensor
    import torch

    return torch.empty(shape, dtype=dtype, device=device)


_places: dict[Any, tuple[Callable[..., Any] | None, int | None]] = {}


def _place(device: Any) -> tuple[Callable[..., Any] | None, int | None]:
    """The function that makes a tensor from extents, strides and a torch.dtype on a torch.device, and the GPU that must come
    out."""
    make: Callable[..., Any] | None
    try:
        from torch._C._dynamo import guards

        make = getattr(guards, f"_empty_strided_{device.type}")
    except (ImportError, AttributeError):
        make = None
    allocator = _places[device] = make, None if device.type == "cpu" else device.index
    return allocator


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
