"""The GPU path on the CPU, without the GPU: its memory is CPU memory, and its launches go elsewhere.

A real GPU of the machine is not used, and torch says that there is none: host memory is not pinned, and no address in the
process is one of a GPU. The tests run the kernels as C++ behind it (`tests/emulated_gpu.py`), `python -m ndd compile` only
takes their texts.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import sys
from collections.abc import Callable
from typing import Any


class NullTorchStream:
    """Stands for a torch.cuda.Stream: everything has already happened."""

    def __init__(self, number: int):
        import torch

        self.device = torch.device("cuda", number)
        self.cuda_stream = 0x1000 + id(self) % 0x1000000
        self.synchronized = 0

    def wait_stream(self, other: Any) -> None:
        """Nothing to wait for."""

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for."""

    def record_event(self, event: Any = None) -> NullTorchStream:
        """Waits for an event that has already happened."""
        return self

    def query(self) -> bool:
        """It has happened."""
        return True

    def synchronize(self) -> None:
        """Counts its calls."""
        self.synchronized += 1


class TextsOnly:
    """A GPU that runs nothing, but records what it should run."""

    count = 1

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}  # kernel text -> a kernel of it

    def function(self, text: str, name: str, device_id: int) -> Any:
        """In place of `_cuda.compile.function`."""
        self.texts.setdefault(text, name)
        return name

    def launch(self, *_: Any) -> None:
        """In place of `_cuda.compile.launch`."""

    def empty(self, shape: Any, torch_dtype: Any, device: Any) -> Any:
        """In place of `_tensor.memory.device_empty`."""
        import torch

        return torch.zeros(shape, dtype=torch_dtype)


def pretend(gpu: Any, put: Callable[[Any, str, Any], None] = setattr) -> None:
    """Puts `gpu`'s `function`, `launch` and `empty` in place of the real ones, and `gpu.count` devices.

    `put(where, name, value)` sets an attribute; a test gives one that can be undone. Else the process is spoilt for work
    on a GPU.
    """
    import torch

    # By import_module: some packages export functions under the names of their files.
    compile, event, scope, context, stream, schedule, device, memory, tensor = (
        importlib.import_module(f"ndd.{name}")
        for name in (
            "_cuda.compile", "_cuda.event", "_cuda.scope", "_execution.context", "_execution.stream", "_execution.schedule",
            "_tensor.device", "_tensor.memory", "_tensor.tensor",
        )
    )  # fmt: skip
    for name in ("launch", "transfer"):
        importlib.import_module(f"ndd._cuda.{name}")  # so that their names are replaced too
    put(torch.cuda, "is_available", lambda: False)  # code that asks would allocate on a real GPU, or wait for one
    put(device, "_gpu_count", gpu.count)
    put(context._local, "defaults", {})
    _replace_everywhere(
        put,
        {
            memory.torch_device: lambda _: torch.device("cpu"),
            memory.device_empty: gpu.empty,
            scope.on_stream: lambda *_: contextlib.nullcontext(),
            scope.wait_for: lambda *_: None,
            event.recorded: lambda stream, event=None: stream._torch,
            tensor.hand_over: lambda *_: None,
            schedule.order_after: lambda *_: None,
        },
    )
    put(compile, "function", gpu.function)
    put(compile, "launch", gpu.launch)
    for name in ("copy_to_gpu", "copy_on_gpu"):
        put(compile, name, lambda target, source, nbytes, _: ctypes.memmove(target, source, nbytes))
    put(stream.Stream, "__init__", _stream_init)
    _decode_to_host_memory(put)


def _decode_to_host_memory(put: Callable[[Any, str, Any], None]) -> None:
    """nvImageCodec's C library decodes with its CPU decoders, into the memory that stands for the GPU's."""
    codec, pool = (importlib.import_module(f"ndd.decoders.nvimgcodec.{name}") for name in ("c_api", "decoder_pool"))
    decoder, pictures = codec.Decoder, codec.Pictures
    put(pool, "Decoder", lambda library, _, *rest: decoder(library, None, *rest[:-1], ""))  # no options
    put(pool, "Pictures", lambda library: pictures(library, on_gpu=False))
    put(pool, "_pools", type(pool._pools)(pool._new_decoders, limit=2))
    put(pool, "places", type(pool.places)(pool.Places))


def _replace_everywhere(put: Callable[[Any, str, Any], None], replacements: dict[Any, Any]) -> None:
    """Sets every name that is bound to one of these functions in any module of ndd."""
    by_id = {id(original): replacement for original, replacement in replacements.items()}
    # The values first, by `list(values)`, which is one step: other threads import, and `list(dict.items())` makes tuples, which
    # may collect garbage, whose finalizers may let those threads run: "dictionary changed size during iteration".
    for module_name in list(sys.modules):
        if module_name == "ndd" or module_name.startswith("ndd."):
            module = sys.modules[module_name]
            if by_id.keys().isdisjoint(map(id, list(vars(module).values()))):
                continue
            for name in list(vars(module)):
                replacement = by_id.get(id(vars(module).get(name)))
                if replacement is not None:
                    put(module, name, replacement)


def _stream_init(self: Any, stream: Any = None, device_id: int | None = None) -> None:
    number = 0 if device_id is None else device_id
    self._torch = getattr(stream, "_torch", None) or NullTorchStream(number)
    self._device_id = number
    self.ring = self.large = self.place = None
