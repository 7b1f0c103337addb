"""Ranges of files read directly into GPU memory: GPUDirect Storage through kvikio, on machines that have it.

A DMA engine writes the range to the GPU, bypassing the CPU and the page cache, and outside the order of any stream. So the
memory belongs to a stream of its own that never waits: torch's allocator reuses the memory only after all streams that read it
have passed their reads.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import torch

from ndd._cuda.scope import on_stream
from ndd._execution.memoize import Memoized
from ndd._execution.stream import Stream
from ndd._tensor import Batch, Device, Store, Tensor
from ndd._tensor.dtype import torch_dtype
from ndd._tensor.memory import device_empty

_PAGE = 4096  # GPUDirect copies whole pages: ranges that begin elsewhere go through a bounce buffer


class Range(NamedTuple):
    """Bytes of a file. `handle` is the open descriptor from which the header was read."""

    path: str
    handle: int
    offset: int
    size: int


class Landed:
    """A sample on a GPU in the place of an array of a record: its bytes as a u8 tensor, their element type and shape, and the
    stream that owns the memory."""

    stands_for_array = True
    __slots__ = ("bytes", "device", "dtype", "ndim", "shape", "stream")

    def __init__(self, memory: Any, dtype: np.dtype, shape: tuple[int, ...], device: Device, stream: Stream):
        self.bytes, self.dtype, self.shape, self.device, self.stream = memory, dtype, shape, device, stream
        self.ndim = len(shape)


def usable(reader: str) -> bool:
    """Whether files are read by GPUDirect: kvikio is installed and finds the driver.

    The environment variable `NDD_GPUDIRECT=0` forbids it. `NDD_GPUDIRECT=1` has kvikio read in any case, also in its
    compatibility mode, where it copies through memory of the CPU; RuntimeError if kvikio cannot be imported then.
    """
    wish = os.environ.get("NDD_GPUDIRECT", "")
    if wish not in ("", "0", "1"):
        raise RuntimeError(f"{reader}: the environment variable NDD_GPUDIRECT: expected 0, 1 or nothing, got {wish!r}")
    if wish == "0":
        return False
    try:
        kvikio = _kvikio()
        return wish == "1" or (
            kvikio.cufile_driver.get("is_gds_available") and not kvikio.defaults.is_compat_mode_preferred()
        )
    except Exception as error:  # it loads several libraries, and a missing one does not raise ImportError
        if wish == "1":
            raise RuntimeError(
                f"{reader}: NDD_GPUDIRECT=1 wants kvikio, which cannot be used ({type(error).__name__}: {error}): "
                "pip install kvikio-cu13 (or -cu12)"
            ) from error
        return False


def land(pieces: Sequence[Range | np.ndarray], device: Device) -> tuple[list[Any], Stream]:
    """Copies ranges of files, and C-contiguous arrays, to a GPU: u8 tensors, or the errors of unreadable ranges; and
    the stream that owns their memory. Waits until all are there. MemoryError if the GPU has no room."""
    sizes = [p.nbytes if isinstance(p, np.ndarray) else p.offset % _PAGE + p.size for p in pieces]
    rooms = [-(-size // _PAGE) * _PAGE for size in sizes]
    number = device.device_id or 0
    stream = _streams(number)
    with on_stream(stream, number):
        try:
            memory = device_empty((sum(rooms),), torch.uint8, device)
        except torch.OutOfMemoryError as error:
            raise MemoryError(str(error)) from error
        slots = [room[:size] for room, size in zip(memory.split(rooms), sizes, strict=True)]
        begun = [_begun(piece, slot) for piece, slot in zip(pieces, slots, strict=True)]
        landed_pieces = [_ended(*transfer) for transfer in zip(pieces, slots, begun, strict=True)]
        stream.synchronize()  # for copies of arrays: nothing else is ever queued there
    return landed_pieces, stream


def _begun(piece: Range | np.ndarray, slot: Any) -> Any:
    """A file and the future of reading its range into `slot`, from the start of its first page; or an error. An array is
    copied."""
    if isinstance(piece, np.ndarray):
        return slot.copy_(torch.from_numpy(piece.reshape(-1).view(np.uint8)))
    try:
        file = _kvikio().CuFile(piece.path)
    except Exception as error:
        return error
    try:
        if not os.path.sameopenfile(file.fileno(), piece.handle):
            raise OSError(errno.ESTALE, "The file was replaced while it was read", piece.path)
        return file, file.pread(slot, len(slot), piece.offset - piece.offset % _PAGE)
    except Exception as error:
        file.close()
        return error


def _ended(piece: Range | np.ndarray, slot: Any, begun: Any) -> Any:
    """The requested bytes when they have arrived, or an OSError."""
    if isinstance(piece, np.ndarray):
        return slot
    if isinstance(begun, tuple):
        file, future = begun
        try:
            done, lead = future.get(), piece.offset % _PAGE
            if done == len(slot):
                return slot[lead:]
            wanted = f"expected {piece.size} bytes at {piece.offset}, got {max(done - lead, 0)}"
            return OSError(errno.EIO, f"The file ends too early ({wanted})", piece.path)
        except Exception as error:
            begun = error
        finally:
            file.close()
    return begun if isinstance(begun, OSError) else OSError(errno.EIO, f"GPUDirect: {begun}", piece.path)


def landed(value: Tensor | Batch) -> Any:
    """A value whose samples are `Landed` as a value on their GPU; any other value unchanged."""
    store = value._value()
    samples: Any = store.parts or [None]
    if not isinstance(samples[0], Landed):
        return value
    kind = torch_dtype(store.dtype)
    there = Store(
        store.dtype,
        store.layout,
        samples[0].device,
        store.shapes,
        parts=[sample.bytes.view(kind).view(sample.shape) for sample in samples],
        batched=store.batched,
        source_info=store.source_info,
    )
    there.stream, there.dropped = samples[0].stream._torch, store.dropped
    return type(value)._of_store(there)


def _kvikio() -> Any:
    """kvikio, with the modules that this file uses."""
    kvikio = import_module("kvikio")
    import_module("kvikio.cufile_driver")
    import_module("kvikio.defaults")
    return kvikio


_streams = Memoized(lambda number: Stream(device_id=number))
