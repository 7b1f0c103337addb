"""CUDA streams: handles, the default stream of the process and the current one of a thread."""

from __future__ import annotations

import threading
from typing import Any

import torch

from ndd._tensor.device import Device, gpu_count


class _Unset:
    def __repr__(self) -> str:
        return "<unset>"


_UNSET = _Unset()


class Stream:
    """A CUDA stream. `Stream()` makes one; `Stream(stream=s)` wraps a torch stream, an integer handle or anything
    with `__cuda_stream__`. A stream equals its handle and the torch stream that it wraps.

    Raises RuntimeError where there is no usable GPU, TypeError for anything but a stream, ValueError for a stream of another
    GPU.

    Args:
        stream: a torch stream, an integer handle, or an object with `__cuda_stream__`; without it a new stream is made.
        device_id: the number of the GPU; default: torch's current one.
    """

    create_new = _UNSET

    def __init__(self, *, stream: Any = _UNSET, device_id: int | None = None):
        number = Device.default_device_id("gpu") if device_id is None else device_id
        if stream is _UNSET:
            self._torch = torch.cuda.Stream(device=number)
        elif isinstance(stream, Stream):
            self._torch = stream._torch
        elif isinstance(stream, torch.cuda.Stream):
            if device_id is not None and stream.device.index != device_id:
                raise ValueError(f"The stream is on GPU {stream.device.index}, device_id={device_id} is given")
            self._torch = stream
        else:
            self._torch = torch.cuda.ExternalStream(_handle_of(stream), device=number)
        self._device_id = self._torch.device.index
        self.place: Any = (
            None  # the key by which torch's C functions know the stream, filled in on demand (`_cuda/scope.py`)
        )
        self.ring: Any = None  # objects that launches on this stream keep alive
        self.large: Any = None

    @property
    def handle(self) -> int:
        """The `cudaStream_t` as an integer."""
        return self._torch.cuda_stream

    @property
    def device_id(self) -> int:
        """The GPU the stream belongs to."""
        return self._device_id

    def synchronize(self) -> None:
        """Waits until everything queued on the stream has finished."""
        self._torch.synchronize()

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def __int__(self) -> int:
        return self.handle

    def __eq__(self, value: object) -> bool:
        if isinstance(value, Stream):
            return self.handle == value.handle and self.device_id == value.device_id
        if isinstance(value, int):
            return self.handle == value
        return getattr(value, "cuda_stream", None) == self.handle

    def __ne__(self, value: object) -> bool:
        return not self == value

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Stream(handle={self.handle:#x}, device_id={self.device_id})"

    __str__ = __repr__


def _handle_of(stream: Any) -> int:
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("cuda_stream", "handle", "ptr"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    try:
        return int(stream)
    except (TypeError, ValueError):
        raise TypeError(f"Cannot take a CUDA stream from {type(stream).__name__}") from None


def stream(*, stream: Any = _UNSET, device_id: int | None = None) -> Any:
    """A `Stream`: a new one, or a wrapper of `stream`. A `Stream` is returned unchanged, None stays None.

    Args:
        stream: a `Stream`, a torch stream, an integer handle, an object with `__cuda_stream__`, or None; without it a
            new stream is made.
        device_id: the number of the GPU; default: torch's current one.

    Raises RuntimeError without a GPU, TypeError for anything but a stream, ValueError for a stream of another GPU.

    >>> import ndd
    >>> ndd.stream(stream=None) is None  # a new one, `ndd.stream()`, needs a GPU
    True
    """
    if stream is None:
        return None
    if isinstance(stream, Stream):
        if device_id is not None and device_id != stream.device_id:
            raise ValueError(f"The stream is on GPU {stream.device_id}, device_id={device_id} is given")
        return stream
    return Stream(stream=stream, device_id=device_id)


class _Current(threading.local):
    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}


_local = _Current()
_default: dict[int, Stream] = {}


def _number(device_id: int | None) -> int:
    return Device.default_device_id("gpu") if device_id is None else device_id  # type: ignore[return-value]


def chosen_stream(device_id: int) -> Stream | None:
    """The stream for a GPU that `set_current_stream` has set on this thread, otherwise the stream of `set_default_stream`."""
    return _local.streams.get(device_id) or _default.get(device_id)


def get_default_stream(device_id: int | None = None) -> Stream | None:
    """The stream that `set_default_stream` has set, else None. Threads with a current stream of their own do not use it.

    Args:
        device_id: the number of the GPU; default: torch's current one.
    """
    return _default.get(_number(device_id)) if gpu_count() else None


def set_default_stream(cuda_stream: Any, /, device_id: int | None = None) -> None:
    """Sets the stream for operators of all threads that have no current one; None restores the streams of the contexts.

    The default contexts of threads follow it. Other contexts keep the stream that was set when they were made.

    Args:
        cuda_stream: as for `stream`; None restores the streams of the contexts.
        device_id: the number of the GPU; default: the stream's GPU.

    Raises RuntimeError without a GPU, TypeError for anything but a stream, ValueError for a stream of another GPU.
    """
    if cuda_stream is None:
        _default.pop(_number(device_id), None)
        return
    wrapped = stream(stream=cuda_stream, device_id=device_id)
    _default[wrapped.device_id] = wrapped


def set_current_stream(cuda_stream: Any, /) -> None:
    """Sets the stream for operators of this thread; None restores the default. See `set_default_stream`.

    Args:
        cuda_stream: as for `stream`; None restores the default stream.

    Raises TypeError for anything but a stream, ValueError for a stream of another GPU.
    """
    if cuda_stream is None:
        _local.streams.clear()
        return
    wrapped = stream(stream=cuda_stream)
    _local.streams[wrapped.device_id] = wrapped
