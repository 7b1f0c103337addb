"""Host memory that is used again: a buffer goes back to a pool when the last view of it dies.

A fresh buffer of 36 MB (64 decoded photographs) costs 9,000 page faults, about 5 ms, at every batch. Buffers here
are handed out as NumPy arrays whose base is a lease; views, torch tensors and DLPack capsules keep the lease alive,
so nothing that a user still holds is ever written again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._tensor.allocation import empty

_SMALL = 1 << 15  # below this, malloc's own free lists are as fast as ours
_LIMIT = 1 << 28  # bytes kept for reuse in blocks of one size
# Bytes. Memory of malloc's own begins 16 bytes behind a page: an AMD EPYC copies file pages to places 1 to 31 bytes behind
# theirs (as `read` does) 2 to 7 times slower than to others.
_ALIGNMENT = 64
_TOTAL = 1 << 30  # and of all sizes: a program whose batches grow and shrink would else keep some of each

_Block = tuple[np.ndarray, int]  # and its address: to ask for that takes longer than all else
_free: dict[int, list[_Block]] = {}
_kept = 0  # bytes, about: threads count without a lock, and every time all is given up it is right again


class _Lease:
    """Owns a block while any array over it lives."""

    __slots__ = ("__array_interface__", "__weakref__", "block")

    def __init__(self, block: _Block, nbytes: int):
        self.block = block
        self.__array_interface__ = {
            "data": (block[1], False),
            "shape": (nbytes,),
            "typestr": "|u1",
            "version": 3,
        }

    def __del__(self) -> None:
        if _free is None or not hasattr(self, "block"):  # interpreter exit; Ctrl-C when it was made
            return
        global _kept
        block = self.block
        size = block[0].nbytes
        if _kept + size > _TOTAL:
            _free.clear()
            _kept = 0
        same = _free.setdefault(size, [])
        if len(same) * size < _LIMIT:
            same.append(block)
            _kept += size


def _size_class(nbytes: int) -> int:
    """`nbytes` rounded up to a quarter of a power of two: at most 25 % of a block is unused."""
    quarter = 1 << max(nbytes.bit_length() - 3, 12)
    return -(-nbytes // quarter) * quarter


def host_empty(shape: Any, dtype: Any) -> np.ndarray:
    """An uninitialised C-contiguous array; when it is large from the pool, 64 bytes aligned.

    Raises MemoryError, with the number of bytes, where there is not so much memory.
    """
    dtype = np.dtype(dtype)
    nbytes = dtype.itemsize
    for extent in shape if isinstance(shape, tuple | list) else (shape,):
        nbytes *= int(extent)
    if nbytes < _SMALL:
        return np.empty(shape, dtype)
    global _kept
    size = _size_class(nbytes)
    try:
        block = _free[size].pop()
        _kept -= size
    except (KeyError, IndexError):
        try:
            memory = np.empty(size + _ALIGNMENT, np.uint8)
        except (MemoryError, ValueError):  # NumPy's ValueError is for more than 2**63
            raise MemoryError(f"no room for {nbytes:,} bytes, {dtype} of shape {shape}") from None
        address = memory.ctypes.data
        shift = -address % _ALIGNMENT
        block = memory[shift : shift + size], address + shift
    return np.asarray(_Lease(block, nbytes)).view(dtype).reshape(shape)


def device_empty(shape: tuple[int, ...], torch_dtype: Any, device: Any) -> Any:
    """An uninitialised torch tensor on a GPU, from torch's caching allocator on the current stream."""
    return empty(shape, torch_dtype, torch_device(device))


def torch_device(device: Any) -> Any:
    """The torch.device of one of our devices."""
    import torch

    return torch.device("cpu") if device.device_type == "cpu" else torch.device("cuda", device.device_id)
