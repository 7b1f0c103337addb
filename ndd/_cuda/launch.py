"""One launch over a ragged batch: a record for each sample (pointers, shapes, the plan's numbers) and a kernel."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ndd._cuda import compile, source
from ndd._cuda.scope import raw_handle
from ndd._tensor import Spec, Store
from ndd._tensor.dtype import torch_dtype
from ndd._tensor.memory import device_empty, torch_device

T = TypeVar("T")

_BLOCK = 256
_MAX_BLOCKS = 1 << 16  # a grid row; kernels stride over what is left


class _Ready(NamedTuple):
    """A launch without its addresses."""

    function: Any
    blocks: tuple[int, int] | None
    records: np.ndarray
    count: Any
    shared: Any


_functions: dict[Any, Any] = {}
_layouts: dict[Any, np.dtype] = {}
_paths: dict[tuple[str, str], Path] = {}


class Launch:
    """What a CUDA function of an operator calls to start kernels; also gives scratch memory on the GPU.

    `launch("name")` starts kernel `name` of the operator's `.cu` file over all samples. Every field of the plan's
    `per_sample` and `shared` is in the structs `Sample` and `Shared`; more may be given here.
    """

    def __init__(self, job: Any, plan: Any, inputs: list[Any], outputs: list[Store] | None, n: int, ready: Any = None):
        self.job = job
        self.plan = plan
        self.ready: dict[Any, Any] = {} if ready is None else ready
        self.inputs = inputs
        self.outputs = outputs or []
        self.n = n
        self.device = job.device
        self.stream = job.stream

    def __call__(
        self,
        kernel: str,
        work: Any = None,
        *,
        per_sample: dict[str, Any] | None = None,
        shared: dict[str, Any] | None = None,
        macros: dict[str, str] | None = None,
        file: str | None = None,
        kept: Any = None,
        addresses: dict[str, Any] | None = None,
    ) -> None:
        """Starts `kernel` with a thread for each of `work` items of a sample (default: elements of output 0).

        `work` may be a number or one for each sample; `macros` are added to IN0, OUT0, ...; `file` is a `.cu` file
        other than the operator's. `addresses` are further fields of `Sample`: memory that the kernel uses besides
        inputs and outputs, int64 `[N]`. If everything else that is given follows from shapes, types and constants, a
        name for it in `kept` spares working it out again for the next batch of these (see also `remember`).
        """
        plain = per_sample is None and shared is None and macros is None and (work is None or isinstance(work, int))
        key = (kernel, file, work) if plain else (kernel, file, "kept", kept)
        ready = self.ready.get(key) if plain or kept is not None else None
        if ready is None:
            places = dict.fromkeys(addresses or {}, np.zeros(self.n, np.int64))
            ready = self._prepare(kernel, work, {**(per_sample or {}), **places}, shared or {}, macros or {}, file)
            if plain or kept is not None:
                self.ready[key] = ready
        if not ready.blocks:
            return
        records = ready.records.copy()
        for name, values in (addresses or {}).items():
            records[name] = values
        for name, store in self._pointed():
            records[name] = store.pointers()
        on_device = self.upload(records.view(np.uint8))
        arguments = [ctypes.c_void_p(on_device.data_ptr()), ready.count, ready.shared]
        compile.launch(ready.function, ready.blocks, _BLOCK, raw_handle(self.stream), arguments)

    def remember(self, key: Any, make: Callable[[], T]) -> T:
        """What `make` gives, kept with the plan: for what follows from shapes, types and constants."""
        key = ("remembered", key)
        found = self.ready.get(key)
        if found is None:
            found = self.ready[key] = make()
        return found

    def _pointed(self) -> list[tuple[str, Any]]:
        """The fields that hold addresses, with what they point to."""
        found: list[tuple[str, Any]] = [
            (f"in{i}", o) for i, o in enumerate(self.inputs) if o is not None and o._store.device.device_id is not None
        ]
        return found + [(f"out{i}", s) for i, s in enumerate(self.outputs)]

    def _prepare(
        self,
        kernel: str,
        work: Any,
        per_sample: dict[str, Any],
        shared: dict[str, Any],
        macros: dict[str, str],
        file: Any,
    ) -> _Ready:
        """Everything of a launch but the addresses: kept with the plan for the next batch of the same shapes."""
        if work is None:
            work = self.outputs[0].sizes
        most = int(np.max(work)) if np.size(work) else 0
        records, pointers, kind = self._records({**self.plan.per_sample, **per_sample})
        record, shared_kind = _record({**self.plan.shared, **shared})
        if not self.n or most <= 0:
            return _Ready(None, None, records, ctypes.c_int(0), ctypes.c_int(0))
        macros = {**self._element_macros(), **macros}
        key = (self._source(file), kernel, kind, shared_kind, tuple(macros.items()))
        function = _functions.get((key, self.device.device_id))
        if function is None:
            text = source.kernel_text(
                self._source(file),
                source.struct_text("Sample", records.dtype, pointers),
                source.struct_text("Shared", record.dtype, {}),
                macros,
            )
            function = compile.function(text, kernel, self.device.device_id)
            _functions[key, self.device.device_id] = function
        by_value = (ctypes.c_char * max(record.nbytes, 4)).from_buffer_copy(record.tobytes().ljust(4, b"\0"))
        blocks = min(-(-most // _BLOCK), _MAX_BLOCKS)
        return _Ready(function, (blocks, min(self.n, 65535)), records, ctypes.c_int(self.n), by_value)

    def _source(self, file: str | None) -> Path | str:
        op = self.job.op
        name = file or op.cuda_source
        if "\n" in name:  # the kernel's text itself: an operator made in a notebook has no file to lie beside
            return name
        found = _paths.get((op.module, name))
        if found is None:
            found = _paths[op.module, name] = Path(sys.modules[op.module].__file__ or ".").parent / name
        return found

    def _element_macros(self) -> dict[str, str]:
        found = {}
        for i, operand in enumerate(self.inputs):
            if operand is not None:
                found[f"IN{i}"] = source.ELEMENT_TYPES[operand.dtype.name]
        for i, store in enumerate(self.outputs):
            found[f"OUT{i}"] = source.ELEMENT_TYPES[store.dtype.name]
        for short in ("IN", "OUT"):
            if f"{short}0" in found:
                found[short] = found[f"{short}0"]
        return found

    def _records(self, fields: dict[str, Any]) -> tuple[np.ndarray, dict[str, str], Any]:
        """The record of each sample with zeros for addresses, the types of the address fields, and what names its layout."""
        columns: dict[str, np.ndarray] = {}
        pointers: dict[str, str] = {}
        shapes: dict[str, np.ndarray] = {}
        for i, operand in enumerate(self.inputs):
            if operand is None or operand._store.device.device_id is None:
                continue
            columns[f"in{i}"] = np.zeros(self.n, np.int64)
            pointers[f"in{i}"] = f"const IN{i}"
            shapes[f"in{i}_shape"] = operand.shapes
        for i, store in enumerate(self.outputs):
            columns[f"out{i}"] = np.zeros(self.n, np.int64)
            pointers[f"out{i}"] = f"OUT{i}"
            shapes[f"out{i}_shape"] = store.shape_array
        for name, values in shapes.items():
            columns[name] = values if values.shape[1] else np.ones((self.n, 1), np.int64)
        for name, values in fields.items():
            array = np.asarray(values)
            if array.dtype == object:
                raise TypeError(f"{self.job.op.name}: per-sample value {name!r} is ragged: a kernel cannot take it")
            columns[name] = array
        kind = tuple([(k, v.dtype.str, v.shape[1:]) for k, v in columns.items()])
        records = np.zeros(self.n, _layout(kind))
        for name, values in columns.items():
            if name not in pointers:
                records[name] = values
        return records, pointers, kind

    def upload(self, values: np.ndarray) -> Any:
        """A small array on the GPU, ordered on the operator's stream, by way of pinned memory."""
        return upload(values, self.device)

    def empty(self, count: int, dtype: Any) -> Any:
        """Scratch memory on the GPU: a 1-D torch tensor of `count` elements of an ndd or NumPy type."""
        import torch

        kind = torch_dtype(dtype) if hasattr(dtype, "type_id") else torch.from_numpy(np.empty(0, dtype)).dtype
        return device_empty(int(count), kind, self.device)


def _layout(kind: tuple[Any, ...]) -> np.dtype:
    """The aligned record type of (name, type, shape) fields; making one costs 15 us, so each is kept."""
    found = _layouts.get(kind)
    if found is None:
        found = _layouts[kind] = np.dtype(list(kind), align=True)
    return found


def _record(values: dict[str, Any]) -> tuple[np.ndarray, Any]:
    """One aligned record of numbers and fixed arrays, and what names its layout."""
    arrays = {}
    for name, value in values.items():
        if value is None or isinstance(value, str):
            continue
        array = np.asarray(value)
        if isinstance(value, int) and not isinstance(value, bool) and array.dtype == np.int64 and abs(value) < 2**31:
            array = array.astype(np.int32)
        elif isinstance(value, float):
            array = array.astype(np.float32)
        if array.dtype.name in source._TYPES and array.size:
            arrays[name] = array
    kind = tuple([(k, v.dtype.str, v.shape) for k, v in arrays.items()]) or (("unused", "<i4", ()),)
    record = np.zeros((), _layout(kind))
    for name, array in arrays.items():
        record[name] = array
    return record, kind


def pinned_empty(nbytes: int) -> Any:
    """Page-locked host memory from torch's caching allocator, so that copies need not wait for the CPU."""
    import torch

    return torch.empty(nbytes, dtype=torch.uint8, pin_memory=torch.cuda.is_available())


def upload(values: np.ndarray, device: Any) -> Any:
    """See `Launch.upload`: a 1-D uint8 torch tensor with the bytes of `values`."""
    flat = np.ascontiguousarray(values).view(np.uint8).reshape(-1)
    staged = pinned_empty(len(flat))
    staged.numpy()[:] = flat
    return staged.to(torch_device(device), non_blocking=True)


def allocate(shapes: np.ndarray, spec: Spec, n: int) -> Store:
    """Uninitialised GPU memory for one output: one buffer for the batch."""
    shapes = np.ascontiguousarray(shapes.reshape(n, -1) if n else shapes.reshape(0, 0))
    sizes = shapes.prod(axis=1)
    flat = device_empty(int(sizes.sum()) if n else 0, torch_dtype(spec.dtype), spec.device)
    if n and (n == 1 or bool((shapes == shapes[0]).all())):
        whole = flat.reshape(n, *shapes[0].tolist())
        store = Store(spec.dtype, spec.layout, spec.device, shapes, whole=whole)
    else:
        store = Store(spec.dtype, spec.layout, spec.device, shapes, flat=flat)
    store._sizes = sizes
    return store
