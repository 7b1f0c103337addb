"""CUDA events made by the driver, for places where torch's events would release the GIL (see `driver`)."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import torch

from ndd._cuda import driver
from ndd._cuda.cupy_module import cupy

_NO_TIMES = 2  # CU_EVENT_DISABLE_TIMING


class Event:
    """An event for `torch.cuda.Stream.wait_event` and `record_event`, in place of a `torch.cuda.Event`."""

    __slots__ = ("_handle", "device_id")

    def __init__(self, device_id: int) -> None:
        """An event of the GPU that is current."""
        self._handle = 0
        self.device_id = device_id
        handle = ctypes.c_void_p()
        driver.call("cuEventCreate", ctypes.addressof(handle), _NO_TIMES, device_id=device_id)
        self._handle = handle.value

    def record(self, stream: Any) -> None:
        """Records the event after all work queued on a torch stream so far."""
        driver.call("cuEventRecord", self._handle, stream.cuda_stream, device_id=self.device_id)

    def wait(self, stream: Any) -> None:
        """Makes all later work on a torch stream wait for the event."""
        driver.call("cuStreamWaitEvent", stream.cuda_stream, self._handle, 0, device_id=self.device_id)

    def query(self) -> bool:
        """Whether the GPU has passed the event."""
        return driver.is_done("cuEventQuery", self._handle, device_id=self.device_id)

    def synchronize(self) -> None:
        """Waits for the GPU to pass the event. Other threads keep running."""
        cupy().cuda.runtime.eventSynchronize(self._handle)

    def __del__(self) -> None:
        if self._handle:
            try:
                driver.call("cuEventDestroy_v2", self._handle, device_id=self.device_id)
            except Exception:  # the process is exiting, and the driver is already gone
                pass


def recorded(stream: Any, event: Any = None) -> Any:
    """An event recorded after all work queued on one of our streams. It is `event` itself, if that belongs to the stream's
    GPU."""
    return recorded_on(stream._torch, stream.device_id, event)


def recorded_on(stream: Any, device_id: int, event: Any = None) -> Any:
    """The same for a torch stream of this GPU."""
    if event is None or event.device_id != device_id:
        there = torch.cuda.current_device() == device_id
        with contextlib.nullcontext() if there else torch.cuda.device(device_id):
            event = Event(device_id)
    event.record(stream)
    return event
