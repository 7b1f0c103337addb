"""`torch.empty` on a GPU without letting go of the interpreter.

To get it back takes a loop with lookahead 0.5 ms, twice a batch of 64 (see `small_arrays`). So the memory comes from the same
allocator by the C functions that torch has for models compiled ahead of time (`torch/csrc/inductor/aoti_torch/c/shim.h`); a
torch without them is asked as usual.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

_TYPES = (
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16", "float32", "float64",
)  # fmt: skip


def empty(shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
    """An uninitialised, contiguous tensor, of a torch.dtype and on a torch.device."""
    import torch

    make = _by_c()
    found = None if make is None else make(shape, dtype, device)
    # Where that is refused, because memory is short for example, torch has the better words.
    return torch.empty(shape, dtype=dtype, device=device) if found is None else found


@functools.cache
def _by_c() -> Callable[[tuple[int, ...], Any, Any], Any] | None:
    """`empty` by the C functions, which gives None if it fails; None if they are not there."""
    import torch

    name = "torch_cpu.dll" if sys.platform == "win32" else "libtorch_cpu.so"
    try:
        library = ctypes.PyDLL(os.path.join(os.path.dirname(str(torch.__file__)), "lib", name))
        make = library.aoti_torch_empty_strided
        types = {getattr(torch, t): getattr(library, f"aoti_torch_dtype_{t}")() for t in _TYPES if hasattr(torch, t)}
        devices = {"cpu": library.aoti_torch_device_type_cpu(), "cuda": library.aoti_torch_device_type_cuda()}
        owned = torch._C._aoti.alloc_tensors_by_stealing_from_void_ptrs
    except (OSError, AttributeError):
        return None
    pointer, number = ctypes.c_void_p, ctypes.c_int32
    make.argtypes, make.restype = [ctypes.c_int64, pointer, pointer, number, number, number, pointer], number
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.argtypes, capsule.restype = [pointer, pointer, pointer], ctypes.py_object
    places: dict[Any, tuple[int, int]] = {}  # of the devices

    def by_c(shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
        kind, handle = types.get(dtype), pointer()
        if kind is None:
            return None
        place = places.get(device)
        if place is None:
            place = places[device] = devices[device.type], device.index or 0
        extents, strides = _steps(shape)
        made = make(len(shape), extents, strides, kind, *place, ctypes.addressof(handle))
        return None if made else owned([capsule(handle.value, None, None)])[0]

    there, usual = by_c((1,), torch.uint8, torch.device("cpu")), torch.empty(1)
    # Its sister, for one tensor, gives objects that are never freed.
    return by_c if sys.getrefcount(there) == sys.getrefcount(usual) else None


_one = struct.pack("q", 1)
_pack = struct.Struct("q").pack


def _steps(shape: tuple[int, ...]) -> tuple[bytes, bytes]:
    """Extents and strides as C has them, int64."""
    if len(shape) == 1:  # all samples of a ragged batch: another number at every batch
        return _pack(shape[0]), _one
    found = _kept.get(shape)
    if found is None:
        if len(_kept) > 256:
            _kept.clear()
        strides = [1] * len(shape)
        for axis in range(len(shape) - 1, 0, -1):
            strides[axis - 1] = strides[axis] * max(int(shape[axis]), 1)
        found = _kept[shape] = np.array(shape, np.int64).tobytes(), np.array(strides, np.int64).tobytes()
    return found


_kept: dict[tuple[int, ...], tuple[bytes, bytes]] = {}
