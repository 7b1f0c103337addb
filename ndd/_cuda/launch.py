"""One launch over a ragged batch: a record for each sample (pointers, shapes, the plan's numbers) and a kernel."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ndd._cuda import compile, source
from ndd._cuda.ring import Ring
from ndd._cuda.scope import raw_handle
from ndd._tensor import Spec, Store
from ndd._tensor.dtype import torch_dtype
from ndd._tensor.memory import device_empty, torch_device
from ndd._tensor.store import Volumes

T = TypeVar("T")

_BLOCK = 256
_MAX_BLOCKS = 1 << 16  # a grid row; kernels stride over what is left
# Samples differ in size and each gets as many blocks as the largest wants, so most blocks of a ragged batch would start,
# read their sample's record and end: on an H200 70,000 of them took half of the time of `rotate`. A GPU is full with some
# thousand blocks; a block goes round up to 16 times where the largest sample has work for more.
_ENOUGH_BLOCKS = 4096
_ROUNDS = 16


class _Ready(NamedTuple):
    """A launch without its addresses."""

    function: Any
    blocks: tuple[int, int] | None
    records: np.ndarray
    count: Any
    shared: Any


_ADDRESS = np.dtype(np.int64)
_KEPT_STRUCTS = 1024

_functions: dict[Any, Any] = {}
_shared: dict[Any, Any] = {}
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
        self.keeps = ready is not None  # what `ready` holds is there at the next launch of this plan
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
        kept_now = self.keeps and (plain or kept is not None)
        ready = self.ready.get(key) if kept_now else None
        if ready is None:
            places = dict.fromkeys(addresses or {}, np.zeros(self.n, np.int64))
            ready = self._prepare(kernel, work, {**(per_sample or {}), **places}, shared or {}, macros or {}, file)
            if kept_now:
                self.ready[key] = ready
        if not ready.blocks:
            return
        records = ready.records if not kept_now else ready.records.copy()
        for name, values in (addresses or {}).items():
            records[name] = values
        for name, store in self._pointed():
            records[name] = store.pointers()
        arguments = [ctypes.c_void_p(self._sent(records.view(np.uint8))), ready.count, ready.shared]
        compile.launch(ready.function, ready.blocks, _BLOCK, raw_handle(self.stream), arguments)

    def _sent(self, values: np.ndarray) -> int:
        """The address on the GPU of a copy that lives until the launches after this one."""
        ring = self.stream.ring
        if ring is None:
            ring = self.stream.ring = Ring(self.stream)
        if ring.fits(len(values)):
            return ring.send(values)
        self.large = self.upload(values)  # torch's allocator hands the memory on in the order of the stream
        return self.large.data_ptr()

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
        most = self.outputs[0].volumes.largest if work is None else work
        if not isinstance(most, int):
            most = int(np.maximum.reduce(np.ravel(most), initial=0))
        records, kind, pointers = self._records({**self.plan.per_sample, **per_sample} if per_sample else None)
        by_value, shared_kind = _by_value({**self.plan.shared, **shared} if shared else self.plan.shared)
        if not self.n or most <= 0:
            return _Ready(None, None, records, ctypes.c_int(0), ctypes.c_int(0))
        text = self._source(file)
        kernels = self.job.prepared.kernels  # inputs and outputs have the types that these were compiled for
        key = (text, kernel, kind, shared_kind, tuple(macros.items()) if macros else ())
        function = kernels.get(key)
        if function is None:
            every = {**self._element_macros(), **macros}
            function = kernels[key] = self._compiled(text, kernel, records.dtype, pointers, shared_kind, every)
        blocks = -(-most // _BLOCK)
        blocks = min(blocks, max(_ENOUGH_BLOCKS // self.n, -(-blocks // _ROUNDS)), _MAX_BLOCKS)
        return _Ready(function, (blocks, min(self.n, 65535)), records, ctypes.c_int(self.n), by_value)

    def _compiled(
        self, text: Path | str, kernel: str, record: np.dtype, pointers: dict[str, str], shared_kind: Any, macros: Any
    ) -> Any:
        key = (text, kernel, record, tuple(pointers), shared_kind, tuple(macros.items()), self.device.device_id)
        function = _functions.get(key)
        if function is None:
            whole = source.kernel_text(
                text,
                source.struct_text("Sample", record, pointers),
                source.struct_text("Shared", _layout(shared_kind), {}),
                macros,
            )
            function = _functions[key] = compile.function(whole, kernel, self.device.device_id)
        return function

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

    def _records(self, given: dict[str, Any] | None) -> tuple[np.ndarray, Any, dict[str, str]]:
        """The record of each sample with zeros for addresses, what names its layout, and the types of the addresses.

        `given` are the fields, if they are not just those of the plan.
        """
        n = self.n
        pointers: dict[str, str] = {}
        columns: list[tuple[str, np.ndarray]] = []
        for i, operand in enumerate(self.inputs):
            if operand is not None and operand._store.device.device_id is not None:
                pointers[f"in{i}"] = f"const IN{i}"
                columns.append((f"in{i}_shape", operand.shapes))
        for i, store in enumerate(self.outputs):
            pointers[f"out{i}"] = f"OUT{i}"
            columns.append((f"out{i}_shape", store.shape_array))
        for k, (name, values) in enumerate(columns):
            if not values.shape[1]:
                columns[k] = (name, np.ones((n, 1), np.int64))
        for name, values in (self.plan.per_sample if given is None else given).items():
            array = values if isinstance(values, np.ndarray) else np.asarray(values)
            if array.dtype == object:
                raise TypeError(f"{self.job.op.name}: per-sample value {name!r} is ragged: a kernel cannot take it")
            columns.append((name, array))
        kind = (
            *[(name, _ADDRESS, ()) for name in pointers],
            *[(name, values.dtype, values.shape[1:]) for name, values in columns],
        )
        records = np.zeros(n, _layout(kind))
        for name, values in columns:
            records[name] = values
        return records, kind, pointers

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


def _by_value(values: dict[str, Any]) -> tuple[Any, Any]:
    """The struct `Shared` as bytes that a launch takes, and what names its layout; kept for the next launch with these."""
    key = tuple([(name, *_identity(value)) for name, value in values.items()])
    found = _shared.get(key)
    if found is None:
        if len(_shared) > _KEPT_STRUCTS:
            _shared.clear()
        found = _shared[key] = _packed(values)
    return found


def _identity(value: Any) -> tuple[Any, ...]:
    """What tells a number or small array from others; as keys 0, 0.0, -0.0 and False are equal, their texts are not."""
    if value.__class__ is np.ndarray:
        return value.tobytes(), value.dtype, value.shape
    if isinstance(value, bool | int | float | np.generic):
        return value or repr(value), value.__class__
    return (repr(value),) if isinstance(value, list | tuple) else (None,)  # no other thing gets into the struct


def _packed(values: dict[str, Any]) -> tuple[Any, Any]:
    """One aligned record of numbers and fixed arrays."""
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
    kind = tuple([(k, v.dtype, v.shape) for k, v in arrays.items()]) or (("unused", np.dtype(np.int32), ()),)
    record = np.zeros((), _layout(kind))
    for name, array in arrays.items():
        record[name] = array
    return (ctypes.c_char * max(record.nbytes, 4)).from_buffer_copy(record.tobytes().ljust(4, b"\0")), kind


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


class Room:
    """What the memory of an output follows from: its shapes, worked out."""

    __slots__ = ("form", "shapes", "volumes")

    def __init__(self, shapes: Any, n: int, inputs: list[Any]):
        self.shapes = _rows(shapes, n)
        source = next((o._store for o in inputs if o is not None and o._store._shape_array is shapes), None)
        if source is not None and source.n != n:
            source = None
        self.volumes = Volumes(self.shapes) if source is None else source.volumes
        same = n == 1 or (source is not None and source.whole is not None) or _equal_rows(self.shapes)
        self.form = (n, *self.shapes[0].tolist()) if n and same else None

    def store(self, spec: Spec) -> Store:
        """Uninitialised GPU memory: one buffer for the batch."""
        flat = device_empty(self.volumes.total, torch_dtype(spec.dtype), spec.device)
        if self.form is None:
            store = Store(spec.dtype, spec.layout, spec.device, self.shapes, flat=flat)
        else:
            store = Store(spec.dtype, spec.layout, spec.device, self.shapes, whole=flat.view(self.form))
        store._volumes = self.volumes
        return store


def _rows(shapes: Any, n: int) -> np.ndarray:
    if isinstance(shapes, np.ndarray) and shapes.dtype == np.int64 and shapes.ndim == 2 and len(shapes) == n:
        return shapes if shapes.flags.c_contiguous else np.ascontiguousarray(shapes)
    array = np.asarray(shapes, np.int64)
    return np.ascontiguousarray(array.reshape(n, -1) if n else array.reshape(0, 0))


def _equal_rows(shapes: np.ndarray) -> bool:
    whole = shapes.tobytes()  # comparing bytes: 0.6 us for 64 rows, comparing arrays 5
    return whole == whole[: shapes.shape[1] * 8] * len(shapes)
