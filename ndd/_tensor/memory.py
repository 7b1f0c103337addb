"""A pool of host memory: a buffer returns to the pool when its last view is freed.

A fresh buffer of 36 MB (64 decoded photographs) costs 9,000 page faults, about 5 ms, at every batch. A buffer is handed out as
a NumPy array whose base is a lease. Views, torch tensors and DLPack capsules keep the lease alive, so memory that a user still
holds is never written again.
"""

from __future__ import annotations

import operator
import os
import threading
from collections import deque
from functools import partial
from typing import Any

import numpy as np
import torch

from ndd._container_limits import memory_limit
from ndd._tensor.allocation import empty
from ndd._tensor.type_guards import is_list, is_tuple

_SMALL = 1 << 15  # below this, malloc's own free lists are as fast as ours
# Bytes. malloc's large blocks begin 16 bytes after a page. An AMD EPYC copies file pages (as `read` does) to addresses 1 to
# 31 bytes after a page 2 to 7 times slower than to other addresses.
_ALIGNMENT = 64
# Bytes kept for reuse: in one size at any time, in all sizes whenever the system is asked for more (otherwise a program whose
# batches grow and shrink would keep some of each). A loop needs what it frees between two batches, and the end of an epoch frees
# two: 16 clips of 16 frames of 720p are 768 MB in blocks of 48 MB. With 256 MB for each size a frame of these spent 0.3 to 1.0 ms
# of its 3 to 6 ms in page faults. A batch of 16 pictures of 12 megapixels and its float32 result have 2.9 GB: with 1 GiB they came
# from the system each time, and were half of the loop's time.
_LEAST_TOTAL = 1 << 30
_SHARE = 4  # of the memory of the machine or the container
# A free block of up to twice the size is taken before the system is asked for one. Readers cut batches into parts of any size:
# with blocks of exactly the size wanted, ten epochs of 20,000 records of 100 kB in batches of 256 keep 425 MB, with this rule
# 212 MB; 4,000 iterations of a loop over photographs keep 32 MB, with it 18 MB.
_CLASSES_UP = 4


def most_free_bytes() -> int:
    """The bytes that the pool may keep."""
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _LEAST_TOTAL
    return max(_LEAST_TOTAL, min(physical, memory_limit() or physical) // _SHARE)


_TOTAL = most_free_bytes()
_Block = tuple[np.ndarray, int]  # memory and its address: asking for the address takes longer than everything else
_free: dict[int, deque[_Block]] = {}


class _Lease:
    """Owns a block while there is any array over it, then returns it.

    A lease may end anywhere in the user's program, and the handler of a signal runs at the next step of Python. If that were a
    step of `__del__`, the handler's exception (Ctrl-C, a time limit) would be printed and lost: 14 of 1,300 times in a loop of
    two operators. So there is no such step: everything that runs is written in C.
    """

    __slots__ = ("__array_interface__", "__weakref__", "give_back")
    __del__ = property(operator.attrgetter("give_back"))

    def __init__(self, block: _Block, nbytes: int, same: deque[_Block]):
        self.give_back = partial(same.append, block)
        self.__array_interface__ = {
            "data": (block[1], False),
            "shape": (nbytes,),
            "typestr": "|u1",
            "version": 3,
        }


def _larger(size: int) -> tuple[_Block, deque[_Block]] | None:
    """A free block of one of the next size classes, and the deque to which it returns."""
    for _ in range(_CLASSES_UP):
        size = _size_class(size + 1)
        same = _free.get(size)
        if same:
            try:
                return same.pop(), same
            except IndexError:  # another thread was faster
                continue
    return None


def _fresh(size: int) -> _Block:
    """A new block from the system. If memory is short, the pool is emptied first."""
    if free_bytes() > _TOTAL:
        _give_up()
    try:
        memory = np.empty(size + _ALIGNMENT, np.uint8)
    except MemoryError:
        _give_up()
        memory = np.empty(size + _ALIGNMENT, np.uint8)
    address = memory.ctypes.data
    shift = -address % _ALIGNMENT
    return memory[shift : shift + size], address + shift


def free_bytes() -> int:
    """The bytes of all free blocks."""
    return sum([size * len(same) for size, same in list(_free.items())])


def _give_up() -> None:
    for same in list(_free.values()):
        same.clear()


def _size_class(nbytes: int) -> int:
    """`nbytes` rounded up to a quarter of a power of two: at most 25 % of a block is unused."""
    quarter = 1 << max(nbytes.bit_length() - 3, 12)
    return -(-nbytes // quarter) * quarter


def host_empty(shape: Any, dtype: Any) -> np.ndarray:
    """An uninitialised C-contiguous array; a large one comes from the pool and is aligned to 64 bytes.

    Raises MemoryError with the number of bytes if there is not enough memory.
    """
    dtype = np.dtype(dtype)
    nbytes = dtype.itemsize
    for extent in shape if is_list(shape) else (shape,):
        nbytes *= int(extent)
    if nbytes < _SMALL:
        try:
            return np.empty(shape, dtype)
        except ValueError:  # no element, but an extent that NumPy has no number for
            raise _no_room(nbytes, shape, dtype) from None
    size = _size_class(nbytes)
    same = _free.get(size)
    if same is None:
        same = _free.setdefault(size, deque(maxlen=_TOTAL // size))
    try:
        block = same.pop()
    except IndexError:
        try:
            block, same = _larger(size) or (_fresh(size), same)
        except (MemoryError, ValueError):  # NumPy's ValueError is for more than 2**63
            raise _no_room(nbytes, shape, dtype) from None
    return np.asarray(_Lease(block, nbytes, same)).view(dtype).reshape(shape)


class _Allocating(threading.local):
    """How this thread allocates results on a GPU: `make(shape, torch_dtype, torch_device)`."""

    make: Any = staticmethod(empty)


allocating = _Allocating()


def _no_room(nbytes: int, shape: Any, dtype: np.dtype) -> MemoryError:
    return MemoryError(f"no room for {nbytes:,} bytes, {dtype} of shape {shape}")


def device_empty(shape: tuple[int, ...], torch_dtype: Any, device: Any) -> Any:
    """An uninitialised torch tensor on a GPU, from torch's caching allocator: on the current stream, unless `allocating` says
    otherwise."""
    return allocating.make(shape, torch_dtype, torch_device(device))


_torch_devices: dict[int | None, Any] = {}


def torch_device(device: Any) -> Any:
    """The torch.device of one of our devices."""
    known = _torch_devices.get(device.device_id)
    if known is None:
        known = torch.device("cpu") if device.device_type == "cpu" else torch.device("cuda", device.device_id)
        _torch_devices[device.device_id] = known
    return known


class _Place:
    __slots__ = ("__array_interface__",)


def memory_at(address: int, extents: Any, dtype: np.dtype) -> np.ndarray:
    """The C-contiguous array at an address, with the `extents` that `np.empty` takes. The caller must keep the memory alive."""
    shape = tuple(map(int, extents)) if is_tuple(extents) else (int(extents),)
    if 0 in shape:
        return np.empty(shape, dtype)
    place = _Place()
    place.__array_interface__ = {"data": (int(address), False), "shape": shape, "typestr": dtype.str, "version": 3}
    return np.asarray(place)
