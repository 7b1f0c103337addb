"""The device of a value: the CPU or one CUDA GPU."""

# This package may use attributes that are private to users, such as `Handle._value`.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import threading
from typing import Any, ClassVar, TypeAlias, Union, overload

import torch

DeviceLike: TypeAlias = Union["Device", str, "torch.device"]

_gpu_count: int | None = None


def gpu_count() -> int:
    """The number of CUDA devices that this process can use; 0 without a driver or with a CPU build of torch."""
    global _gpu_count
    if _gpu_count is None:
        _gpu_count = torch.cuda.device_count()  # asks NVML: CUDA stays untouched, a fork may follow
    return int(_gpu_count or 0)


def _current_number() -> int:
    """torch's current device. Asking does not start CUDA: CPU work does not need it, and a forked child (a worker of a
    DataLoader) could not start it."""
    return torch.cuda.current_device() if torch.cuda.is_initialized() else 0


_NO_GPU = "torch finds no usable CUDA device: `python -m ndd doctor` says what is missing"


class _Local(threading.local):
    def __init__(self) -> None:
        self.stack: list[tuple[Device, Any]] = []  # and torch's scope on a GPU that was not current


class Device:
    """A device by name: "cpu", "gpu" (the current one), "gpu:1"; "cuda" means "gpu".

    Usable as a context manager: inside, "gpu" without a number means this device, for torch as well.

    Args:
        name: "cpu" or "gpu", with a number "gpu:1"; "cuda" means "gpu".
        device_id: the number of the GPU, where the name has none; default: torch's current one.

    >>> import ndd
    >>> ndd.Device("cpu")
    Device(device_type='cpu')

    Raises ValueError for an unknown type, a number that does not exist, or a number given twice.
    """

    CPU: ClassVar[Device]
    _local = _Local()

    def __init__(self, name: str, device_id: int | None = None):
        kind, colon, number = name.partition(":")
        if colon:
            if device_id is not None:
                raise ValueError(f"Invalid device name: {name!r} has a number, and device_id={device_id} is given too")
            try:
                device_id = int(number)
            except ValueError:
                raise ValueError(f"Invalid device name: {name!r}") from None
        kind = "gpu" if kind == "cuda" else kind
        if kind not in ("cpu", "gpu"):
            raise ValueError(f"Invalid device type: {kind}. Expected 'cpu' or 'gpu'")
        if device_id is not None:
            _check_number(kind, device_id)
        self.device_type = kind
        self.device_id = Device.default_device_id(kind) if device_id is None else device_id

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Device) and self.device_type == other.device_type and self.device_id == other.device_id
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    def __str__(self) -> str:
        return self.device_type if self.device_id is None else f"{self.device_type}:{self.device_id}"

    def __repr__(self) -> str:
        number = "" if self.device_id is None else f", device_id={self.device_id}"
        return f"Device(device_type={self.device_type!r}{number})"

    def __reduce__(self):
        return Device, (str(self),)

    @staticmethod
    def current() -> Device:
        """The innermost `with Device(...)` of this thread; without one the current GPU, or the CPU if there is no GPU."""
        stack = Device._local.stack
        if stack:
            return stack[-1][0]
        return Device("gpu") if gpu_count() else Device.CPU

    @staticmethod
    def default_device_id(device_type: str) -> int | None:
        """The number that a bare "gpu" stands for now: torch's current device; None for the CPU.

        RuntimeError for "gpu" where no CUDA device can be used.

        Args:
            device_type: "cpu" or "gpu".

        Raises ValueError for an unknown type of device, RuntimeError for "gpu" without a GPU.
        """
        if device_type == "cpu":
            return None
        if device_type != "gpu":
            raise ValueError(f"Invalid device type: {device_type}")
        if not gpu_count():
            raise RuntimeError(f"A GPU is requested, but {_NO_GPU}")
        return _current_number()

    @staticmethod
    def type_from_dlpack(dev_type: Any) -> str:
        """ "cpu" or "gpu" for a DLPack device type.

        Args:
            dev_type: the number of the type, 1 for the CPU and 2 for CUDA.

        Raises ValueError for a type of device that is neither CPU nor CUDA.
        """
        kinds = {1: "cpu", 2: "gpu"}
        if int(dev_type) not in kinds:
            raise ValueError(f"Unsupported device type: {dev_type}")
        return kinds[int(dev_type)]

    @staticmethod
    def from_dlpack(dlpack_device: Any) -> Device:
        """The device of an object that has `__dlpack_device__`.

        Args:
            dlpack_device: any object that has `__dlpack_device__`, such as a torch tensor.

        Raises ValueError for memory that is neither a CPU's nor a CUDA GPU's.
        """
        kind, number = dlpack_device.__dlpack_device__()
        name = Device.type_from_dlpack(kind)
        return Device(name, None if name == "cpu" else int(number))

    def _torch_scope(self) -> Any:
        """torch's scope on this GPU, entered; None if it is torch's current one already."""
        if self.device_type != "gpu" or self.device_id == _current_number() or not torch.cuda.is_available():
            return None
        scope: Any = torch.cuda.device(self.device_id)  # leaving it makes no context on the previous GPU
        scope.__enter__()
        return scope

    def __enter__(self) -> Device:
        scope = self._torch_scope()
        Device._local.stack += [(self, scope)]  # not append(): after a call the handler of a signal may raise
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _, scope = Device._local.stack.pop()
        if scope is not None:
            scope.__exit__(exc_type, exc_value, traceback)


def current_gpu() -> int | None:
    """The number of `Device.current()`, None for the CPU. Calls of operators use it: making the object costs them time."""
    stack = Device._local.stack
    if stack:
        return stack[-1][0].device_id
    return _current_number() if gpu_count() else None


def _check_number(kind: str, device_id: int) -> None:
    limit = 0 if kind == "cpu" else gpu_count()
    if not 0 <= device_id < limit:
        hint = "the CPU has no number" if kind == "cpu" else f"this machine has gpu:0 to gpu:{limit - 1}"
        if kind == "gpu" and not limit:
            hint = _NO_GPU
        raise ValueError(f"Invalid device id: {device_id} for device type {kind}: {hint}")


Device.CPU = Device("cpu")


@overload
def device(obj: DeviceLike, id: int | None = None) -> Device: ...
@overload
def device(obj: None, id: int | None = None) -> None: ...
def device(obj: Any, id: int | None = None) -> Any:
    """A `Device` from a Device, a name with an optional number, or a torch.device. None stays None.

    Args:
        obj: a `Device`, a name such as "gpu:1", a torch.device, or None.
        id: the number of the GPU, where the name has none.

    Raises TypeError for an object that names no device, ValueError for an unknown type, a GPU that is not there, and an index
    beside a Device, RuntimeError for "gpu" without a GPU.

    >>> import ndd, torch
    >>> ndd.device(torch.device("cpu")) == ndd.Device("cpu")
    True
    """
    if obj is None:
        return None
    if isinstance(obj, str):
        return Device.CPU if obj == "cpu" and id is None else Device(obj, id)
    if isinstance(obj, Device) or (type(obj).__module__ == "torch" and type(obj).__name__ == "device"):
        if id is not None:
            raise ValueError(f"Cannot specify id when passing a {type(obj).__name__} instance")
        if isinstance(obj, Device):
            return obj
        return Device("gpu" if obj.type == "cuda" else obj.type, obj.index)
    raise TypeError(f"Cannot convert {type(obj)} to Device")
