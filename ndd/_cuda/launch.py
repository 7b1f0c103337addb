"""Launches over a ragged batch: a record for each sample (pointers, shapes, the plan's numbers) and a kernel.

The launches of an operator are recorded. If none of their numbers came from data, a later batch of the same shapes repeats them
with its own addresses, without calling the operator (`replay`).
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ndd._cpu.ragged import count_elements, largest, write_addresses, write_steps
from ndd._cuda import compile, source
from ndd._cuda.ring import Ring
from ndd._cuda.structs import by_value, layout
from ndd._tensor import Spec, Store
from ndd._tensor.dtype import torch_dtype
from ndd._tensor.memory import device_empty, torch_device
from ndd._tensor.operand import Operand
from ndd._tensor.small_arrays import FEW, equal_rows, few_zeros, ones_column, put
from ndd._tensor.store import Volumes, bind_volumes

_BLOCK = 256
_MAX_BLOCKS = 1 << 16  # in a row of the grid; kernels stride over the rest
# Samples differ in size, and each gets as many blocks as the largest needs. So most blocks of a ragged batch would start, read
# their sample's record and end: on an H200 70,000 of them took half of the time of `rotate`. A few thousand blocks fill a GPU.
# Where the largest sample has work for more, a block loops up to 16 times.
_ENOUGH_BLOCKS = 4096
_ROUNDS = 16
_SMALL_TABLE = (
    1 << 16
)  # bytes of a table that goes to the GPU as records do: several of a call fit into a half of the ring


class _Form:
    """The parts that launches of a kernel share if their records have the same fields. It is cached with the call
    (`CachedCall.kernels`).

    Attributes:
        struct: the record type of a sample.
        names: its fields with numbers, in the order of a launch.
        functions: by the record type of `Shared`, the compiled kernels.
    """

    __slots__ = ("functions", "names", "struct")

    def __init__(self, struct: np.dtype, names: list[str]):
        self.struct = struct
        self.names = names
        self.functions: dict[np.dtype, list[Any]] = {}


class _Start(NamedTuple):
    """One recorded launch: its records without the addresses, and where the addresses come from."""

    functions: list[Any]
    blocks: tuple[int, int]
    octets: np.ndarray  # the records; copying bytes takes a tenth of the time of copying NumPy's structs
    struct: np.dtype
    count: Any
    shared: Any
    addresses: list[tuple[str, Any]]  # the field, and ("in" | "out", number) or a `Memory`


class Memory:
    """GPU memory of one call, with a part for each sample. As the value of a field of `Sample` it is the address of that
    part."""

    __slots__ = ("base", "cached", "count", "dtype", "offsets", "step", "tensor", "values", "zeros")

    def __init__(
        self, count: int, dtype: Any, offsets: np.ndarray | None, step: int = 1, values: np.ndarray | None = None,
        zeros: bool = False, cached: np.ndarray | None = None,
    ):  # fmt: skip
        self.count = count
        self.dtype = dtype  # of torch
        self.offsets = offsets  # [N], where each sample's part begins; None: every sample gets the whole
        self.step = step  # bytes of a unit of `offsets`
        self.values = values  # the initial content; None: uninitialised
        self.zeros = zeros
        self.cached = cached  # the array with these values, if it may stay on the GPU
        self.tensor: Any = None
        self.base = 0  # its address

    def make(self, call: Any) -> None:
        """Allocates the memory, on the call's stream."""
        if self.cached is not None and (base := _staying(self.cached, call)):
            self.base = base
            return
        if self.values is not None:
            octets = _octets(self.values)
            if len(octets) <= _SMALL_TABLE:
                self.base = _sent(call, octets)
            else:
                self.hold(upload(octets, call.device))
            return
        tensor = device_empty((self.count,), self.dtype, call.device)
        self.hold(tensor.zero_() if self.zeros else tensor)

    def anew(self, held: dict[int, Memory]) -> Memory:
        """The same memory for another call. `held` has the memory that this call has made so far, by the `id` of the first
        call's."""
        return Memory(self.count, self.dtype, self.offsets, self.step, self.values, self.zeros, self.cached)

    def hold(self, tensor: Any) -> None:
        """Uses a tensor as the memory."""
        self.tensor = tensor
        self.base = tensor.data_ptr()


_ADDRESS = np.dtype(np.int64)
_INT64 = _ADDRESS.char
_KEPT_TABLES = 128  # on all GPUs together; further tables are copied at every launch

_making = threading.Lock()  # a stream's ring
_functions: dict[Any, Any] = {}
_paths: dict[tuple[str, str], Path] = {}
# Tables that stay on a GPU, by the `id` of the array and the GPU: the address, its owner, and the array.
_tables: dict[tuple[int, int], tuple[int, Any, np.ndarray]] = {}


class Launch:
    """The object that an operator's CUDA function calls to start kernels and to get scratch memory on the GPU.

    `launch("name")` starts kernel `name` of the operator's `.cu` file over all samples. Every field of the plan's
    `per_sample` and `shared` is in the structs `Sample` and `Shared`; more may be given here.
    """

    def __init__(self, call: Any, plan: Any, inputs: list[Any], outputs: list[Any], n: int, cached: bool = False):
        self.call = call
        self.plan = plan
        self.steps: list[Any] | None = [] if cached else None  # Memory and _Start, in their order
        self.inputs = inputs
        self.outputs = outputs
        self.results = [o._store_ for o in outputs]
        self.n = n
        self.device = call.device
        self.stream = call.stream
        self.columns: Any = None

    def __call__(
        self,
        kernel: str | tuple[str, ...],
        work: Any = None,
        *,
        pack: int | None = None,
        per_sample: dict[str, Any] | None = None,
        shared: dict[str, Any] | None = None,
        macros: dict[str, Any] | None = None,
        file: str | None = None,
    ) -> None:
        """Starts `kernel` with a thread for every `pack` of the `work` items of a sample (default: elements of output 0).

        Args:
            kernel: its name, or several names, run one after the other. They share the records of the samples, so each kernel
                reads the fields that the one before has written.
            work: a number or one for each sample, `s.items` in the kernel (see samples.cuh).
            pack: the number of neighbouring items for each thread: the macro PACK, see `PER_PACK` in pack.cuh. Default: one.
            per_sample: more fields of `Sample`. An input, an output or memory of `scratch` and `table` as a value is
                the address of each sample's part. A name that the plan also has means this value then, even if the plan has it
                for all samples.
            shared: more fields of `Shared`.
            macros: in addition to IN0, OUT0, ...: constants that the `.py` file defines too, so that they are written once.
            file: a `.cu` file other than the operator's.
        """
        if pack:
            macros = {**(macros or {}), "PACK": pack}
        plan = self.plan
        numbers = {**plan.shared, **shared} if shared else plan.shared
        fields = plan.per_sample
        if per_sample:
            fields = {**fields, **per_sample} if fields else per_sample
            if not numbers.keys().isdisjoint(per_sample):
                numbers = {k: v for k, v in numbers.items() if k not in per_sample}
        items = most = work
        if work is None:
            volumes = self.outputs[0].volumes
            items, most = volumes.sizes, volumes.largest
        elif work.__class__ is not int:
            items = work if work.__class__ is np.ndarray and work.ndim == 1 else np.ravel(work)
            if items.flags.carray and items.dtype.char == _INT64:
                most = largest(items)
            else:
                most = int(np.maximum.reduce(items)) if len(items) else 0
        if not self.n or most <= 0:
            return
        form, columns, addresses = self._form(kernel, items, fields, macros, file)
        by, shared_kind = by_value(numbers)
        functions = form.functions.get(shared_kind)
        if functions is None:
            functions = form.functions[shared_kind] = self._functions(
                kernel, form.struct, shared_kind, macros or {}, file
            )
        n = self.n
        octets = np.empty(n * form.struct.itemsize, np.uint8)  # not `zeros`, which releases the GIL
        records = np.frombuffer(octets, form.struct)  # `view` takes three times as long
        for name, values in zip(form.names, columns, strict=True):
            if values.__class__ is int or values.size <= FEW:
                records[name] = values
            else:
                put(records[name], values)
        blocks = -(-most // (_BLOCK * (pack or 1)))
        blocks = min(blocks, max(_ENOUGH_BLOCKS // n, -(-blocks // _ROUNDS)), _MAX_BLOCKS)
        grid = blocks, min(n, 65535)
        if self.steps is not None:
            self.steps.append(_Start(functions, grid, octets.copy(), form.struct, _count(n), by, addresses))
        _address(records, addresses, self.call, self.inputs, self.results)
        _run(functions, grid, octets, _count(n), by, self.call)

    def scratch(self, sizes: Any, dtype: Any, *, zeros: bool = False) -> Memory:
        """Memory with `sizes[i]` elements of an ndd or NumPy type for sample i, `[N]`, uninitialised unless `zeros`. It is
        valid until the last launch of this call has read it."""
        kind = _torch_kind(dtype)
        for operand in (*self.inputs, *self.outputs):
            if operand is not None and operand._store_._volumes is not None and operand._store_._volumes.sizes is sizes:
                volumes = operand._store_._volumes
                break
        else:
            if sizes.__class__ is not np.ndarray or sizes.shape != (self.n,):
                sizes = np.full(self.n, sizes, np.int64)
            volumes = counted(sizes.reshape(-1, 1))
        return self.make_memory(Memory(max(1, volumes.total), kind, volumes.offsets, kind.itemsize, zeros=zeros))

    def table(self, values: np.ndarray, each: bool = False, cached: bool = False) -> Memory:
        """A small constant array, on the GPU.

        Args:
            each: the first axis is the samples, and a kernel sees its sample's row.
            cached: the caller keeps this array and never writes to it, so that the copy may stay on the GPU.
        """
        places = np.arange(self.n, dtype=np.int64) if each else None
        step = values[0].nbytes if each and len(values) else 0
        return self.make_memory(Memory(0, None, places, step, values, cached=values if cached else None))

    def make_memory(self, memory: Memory) -> Memory:
        """Allocates the memory that the caller describes, now and whenever these launches are repeated."""
        memory.make(self.call)
        if self.steps is not None:
            self.steps.append(memory)
        return memory

    def written_down(self) -> list[Any]:
        """The launches of this call, for `replay`, without their memory."""
        steps = self.steps or []
        for step in steps:
            if isinstance(step, Memory):
                step.tensor = None
        return steps

    def _origin(self, value: Any) -> Any:
        if isinstance(value, Memory):
            return value
        for kind, operands in (("in", self.inputs), ("out", self.outputs)):
            for i, operand in enumerate(operands):
                if operand is value:
                    return kind, i
        raise TypeError("an address in a record must be that of an input, an output, or memory of this launch")

    def _form(
        self, kernel: Any, items: Any, fields: dict[str, Any], macros: Any, file: Any
    ) -> tuple[_Form, list[Any], list[tuple[str, Any]]]:
        """The form that a launch shares with others, the numbers of its records, and the sources of their addresses."""
        own = self.columns
        if own is None:
            own = self.columns = self._own_columns()
        kinds, shapes, names, addresses = own
        columns = [*shapes, items]
        key: list[Any] = [kernel, file, kinds, items.__class__ is int or items.dtype.char]
        for name, value in fields.items():
            if value.__class__ is not np.ndarray:
                if value.__class__ is Operand or isinstance(value, Memory):
                    key.append(name)
                    addresses = [*addresses, (name, self._origin(value))]
                    continue
                value = np.asarray(value)
            kind = value.dtype.char
            if kind != "O":  # an array of objects is for the operator's own functions
                key += name, kind, value.shape[1:]
                columns.append(value)
        if macros:
            key += macros
            # As text, because 1 and 1.0 are equal.
            key += [str(value) if value.__class__ is float else value for value in macros.values()]
        form_key = tuple(key)
        forms = self.call.cached_call.kernels  # inputs and outputs have the types that these were compiled for
        form = forms.get(form_key)
        if form is None:
            places = {name for name, _ in addresses}
            numbers = [k for k, v in fields.items() if k not in places and np.asarray(v).dtype != object]
            names = [*names, "items", *numbers]
            form = forms[form_key] = _Form(_struct(addresses, names, columns), names)
        return form, columns, addresses

    def _own_columns(self) -> tuple[Any, list[np.ndarray], list[str], list[tuple[str, Any]]]:
        """The fields of inputs and outputs that every launch has: the numbers of their axes, their extents `[N, ndim]` (if they
        are on the GPU), the names of these fields, and those with an address."""
        shapes = []
        for operand in (*self.inputs, *self.outputs):
            if operand is not None and operand._store_.device.device_id is not None:
                shapes.append(operand.shapes)
        kinds = tuple([s.shape[1] for s in shapes])
        if 0 in kinds:
            shapes = [s if s.shape[1] else ones_column(self.n) for s in shapes]
        every_kind = self.call.cached_call.columns
        known = every_kind.get(kinds)
        if known is None:
            ins = [i for i, o in enumerate(self.inputs) if o is not None and not o.on_cpu]
            outs = range(len(self.outputs))
            names = [f"in{i}_shape" for i in ins] + [f"out{i}_shape" for i in outs]
            addresses = [(f"in{i}", ("in", i)) for i in ins] + [(f"out{i}", ("out", i)) for i in outs]
            known = every_kind[kinds] = names, addresses
        return kinds, shapes, known[0], known[1]

    def _functions(
        self, kernel: Any, struct: np.dtype, shared_kind: Any, macros: dict[str, Any], file: Any
    ) -> list[Any]:
        """The compiled kernels of a launch."""
        text = self._source(file)
        definitions = {k: str(int(v) if isinstance(v, bool) else v) for k, v in macros.items()}
        every = {**self._element_macros(), **definitions}
        names = (kernel,) if isinstance(kernel, str) else kernel
        return [self._compiled(text, name, struct, shared_kind, every) for name in names]

    def _compiled(self, text: Path | str, kernel: str, record: np.dtype, shared_kind: Any, macros: Any) -> Any:
        addresses = self.columns[3]
        pointers = {name: f"{'const ' * (way == 'in')}{name.upper()}" for name, (way, _) in addresses}
        key = (text, kernel, record, tuple(pointers), shared_kind, tuple(macros.items()), self.device.device_id)
        function = _functions.get(key)
        if function is None:
            whole = source.kernel_text(
                text,
                source.struct_text("Sample", record, pointers),
                source.struct_text("Shared", shared_kind, {}),
                macros,
            )
            function = _functions[key] = compile.function(whole, kernel, self.device.device_id)
        return function

    def _source(self, file: str | None) -> Path | str:
        op = self.call.op
        name = file or op.cuda_source
        if "(" in name:  # the kernel's text itself: an operator made in a notebook has no file beside it
            return name
        path = _paths.get((op.module, name))
        if path is None:
            path = _paths[op.module, name] = Path(sys.modules[op.module].__file__ or ".").parent / name
        return path

    def _element_macros(self) -> dict[str, str]:
        macros = {}
        for i, operand in enumerate(self.inputs):
            if operand is not None:
                macros[f"IN{i}"] = source.ELEMENT_TYPES[operand.dtype.name]
        for i, store in enumerate(self.outputs):
            macros[f"OUT{i}"] = source.ELEMENT_TYPES[store.dtype.name]
        for short in ("IN", "OUT"):
            if f"{short}0" in macros:
                macros[short] = macros[f"{short}0"]
        return macros


class Joined(Launch):
    """The launches of an operator whose output goes to one other operator only. The last launch also does the other operator's
    work on each element (`JOINED`, see resize.cu)."""

    type_between: Any = None  # the type of the elements that go to the other operator

    def __call__(self, kernel: str, work: Any = None, *, macros: dict[str, Any] | None = None, **more: Any) -> None:
        """Starts kernels as `Launch` does. The launch without a target of its own writes the output."""
        macros = macros or {}
        if "TARGET" not in macros:
            types = source.ELEMENT_TYPES
            macros = {
                **macros, "JOINED": types[self.outputs[0].dtype.name], "TARGET_TYPE": types[self.type_between.name]
            }  # fmt: skip
        super().__call__(kernel, work, macros=macros, **more)


@functools.lru_cache(256)
def _count(n: int) -> Any:
    return ctypes.c_int(n)


@functools.cache
def _torch_kind(dtype: Any) -> Any:
    """The torch.dtype of an ndd or NumPy type."""
    return torch_dtype(dtype) if hasattr(dtype, "type_id") else torch.from_numpy(np.empty(0, dtype)).dtype


def _struct(addresses: list[tuple[str, Any]], names: list[str], columns: list[Any]) -> np.dtype:
    """The record type: addresses first, then numbers."""
    kinds = [(v.dtype, v.shape[1:]) if isinstance(v, np.ndarray) else (_ADDRESS, ()) for v in columns]
    fields = [(name, *kind) for name, kind in zip(names, kinds, strict=True)]
    return layout((*[(name, _ADDRESS, ()) for name, _ in addresses], *fields))


def _run(functions: list[Any], grid: tuple[int, int], octets: np.ndarray, count: Any, shared: Any, call: Any) -> None:
    """Launches the kernels with these records."""
    arguments = [ctypes.c_void_p(_sent(call, octets)), count, shared]
    stream = call.stream._torch.cuda_stream
    for function in functions:
        compile.launch(function, grid, _BLOCK, stream, arguments)


def _address(
    records: np.ndarray, fields: list[tuple[str, Any]], call: Any, inputs: list[Any], outputs: list[Store]
) -> None:
    """Writes the addresses of each sample's parts in this call."""
    n = len(records)
    write = (
        write_addresses if n > 1 else _write_one
    )  # a column of one element is contiguous, which is another type to the compiler
    for name, origin in fields:
        if origin.__class__ is not tuple:
            if origin.offsets is None:
                records[name] = origin.base
            else:
                write(records[name], origin.base, origin.offsets, origin.step)
            continue
        kind, number = origin
        if kind == "out":
            store = outputs[number]
        else:
            store = inputs[number]._store_
            if store.device.device_id is None:  # small values that stay on the CPU
                records[name] = _uploaded(store, call)
                continue
            if store.device is not call.device and store.device != call.device:
                raise ValueError(
                    f"input {number} is on {store.device}, but the operator runs on {call.device}: move it there"
                )
        if store._addresses is not None or store.n != n:
            records[name] = store.pointers()
        elif store.flat is not None:
            volumes = store._volumes or store.volumes
            write(records[name], store.flat.data_ptr(), volumes.offsets, store.dtype.bytes)
        elif store.whole is not None and store._has_gaps is False and n > 1:
            write_steps(records[name], store.whole.data_ptr(), store.whole.stride(0) * store.dtype.bytes)
        else:
            records[name] = store.pointers()


def _write_one(column: np.ndarray, base: int, places: np.ndarray, step: int) -> None:
    column[0] = base + int(places[0]) * step


def _uploaded(store: Store, call: Any) -> np.ndarray:
    values = np.concatenate([array.reshape(-1) for array in store.arrays()]).view(np.uint8)
    base = _sent(call, values)
    return base + store.volumes.offsets * store.dtype.bytes


def _octets(values: np.ndarray) -> np.ndarray:
    """The bytes of an array, at least one."""
    flat = np.ascontiguousarray(values).reshape(-1)
    return flat.view(np.uint8) if flat.size else few_zeros(1, np.uint8)


def _sent(call: Any, values: np.ndarray) -> int:
    """The GPU address of a copy that lives until the launches after this one."""
    stream = call.stream
    ring = stream.ring
    if ring is None:
        with _making:  # a second ring would be freed with its thread's call, while a kernel still reads it
            ring = stream.ring = stream.ring or Ring(stream)
    if ring.fits(len(values)):
        return ring.send(values)
    stream.large = upload(values, call.device)  # torch's allocator reuses the memory in the stream's order
    return stream.large.data_ptr()


def replay(steps: list[Any], call: Any, inputs: list[Any], outputs: list[Any]) -> None:
    """Repeats the launches of an earlier call with the addresses of this one."""
    held: dict[int, Memory] = {}
    for step in steps:
        if isinstance(step, Memory):
            held[id(step)] = memory = step.anew(held)
            memory.make(call)
        else:
            addresses = step.addresses
            if held:
                addresses = [(name, held.get(id(origin), origin)) for name, origin in addresses]
            octets = step.octets.copy()
            _address(np.frombuffer(octets, step.struct), addresses, call, inputs, outputs)
            _run(step.functions, step.blocks, octets, step.count, step.shared, call)


def _staying(values: np.ndarray, call: Any) -> int:
    """The address of a table that stays on the GPU; 0 if there are too many tables already."""
    key = id(values), call.device.device_id
    table = _tables.get(key)
    if table is None:
        if len(_tables) >= _KEPT_TABLES:
            return 0
        there = upload(values, call.device)
        call.stream.synchronize()  # other streams will read it too
        table = _tables[key] = (there.data_ptr(), there, values)
    return table[0]


def pinned_empty(nbytes: int) -> Any:
    """Page-locked host memory from torch's caching allocator, so that copies need not wait for the CPU."""
    return torch.empty(nbytes, dtype=torch.uint8, pin_memory=torch.cuda.is_available())


def upload(values: np.ndarray, device: Any) -> Any:
    """A copy of the bytes of `values` on a GPU, queued on the current stream: a 1-D uint8 torch tensor."""
    flat = np.ascontiguousarray(values).view(np.uint8).reshape(-1)
    staged = pinned_empty(len(flat))
    staged.numpy()[:] = flat
    return staged.to(torch_device(device), non_blocking=True)


class Room:
    """The shapes of an output, which determine its memory."""

    __slots__ = ("form", "shapes", "volumes")

    def __init__(self, shapes: Any, n: int, inputs: list[Any]):
        self.shapes = _rows(shapes, n)
        volumes, same = None, n == 1
        for operand in inputs:
            if operand is not None and operand._store_._shape_array is shapes and operand._store_.n == n:
                volumes, same = operand._store_.volumes, same or operand._store_.whole is not None
                break
        self.volumes = volumes or counted(self.shapes)
        same = same or (self.volumes.total == self.volumes.largest * n and equal_rows(self.shapes))
        self.form = (n, *self.shapes[0].tolist()) if n and same else None

    def store(self, spec: Spec) -> Store:
        """Uninitialised GPU memory: one buffer for the batch."""
        form = (self.volumes.total,) if self.form is None else self.form
        memory = device_empty(form, torch_dtype(spec.dtype), spec.device)
        forms = {"flat": memory} if self.form is None else {"whole": memory}
        store = Store(spec.dtype, spec.layout, spec.device, self.shapes, **forms)
        store._volumes = self.volumes
        store._has_gaps = False
        return store


def counted(shapes: np.ndarray) -> Volumes:
    """The numbers of elements of samples of these shapes."""
    if not shapes.flags.carray or shapes.dtype.char != _INT64:
        return Volumes(shapes)
    numbers = np.empty((2, len(shapes)), np.int64)
    total, most = count_elements(shapes, numbers)
    return Volumes(shapes) if total < 0 else Volumes.known(numbers[0], numbers[1], total, most)


bind_volumes(counted)


def _rows(shapes: Any, n: int) -> np.ndarray:
    if isinstance(shapes, np.ndarray) and shapes.dtype == np.int64 and shapes.ndim == 2 and len(shapes) == n:
        return shapes if shapes.flags.c_contiguous else np.ascontiguousarray(shapes)
    array = np.asarray(shapes, np.int64)
    return np.ascontiguousarray(array.reshape(n, -1) if n else array.reshape(0, 0))
