"""The records of samples on their way to the GPU: a ring buffer for each stream.

A launch over 64 samples needs about 6 kB of records. Through torch's allocators (a pinned block, a device block, a copy) they
cost 12 us of the host's time; here one copy between two long-lived buffers costs 4. Copies and kernels of one stream run in
order, so GPU memory may be overwritten at any time. Pinned memory may be overwritten once the copy that reads it has run, which
an event for each half of the ring shows.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import torch

from ndd._cuda import compile

_BYTES = 1 << 21
_ALIGNED = 256  # alignment of every record array, which kernels may rely on


class Ring:
    """The two buffers of one stream."""

    def __init__(self, stream: Any, nbytes: int = _BYTES):
        pinned = torch.cuda.is_available()
        device = f"cuda:{stream.device_id}" if pinned else "cpu"
        self._torch = stream._torch
        self._handle = stream.handle
        self._half = nbytes // 2
        self._host = torch.empty(nbytes, dtype=torch.uint8, pin_memory=pinned)
        self._host.zero_()  # touched now: otherwise the process would seem to grow page by page, by 3 kB an iteration of a loop
        self._memory = memoryview(self._host.numpy())  # type: ignore[arg-type]
        self._there = torch.empty(nbytes, dtype=torch.uint8, device=device)
        self._source = self._host.data_ptr()
        self._target = self._there.data_ptr()
        self._now, self._used = 0, 0  # the half that is being filled, and its used bytes
        self._read: list[Any] = [None, None]  # by half: the event after the last copy from it
        self._lock = threading.Lock()  # two contexts may work on one stream

    def fits(self, nbytes: int) -> bool:
        """Whether an array of this size fits the ring."""
        return nbytes <= self._half // 4

    def send(self, values: np.ndarray) -> int:
        """Copies bytes, uint8 `[n]`, in the order of the stream. Returns their address on the GPU."""
        nbytes = len(values)
        with self._lock:
            start = self._place(nbytes)
            self._memory[start : start + nbytes] = values.data  # NumPy would release the GIL
            compile.copy_to_gpu(self._target + start, self._source + start, nbytes, self._handle)
        return self._target + start

    def _place(self, nbytes: int) -> int:
        if self._used + nbytes > self._half:  # go on with the other half
            self._read[self._now] = self._torch.record_event()
            self._now, self._used = 1 - self._now, 0
            if self._read[self._now] is not None:
                self._read[self._now].synchronize()
        start = self._now * self._half + self._used
        self._used += -(-nbytes // _ALIGNED) * _ALIGNED
        return start

    def __del__(self) -> None:
        try:
            self._torch.synchronize()  # torch does not know of copies that still read the pinned memory
        except Exception:  # CUDA has shut down already, so nothing reads the memory any more
            pass
