"""The common base of Tensor and Batch: a handle is a stored value, or an invocation that will produce one.

`spec` describes the value (element type, rank, layout, device) without running anything. Higher packages plug in two things
when they are imported: the evaluation mode (through `Pending`, the interface of an invocation) and the operators behind
methods such as `to_device` and `+` (`bind_operations`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch

from ndd._tensor.device import Device, DeviceLike, device as to_device_object
from ndd._tensor.dtype import DType, bool_
from ndd._tensor.operations import operation
from ndd._tensor.store import Store
from ndd._tensor.type_guards import is_array, is_list, is_numpy, is_tuple
from ndd._tensor.warn_once import warn_once

if TYPE_CHECKING:
    from typing_extensions import Self


class Spec:
    """A value's description without its numbers and extents. Equal specs are the same object (`Spec.of`), so that calls are
    looked up by the identity of their inputs' specs."""

    __slots__ = ("device", "dtype", "layout", "ndim")
    is_immutable = True  # a cache key may contain it

    @staticmethod
    def of(dtype: DType | None, ndim: int | None, layout: str | None, device: Device) -> Spec:
        """The one Spec with these values."""
        key = (dtype, ndim, layout, device)
        spec = _specs.get(key)
        if spec is None:
            spec = _specs.setdefault(key, Spec(dtype, ndim, layout, device))
        return spec

    def __init__(self, dtype: DType | None, ndim: int | None, layout: str | None, device: Device):
        self.dtype: DType = dtype  # type: ignore[assignment]  # None, with `ndim`, until a file has been read
        self.ndim = ndim
        self.layout = layout
        self.device = device

    def __repr__(self) -> str:
        return f"Spec({self.dtype}, ndim={self.ndim}, layout={self.layout!r}, {self.device})"


_specs: dict[tuple[Any, ...], Spec] = {}


class Pending(Protocol):
    """An invocation, as far as a handle uses it."""

    def result(self, index: int) -> Store:
        """Waits for output `index`; raises what the operator raised."""
        ...


# For `array + value`: the function that NumPy calls, and our operator.
_OF_OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "fdiv", "floor_divide": "div", "remainder": "mod",
    "power": "pow", "bitwise_and": "bitand", "bitwise_or": "bitor", "bitwise_xor": "bitxor", "left_shift": "lshift",
    "right_shift": "rshift", "equal": "eq", "not_equal": "neq", "less": "lt", "less_equal": "leq", "greater": "gt",
    "greater_equal": "geq",
}  # fmt: skip


class Handle:
    """Base of Tensor and Batch."""

    __slots__ = ("__weakref__", "_external", "_index", "_n", "_pending", "_spec", "_store")

    _spec: Spec
    _store: Store | None
    _pending: Any
    _index: int
    _n: int | None
    _external: bool  # shares memory with an object of the user: operators on it run at the call, see as_tensor

    # `__array_ufunc__` makes NumPy leave `array + batch` to us instead of looping over the samples. `__torch_function__`
    # does the same for torch, whose `Tensor.__add__` would try to convert the handle.
    __array_priority__ = 1000

    __hash__ = None  # type: ignore[assignment]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **named: Any) -> Any:
        """NumPy's functions take Tensors on the CPU as arrays, and give arrays: `np.sqrt(t)`, `np.sum(t)`, `acc += t`.

        `array + t` is ndd's operator, as `t + array` is, and so is `np.add(array, t)`, which cannot be told from it. A NumPy
        scalar before a Batch counts as a Python number, as in DALI: `np.uint8(2) * batch` is i32.
        """
        reflected = len(inputs) == 2 and not isinstance(inputs[0], Handle)
        left: Any = inputs[0]
        number = reflected and is_numpy(left) and not left.ndim
        if number and hasattr(self, "batch_size") and left.dtype.kind in "biuf":
            inputs = left.item(), inputs[1]
        if method == "__call__" and reflected and out is None and not named and ufunc.__name__ in _OF_OPERATORS:
            return operation(_OF_OPERATORS[ufunc.__name__])(*inputs)
        if hasattr(self, "batch_size") or any(hasattr(v, "batch_size") for v in inputs):
            raise TypeError(
                f"numpy.{ufunc.__name__} takes arrays, got a Batch, whose samples may have different shapes: use ndd.math "
                "and ndd.reductions, or batch.numpy() where all have one shape"
            )
        if out is not None:
            named["out"] = out
        arrays: list[Any] = [np.asarray(v) if isinstance(v, Handle) else v for v in inputs]
        return getattr(ufunc, method)(*arrays, **named)

    if not TYPE_CHECKING:  # a type checker would accept every name

        def __getattr__(self, name: str) -> Any:
            """Raises the error for a missing attribute, with a hint if torch's tensors have it."""
            if name.startswith("_") or not hasattr(torch.Tensor, name):
                return object.__getattribute__(self, name)  # Python's own error, or the property's
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}: .torch() gives a torch.Tensor, which has it",
                name=name,
                obj=self,
            )

    @classmethod
    def _of_store(cls, store: Store) -> Self:
        """A handle of a stored value."""
        self = cls.__new__(cls)
        self._spec = Spec.of(store.dtype, store.ndim, store.layout, store.device)
        self._store = store
        self._pending = None
        self._index = 0
        self._n = store.n
        self._external = False
        return self

    @classmethod
    def _of_pending(cls, pending: Any, index: int, spec: Spec, n: int | None) -> Self:
        """A handle of output `index` of an invocation."""
        self = cls.__new__(cls)
        self._spec = spec
        self._store = None
        self._pending = pending
        self._index = index
        self._n = n
        self._external = False
        return self

    def _value(self) -> Store:
        """The stored value; runs or waits for the invocation."""
        store = self._store
        if store is None:
            pending = self._pending
            if pending is None:  # another thread has just stored the value
                return self._store  # type: ignore[return-value]
            store = pending.result(self._index)
            spec = self._spec
            if spec.ndim is None or spec.layout != store.layout or spec.dtype is not store.dtype:
                ndim = store.ndim if store.n else spec.ndim
                self._spec = Spec.of(store.dtype, ndim, store.layout, store.device)
            self._n = store.n
            self._store = store  # after `_spec` and before `_pending`: other threads read them without a lock
            self._pending = None
        return store

    def _adopt(self, other: Handle) -> None:
        """Becomes a handle of the same value. Another thread may be evaluating `other`, so this reads in the reverse order of
        `_value`."""
        self._pending = other._pending
        self._store = other._store
        self._spec, self._n, self._index, self._external = other._spec, other._n, other._index, other._external

    def evaluate(self) -> Self:
        """Runs the operator behind this value if it has not run; returns `self`.

        A GPU may still be working: the operator is then queued on the context's stream.
        """
        self._value()
        return self

    @property
    def dtype(self) -> DType:
        """The element type; known without running anything, except for decoders that find it in a file."""
        if self._spec.ndim is None:
            self._value()
        return self._spec.dtype

    @property
    def ndim(self) -> int:
        """The number of axes of a sample; known without running anything."""
        if self._spec.ndim is None:
            self._value()
        return self._spec.ndim  # type: ignore[return-value]

    @property
    def layout(self) -> str | None:
        """The meaning of the axes, a letter each ("HWC", "FHWC", ...), or None."""
        if self._spec.ndim is None and not self._spec.layout:
            self._value()  # a layout is known only with the number of axes
        return self._spec.layout or None

    @property
    def device(self) -> Device:
        """Where the value is or will be."""
        return self._spec.device

    @property
    def source_info(self) -> Any:
        """Where the sample(s) came from, as the reader said (a file name, ...): a list for a Batch; None if unknown."""
        store = self._value()
        info = store.source_info
        if info is None:
            return None
        return list(info) if store.batched else info[0]

    def cpu(self) -> Self:
        """This value on the CPU; the value itself if it is there already."""
        return self.to_device(Device.CPU)

    def gpu(self, index: int | None = None) -> Self:
        """This value on GPU `index` (default: the current one); the value itself if it is there already.

        Args:
            index: the number of the GPU; default: torch's current one.

        Raises RuntimeError without a GPU, ValueError for a GPU that is not there.
        """
        return self.to_device(Device("gpu", index))

    def to_device(self, device: DeviceLike, force_copy: bool = False) -> Self:
        """This value on `device`; the value itself if it is there already, unless `force_copy`.

        Args:
            device: "cpu", "gpu", "gpu:1", a `Device` or a torch.device.
            force_copy: copy where it is on that device already.

        Raises TypeError for an object that names no device, ValueError for a device that is not there.
        """
        target = to_device_object(device)
        if target == self._spec.device and not force_copy:
            return self
        return operation("copy")(self, device=target)

    def __bool__(self) -> bool:
        """True, as in DALI: `if value:` asks whether there is a value. Warns where the elements may have been meant."""
        if self._spec.dtype is bool_:
            kind = type(self).__name__
            warn_once(
                f"truth of a {kind}",
                f"a {kind} is always true, even the result of a comparison: `if a == b:` compares nothing. "
                "`(a == b).numpy().all()` compares the elements; `a is not None` asks whether there is a value",
            )
        return True

    def __getstate__(self) -> Any:
        """Only the value is pickled. A GPU value is copied to the CPU, and is unpickled there."""
        store = (self if self._spec.device.device_type == "cpu" else self.cpu())._value()
        arrays: Any = [a.copy() if not a.flags.c_contiguous else a for a in store.arrays()]
        if not store.n and store.whole is not None:
            arrays = store.whole  # its shape holds the known extents of the samples, see `extent_inference.py`
        return store.dtype, self._spec.ndim, store.layout, arrays, store.batched, store.source_info

    def __setstate__(self, state: Any) -> None:
        wrong = _wrong_state(state)
        if wrong:
            raise ValueError(f"{type(self).__name__}: the pickled state is not a value of ndd: {wrong}")
        dtype, ndim, layout, parts, batched, info = state
        shapes = [a.shape for a in parts]
        whole, parts = (parts, None) if is_array(parts) else (None, parts)
        store = Store(dtype, layout, Device.CPU, shapes, whole=whole, parts=parts, batched=batched, source_info=info)
        self._spec = Spec.of(dtype, ndim, layout, Device.CPU)
        self._store, self._pending, self._index, self._n = store, None, 0, len(shapes)
        self._external = False

    def __copy__(self) -> Self:
        other = type(self)._of_store(self._value())
        other._external = self._external
        return other

    def __deepcopy__(self, memo: Any) -> Self:
        return self.to_device(self._spec.device, force_copy=True).evaluate()


def _wrong_state(state: Any) -> str:
    """The fault of a pickled state, which may be truncated, forged or of another version; "" for a valid one."""
    if not is_tuple(state) or len(state) != 6:
        return f"expected six fields, got {type(state).__name__}"
    dtype, ndim, layout, parts, batched, info = state
    if not isinstance(dtype, DType) or not isinstance(ndim, int) or not isinstance(batched, bool):
        return "expected an element type, a number of dimensions and a truth value"
    if layout is not None and not (isinstance(layout, str) and len(layout) == ndim):
        return f"expected a layout of {ndim} letters, got {layout!r}"
    if is_array(parts) and not len(parts) and parts.ndim == ndim + 1 and parts.dtype == dtype.numpy and batched:
        return ""
    if not is_list(parts) or (not batched and len(parts) != 1):
        return "expected a list of arrays, one for each sample"
    for i, part in enumerate(parts):
        if not is_array(part) or part.dtype != dtype.numpy or part.ndim != ndim:
            got = f"{part.dtype} of shape {part.shape}" if is_array(part) else type(part).__name__
            return f"expected sample {i} as {dtype} with {ndim} dimensions, got {got}"
        if not part.flags.c_contiguous or not part.dtype.isnative:
            return f"expected sample {i} without gaps and in this machine's byte order"
    if info is not None and not (is_list(info) and len(info) == len(parts)):
        return f"expected {len(parts)} sources of samples"
    return ""
