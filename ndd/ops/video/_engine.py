"""The optical flow engine of NVIDIA GPUs, through the driver's C interface, version 5.0 (`libnvidia-opticalflow`).

A session serves one size of frames and is cached. All work runs in the order of the call's stream: the engine waits for the
work queued before, and later work waits for the engine.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
from collections.abc import Iterator
from typing import Any

import torch

from ndd._cuda.event import recorded
from ndd._execution.memoize import Memoized

_VERSION = 5 << 4  # 5.0
_OPTICAL_FLOW = 1
_DEVICE_POINTER = 2
_INPUT, _OUTPUT, _HINT = 1, 2, 3
_GRAY8, _SHORT2 = 1, 5
_PERFORMANCE = (5, 10, 20)  # slow, medium, fast
_FRACTION = 32  # vectors have 5 bits after the binary point
_KEPT_SESSIONS = 8

_u32, _pointer = ctypes.c_uint32, ctypes.c_void_p


class _Functions(ctypes.Structure):
    _fields_ = tuple(
        (name, _pointer)
        for name in (
            "create", "init", "create_buffer", "buffer_array", "buffer_pointer", "buffer_strides", "set_streams", "execute",
            "destroy_buffer", "destroy", "last_error", "caps",
        )
    )  # fmt: skip


class _Init(ctypes.Structure):
    _fields_ = (
        ("width", _u32), ("height", _u32), ("out_grid", _u32), ("hint_grid", _u32), ("mode", _u32), ("performance", _u32),
        ("external_hints", _u32), ("cost", _u32), ("private", _pointer), ("disparity", _u32), ("roi", _u32),
        ("direction", _u32), ("global_flow", _u32), ("input_format", _u32),
    )  # fmt: skip


class _Description(ctypes.Structure):
    _fields_ = (("width", _u32), ("height", _u32), ("usage", _u32), ("format", _u32))


class _Strides(ctypes.Structure):
    _fields_ = (("planes", _u32 * 2 * 3), ("count", _u32))


class _Inputs(ctypes.Structure):
    _fields_ = (
        ("frame", _pointer), ("reference", _pointer), ("hints", _pointer), ("no_temporal_hints", _u32), ("padding", _u32),
        ("private", _pointer), ("padding2", _u32), ("roi_count", _u32), ("rois", _pointer),
    )  # fmt: skip


class _Outputs(ctypes.Structure):
    _fields_ = tuple(
        (name, _pointer) for name in ("flow", "cost", "private", "backward", "backward_cost", "global_flow")
    )


class Refused(Exception):
    """The engine, or the driver, cannot do this: the CPU does."""


@functools.cache
def functions() -> _Functions:
    """The driver's functions. `Refused` if the library is missing or older."""
    try:
        library = ctypes.CDLL("libnvidia-opticalflow.so.1")
    except OSError as error:
        raise Refused(f"{error}; containers need NVIDIA_DRIVER_CAPABILITIES with 'video'") from None
    table = _Functions()
    _check("NvOFAPICreateInstanceCuda", library.NvOFAPICreateInstanceCuda(_u32(_VERSION), ctypes.byref(table)))
    return table


def _check(name: str, status: int) -> None:
    if status:
        raise Refused(f"{name} gives status {status}")


@functools.cache
def _function(name: str, gives: Any, *kinds: Any) -> Any:
    return ctypes.CFUNCTYPE(gives, *kinds)(getattr(functions(), name))


def _call(name: str, *arguments: Any, gives: Any = ctypes.c_int) -> Any:
    kinds = [type(a) if isinstance(a, ctypes._SimpleCData) else _pointer for a in arguments]
    result = _function(name, gives, *kinds)(*arguments)
    if gives is ctypes.c_int:
        _check(name, result)
    return result


class _Buffer:
    """Memory of the driver as a tensor `[height, width, ...]`."""

    def __init__(self, session: Any, width: int, height: int, usage: int, device: int):
        vectors = usage != _INPUT
        description = _Description(width, height, usage, _SHORT2 if vectors else _GRAY8)
        self.handle = _pointer()
        _call(
            "create_buffer",
            session, ctypes.byref(description), ctypes.c_int(_DEVICE_POINTER), ctypes.byref(self.handle),
        )  # fmt: skip
        strides = _Strides()
        _call("buffer_strides", self.handle, ctypes.byref(strides))
        address = _call("buffer_pointer", self.handle, gives=ctypes.c_uint64)
        row = strides.planes[0][0]  # the interface calls the pitch of a row the stride in x
        self.__cuda_array_interface__ = {
            "shape": (height, width, 2) if vectors else (height, width),
            "strides": (row, 4, 2) if vectors else (row, 1),
            "typestr": "<i2" if vectors else "|u1",
            "data": (address, False),
            "version": 3,
        }
        self.tensor = torch.as_tensor(self, device=f"cuda:{device}")


class Session:
    """The engine for frames of one size, for one call at a time. Its memory holds one pair of frames and their flow."""

    def __init__(
        self, device: int, height: int, width: int, grid: int, hint_grid: int | None, level: int, context: int
    ):
        self.handle = _pointer()
        self.buffers: list[_Buffer] = []
        self._turn = threading.Lock()
        self._passed: Any = None  # an event; until it a stream may be using the memory
        _call("create", _pointer(context), ctypes.byref(self.handle))
        try:
            init = _Init(
                width=width, height=height, out_grid=grid, hint_grid=hint_grid or 0, mode=_OPTICAL_FLOW,
                performance=_PERFORMANCE[level], external_hints=int(hint_grid is not None), input_format=_GRAY8,
            )  # fmt: skip
            _call("init", self.handle, ctypes.byref(init))
            self.frames = [self._buffer(width, height, _INPUT, device) for _ in range(2)]
            self.flow = self._buffer(-(-width // grid), -(-height // grid), _OUTPUT, device)
            self.hints = None
            if hint_grid is not None:
                self.hints = self._buffer(-(-width // hint_grid), -(-height // hint_grid), _HINT, device)
        except BaseException:
            self.close()
            raise

    def _buffer(self, width: int, height: int, usage: int, device: int) -> _Buffer:
        self.buffers.append(_Buffer(self.handle, width, height, usage, device))
        return self.buffers[-1]

    @contextlib.contextmanager
    def on(self, stream: Any) -> Iterator[None]:
        """In this block, `run` queues on this stream, after the work of other streams on this session."""
        with self._turn:
            if self._passed is not None:
                self._passed.wait(stream._torch)
            _call("set_streams", self.handle, _pointer(stream.handle), _pointer(stream.handle))
            try:
                yield
            finally:
                self._passed = recorded(stream, self._passed)

    def run(self, gray: Any, hints: Any, out: Any, temporal: bool) -> None:
        """Computes the flow of a video: `gray` u8 `[F, H, W]`, `hints` and `out` f32 `[F - 1, h, w, 2]`, all on the GPU."""
        frames, flow = [frame.tensor for frame in self.frames], self.flow.tensor
        pairs = [_Inputs(frame=self.frames[1 - k].handle, reference=self.frames[k].handle) for k in range(2)]
        outputs = _Outputs(flow=self.flow.handle)
        frames[0].copy_(gray[0])
        for i, (frame, vectors) in enumerate(zip(gray[1:], out, strict=True)):
            frames[1 - i % 2].copy_(frame)
            pair = pairs[i % 2]
            pair.no_temporal_hints = int(not temporal or i == 0)
            if self.hints is not None:
                self.hints.tensor.copy_((hints[i] * _FRACTION).round().clamp(-32768, 32767).to(torch.int16))
                pair.hints = self.hints.handle
            _call("execute", self.handle, ctypes.byref(pair), ctypes.byref(outputs))
            torch.mul(flow, 1 / _FRACTION, out=vectors)

    def close(self) -> None:
        """Releases the session and its memory."""
        for buffer in self.buffers:
            _call("destroy_buffer", buffer.handle)
        self.buffers.clear()
        _call("destroy", self.handle)


sessions = Memoized(Session, limit=_KEPT_SESSIONS)


def current_context() -> int:
    """The CUDA context of this thread."""
    context = _pointer()
    if ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(context)) or not context.value:
        raise Refused("there is no CUDA context")
    return context.value
