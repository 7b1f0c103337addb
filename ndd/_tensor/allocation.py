"""`torch.empty` on a GPU without releasing the interpreter.

Getting the interpreter back takes a loop with lookahead 0.5 ms, twice a batch of 64 (see `small_arrays`). So the memory comes from
the same allocator by functions that torch has for the code which its compiler generates; they also take a sixth of the time.
With a torch that lacks them, `torch.empty` is called.
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
        except (RuntimeError, TypeError):  # if memory is short, for example: the error of `torch.empty` is clearer
            tensor = None
        # These functions use the current GPU, which is almost always the right one.
        if tensor is not None and (wanted is None or tensor.get_device() == wanted):
            return tensor
    import torch

    return torch.empty(shape, dtype=dtype, device=device)


_places: dict[Any, tuple[Callable[..., Any] | None, int | None]] = {}


def _place(device: Any) -> tuple[Callable[..., Any] | None, int | None]:
    """The function that makes a tensor of extents, strides and a torch.dtype on a torch.device, and the GPU that it must be on."""
    make: Callable[..., Any] | None
    try:
        from torch._C._dynamo import guards

        make = getattr(guards, f"_empty_strided_{device.type}")
    except (ImportError, AttributeError):
        make = None
    allocator = _places[device] = make, None if device.type == "cpu" else device.index
    return allocator


_kept: dict[tuple[int, ...], tuple[tuple[int, ...], tuple[int, ...]]] = {}


def _extents(shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Extents and strides, Python's integers."""
    if len(shape) == 1:  # all samples of a ragged batch: another number at every batch
        return (int(shape[0]),), (1,)
    layout = _kept.get(shape)
    if layout is None:
        if len(_kept) > 256:
            _kept.clear()
        strides = [1] * len(shape)
        for axis in range(len(shape) - 1, 0, -1):
            strides[axis - 1] = strides[axis] * max(int(shape[axis]), 1)
        layout = _kept[shape] = tuple(map(int, shape)), tuple(strides)
    return layout
