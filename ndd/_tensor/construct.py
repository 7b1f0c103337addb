"""Makes handles of scalars, lists, NumPy, torch and cupy arrays, DLPack, `__array__` and ndd's own values."""

# Users' arguments are checked, whatever the annotations say.
# pyright: reportUnnecessaryIsInstance=false, reportPrivateUsage=false

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from ndd._tensor.array_lists import arrays_alike, batch_of_arrays, check_dimensions
from ndd._tensor.batch import Batch, Samples
from ndd._tensor.convert import convert_array
from ndd._tensor.device import Device, DeviceLike, device as to_device_object, gpu_count
from ndd._tensor.dtype import DType, bfloat16, dense_torch_tensor, dtype as to_dtype, from_framework
from ndd._tensor.handle import Handle, Spec
from ndd._tensor.invariant import unmarked, watched
from ndd._tensor.limits import sample_count
from ndd._tensor.operations import bind_operations, operation
from ndd._tensor.packed import Packed
from ndd._tensor.promotion import largest_exact, type_of_all, type_of_python, type_with_python
from ndd._tensor.python_numbers import array_from_python
from ndd._tensor.store import Store
from ndd._tensor.tensor import Tensor
from ndd._tensor.type_guards import is_array, is_list

if TYPE_CHECKING:
    from ndd._typing import Array, DTypeLike, TensorLike

_PYTHON = (int, float, bool, list, tuple)
_Value = TypeVar("_Value", bound=Handle)


def tensor(
    data: TensorLike | Batch,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    layout: str | None = None,
    pad: bool = False,
) -> Tensor:
    """A new Tensor with a copy of `data`.

    Args:
        data: a number, a (nested) list, a NumPy array, a torch tensor, anything with `__dlpack__`, `__array__` or
            `__cuda_array_interface__`, bytes (uint8), a Tensor, or a Batch (its samples are stacked along a new first
            axis).
        dtype: element type to convert to. Python numbers become i32, f32 or bool without it; arrays keep theirs.
            Python data is converted as NumPy would (2.7 -> 2), arrays and values as `ndd.cast` does (2.7 -> 3).
        device: "cpu" or "gpu"; default: where the data is.
        layout: a letter for each axis, such as "HWC". A Batch gives "N" + its own layout.
        pad: pad the samples of a ragged Batch with zeros; without it they raise ValueError.

    Raises ValueError for lists of uneven lengths and a layout that does not fit, RuntimeError for text and complex
    numbers and for a requested GPU that does not exist, TypeError for anything but numbers.

    >>> import ndd
    >>> ndd.tensor([[1, 2], [3, 4]], dtype=ndd.float32).torch()
    tensor([[1., 2.],
            [3., 4.]])
    """
    data = unmarked(data)
    if isinstance(data, Batch):
        return _batch_to_tensor(data, dtype, device, layout, pad, force_copy=True)
    return build_tensor(data, dtype, device, layout, copy=True)


def as_tensor(
    data: TensorLike | Batch,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    layout: str | None = None,
    pad: bool = False,
) -> Tensor:
    """A Tensor over `data`, sharing its memory when element type and device need no change. See `tensor`.

    An operator on shared memory runs before its call returns, so that a later write to the source cannot change its result.
    (DALI refuses strided arrays; here they are views like any other.)

    Args:
        data: an array, a tensor, a number, a list of numbers, bytes or text; or a Batch.
        dtype, device, layout, pad: as for `tensor`.

    Raises RuntimeError, TypeError and ValueError as `tensor`.

    >>> import ndd, numpy as np
    >>> a = np.zeros(2)
    >>> t = ndd.as_tensor(a)
    >>> a[0] = 7
    >>> t.torch()
    tensor([7., 0.], dtype=torch.float64)
    """
    data = unmarked(data)
    if isinstance(data, Batch):
        return _batch_to_tensor(data, dtype, device, layout, pad, force_copy=False)
    return build_tensor(data, dtype, device, layout, copy=False)


def batch(
    tensors: Iterable[Any] | Array | Batch,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    layout: str | None = None,
) -> Batch:
    """A new Batch with copies of the samples.

    Args:
        tensors: an iterable with a value that `tensor` takes for each sample; or one array or Tensor, whose first axis
            counts the samples; or a Batch.
        dtype, device: as for `tensor`. Without `dtype`, samples of several types get the type of their sum (i64 with f32 is
            f32). Python's numbers among arrays make no type wider: `[np.uint8(1), 2]` is u8. (DALI takes the first sample's
            type, in which 0.5 becomes 0 and 300 becomes 255.)
        layout: a letter for each axis of a sample.

    Raises ValueError for an empty list without `dtype` and a layout that does not fit, OverflowError for Python integers out of
    range, RuntimeError for arrays of different rank and for an integer that the common float type may not represent (beyond
    2**24 in f32), and TypeError for Tensors, numbers or lists of different rank (ValueError if sample 0 is a Tensor whose layout
    an array would get), and for anything but a list of samples, such as a number or a dict.

    >>> import ndd, numpy as np
    >>> ndd.batch([1, 0.5]).dtype.name
    'f32'
    >>> ndd.batch([np.zeros((2, 3)), np.zeros((4, 5))]).shape
    [(2, 3), (4, 5)]
    """
    tensors = unmarked(tensors)
    if isinstance(tensors, Batch):
        return _changed(tensors, dtype, device, layout, force_copy=True).evaluate()
    return build_batch(tensors, dtype, device, layout, copy=True)


def as_batch(
    tensors: Iterable[Any] | Array | Batch,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    layout: str | None = None,
) -> Batch:
    """A Batch over the samples, sharing their memory when element type and device need no change. See `batch`.

    Args:
        tensors: a list of arrays, tensors or numbers; or one array, whose first axis counts the samples; or a Batch.
        dtype, device, layout: as for `batch`.

    Raises RuntimeError, TypeError, ValueError and OverflowError as `batch`.

    >>> import ndd, numpy as np
    >>> ndd.as_batch(np.zeros((2, 4, 6, 3), np.uint8), layout="HWC").shape
    [(4, 6, 3), (4, 6, 3)]
    """
    tensors = unmarked(tensors)
    if isinstance(tensors, Batch):
        return _changed(tensors, dtype, device, layout, force_copy=False)
    return build_batch(tensors, dtype, device, layout, copy=False)


def broadcast(sample: Any, batch_size: int, device: DeviceLike | None = None, dtype: Any = None) -> Batch:
    """See `Batch.broadcast`."""
    batch_size = sample_count("Batch.broadcast", batch_size)
    tensor = (
        sample if isinstance(sample, Tensor) and dtype is None else build_tensor(sample, dtype, None, None, copy=False)
    )
    if device is not None:
        tensor = tensor.to_device(device)
    store = tensor._value()
    array = store.arrays()[0]
    info = None if store.source_info is None else store.source_info * batch_size
    repeated = Store(
        store.dtype, store.layout, store.device, store.shapes * batch_size, parts=[array] * batch_size, source_info=info
    )
    repeated.stream, repeated.ready = store.stream, store.ready
    result = Batch._of_store(repeated)
    result._external = tensor._external
    return result


def make_tensor(array: Any, layout: str | None = None, source_info: Any = None, dtype: DType | None = None) -> Tensor:
    """A Tensor over a NumPy array that is not written to elsewhere (for readers and decoders)."""
    info = None if source_info is None else [source_info]
    kind = dtype or from_framework(array.dtype)
    store = Store(kind, layout, Device.CPU, [tuple(array.shape)], parts=[array], batched=False, source_info=info)
    return Tensor._of_store(store)


def make_batch(
    arrays: Any, layout: str | None = None, source_info: list[Any] | None = None, dtype: DType | None = None
) -> Batch:
    """A Batch over NumPy arrays that are not written to elsewhere: a list of samples, one array `[N, ...]`, or a `Packed`."""
    if isinstance(arrays, Packed):
        kind = dtype or from_framework(arrays.dtype)
        packed = Store(kind, layout, Device.CPU, arrays.shapes, packed=arrays, source_info=source_info)
        return Batch._of_store(packed)
    if is_array(arrays):
        kind = dtype or from_framework(arrays.dtype)
        shapes = [tuple(arrays.shape[1:])] * len(arrays)
        return Batch._of_store(Store(kind, layout, Device.CPU, shapes, whole=arrays, source_info=source_info))
    kind = dtype or from_framework(arrays[0].dtype)
    store = Store(kind, layout, Device.CPU, [a.shape for a in arrays], parts=list(arrays), source_info=source_info)
    return Batch._of_store(store)


def build_tensor(data: Any, dtype: Any, device: DeviceLike | None, layout: str | None, copy: bool) -> Tensor:
    """`tensor` and `as_tensor` for anything but a Batch."""
    if watched:
        data, dtype, device, layout = unmarked((data, dtype, device, layout))
    if layout is not None and not isinstance(layout, str):
        raise ValueError(f"Layout must be a string, got {type(layout)}")
    wanted = None if dtype is None else to_dtype(dtype)
    target = to_device_object(device)
    if isinstance(data, Tensor):
        tensor, fresh = data, False
    else:
        tensor, fresh = _from_foreign(data, wanted)
    if layout and layout != tensor.layout:
        if tensor.ndim != len(layout):
            raise ValueError(
                "A non-empty layout must have the same number of dimensions as the number of dimensions of the Tensor: "
                f"got {len(layout)} ({layout}), expected {tensor.ndim}"
            )
        tensor = _relabelled(tensor, layout)
    changed = _changed(tensor, wanted, target, None, force_copy=copy and not fresh)
    return changed.evaluate() if tensor._external and changed is not tensor else changed


def _relabelled(value: _Value, layout: str) -> _Value:
    """The same memory under another layout."""
    if value._store is None:
        return operation("reshape")(value, layout=layout)
    if layout and len(layout) != value.ndim:
        raise RuntimeError(f"A layout has a letter for each dimension: got {layout!r} for {value.ndim} dimensions")
    result = type(value)._of_store(value._store.relabelled(layout))
    result._external = value._external
    return result


def _changed(value: _Value, dtype: Any, device: DeviceLike | None, layout: str | None, force_copy: bool) -> _Value:
    """`value` with another element type, device or layout where these differ; copied at most once."""
    wanted = None if dtype is None else to_dtype(dtype)
    target = to_device_object(device)
    if wanted is not None and wanted != value.dtype:
        value, force_copy = _converted(value, wanted), False
    if target is not None and target != value.device:
        value, force_copy = value.to_device(target), False
    if layout is not None and layout != value.layout:
        value = _relabelled(value, layout)
    return _copied(value) if force_copy else value


def _converted(value: _Value, wanted: DType) -> _Value:
    store = value._store
    if store is None or not store.on_cpu:
        return operation("cast")(value, dtype=wanted)

    def convert(array: np.ndarray) -> np.ndarray:
        return convert_array(array, store.dtype.name, wanted.name)

    return _mapped(value, store, convert, wanted)


def _copied(value: _Value) -> _Value:
    store = value._store
    if store is None or not store.on_cpu:
        return operation("copy")(value)
    return _mapped(value, store, np.ndarray.copy, store.dtype)


def _mapped(value: _Value, store: Store, function: Callable[[np.ndarray], np.ndarray], dtype: DType) -> _Value:
    """A CPU value with `function` applied to its memory, `store`."""
    dense = store.dense() if store.batched else None
    forms: dict[str, Any] = (
        {"whole": function(dense)} if dense is not None else {"parts": [function(a) for a in store.arrays()]}
    )
    return type(value)._of_store(
        Store(
            dtype,
            store.layout,
            store.device,
            store.shapes,
            batched=store.batched,
            source_info=store.source_info,
            **forms,
        )
    )


def _from_foreign(data: Any, wanted: DType | None) -> tuple[Tensor, bool]:
    """A Tensor over the memory of a foreign object, and whether that memory is new."""
    if data is None:
        raise ValueError("A tensor needs data: got None")
    if isinstance(data, Samples):
        data = data.tolist()
    if isinstance(data, Batch):
        raise TypeError("A Batch was given where one sample is expected")
    if is_array(data):
        return _over_numpy(data), False
    value = from_pipeline(data)
    if isinstance(value, Tensor):
        return value, False
    if isinstance(data, bytes):  # immutable, so they can be shared
        return make_tensor(np.frombuffer(data, np.uint8)), False
    if _is_array_like(data):
        return _over_array_like(data), False
    if hasattr(data, "next_epoch"):  # NumPy would read it from end to end
        raise TypeError(
            "Expected data, got a reader: for batches of it, `for data, ... in reader.next_epoch(batch_size=n)`"
        )
    array, kind = array_from_python(data, wanted)
    return make_tensor(array, dtype=kind), True


def from_pipeline(data: Any) -> Any:
    """A pipeline's output, ours or DALI's, over the same memory and with its layout: a Tensor of a `TensorCPU` or `TensorGPU`,
    a Batch of a list of these; None for anything else."""
    kind = data.__class__
    value = getattr(kind, "__ndd_value__", None)
    if value is not None:
        return value(data)
    if kind.__module__ != "nvidia.dali.tensors":
        return None
    layout = data.layout() or None
    if kind.__name__.startswith("TensorList"):
        return build_batch([data[i] for i in range(len(data))], None, None, layout, copy=False) if len(data) else None
    tensor = _over_array_like(data)
    return _relabelled(tensor, layout) if layout else tensor


def _over_numpy(array: np.ndarray) -> Tensor:
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise RuntimeError(f"Cannot make a tensor of NumPy's type {array.dtype}: expected numbers or booleans")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if type(array) is not np.ndarray:  # numba does not take masked arrays; as in DALI, the mask is ignored
        array = array.view(np.ndarray)
    result = make_tensor(array, dtype=from_framework(array.dtype))
    result._external = True
    return result


def _is_array_like(data: Any) -> bool:
    kind = data.__class__
    return any(
        hasattr(kind, name) or hasattr(data, name)
        for name in ("__dlpack__", "__array__", "__array_interface__", "__cuda_array_interface__")
    )


def _over_array_like(data: Any) -> Tensor:
    """A Tensor over a torch tensor, or over an object with DLPack, the CUDA array interface or NumPy's array protocols."""
    on_gpu = False
    if isinstance(data, torch.Tensor):
        array = dense_torch_tensor(data)
    elif hasattr(data, "__dlpack_device__"):
        on_gpu = int(data.__dlpack_device__()[0]) == 2
        array = _imported(data, on_gpu, torch)
    elif hasattr(data, "__cuda_array_interface__"):
        array = _from_cuda_array(data, torch)
    else:
        return _over_numpy(np.asarray(data))
    if is_array(array):
        return _over_numpy(array)
    if array.device.type == "cpu":
        array = array.resolve_neg()
        if array.dtype == torch.bfloat16:
            result = make_tensor(array.view(torch.uint16).numpy(), dtype=bfloat16)
            result._external = True
            return result
        return _over_numpy(array.numpy())
    return _over_cuda(array, torch)


def _imported(data: Any, on_gpu: bool, torch: Any) -> Any:
    """`data` imported through DLPack, else through the older array interfaces."""
    try:
        return torch.from_dlpack(data)
    except (TypeError, BufferError, RuntimeError):
        if on_gpu and hasattr(data, "__cuda_array_interface__"):
            return _from_cuda_array(data, torch)
        if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
            return np.asarray(data)
        raise


def _from_cuda_array(data: Any, torch: Any) -> Any:
    """A torch tensor over an object with the CUDA array interface, on its GPU: torch would copy it to the current one."""
    address = data.__cuda_array_interface__["data"][0]
    number = f":{operation('gpu_of_address')(address)}" if address and gpu_count() > 1 else ""
    return torch.as_tensor(data, device="cuda" + number)


def _all_ready(stores: list[Store]) -> Any:
    """One event to wait for instead of the events of several values; None if there are none."""
    events = list({id(s.ready): s.ready for s in stores if s.ready is not None}.values())
    if len(events) < 2:
        return events[0] if events else None
    current = torch.cuda.current_stream(stores[0].device.device_id)
    for event in events:
        current.wait_event(event)
    return current.record_event()


def _over_cuda(array: Any, torch: Any) -> Tensor:
    store = Store(
        from_framework(array.dtype),
        None,
        Device("gpu", array.device.index),
        [tuple(array.shape)],
        parts=[array.detach()],
        batched=False,
    )
    if torch.cuda.is_available():
        # Work that torch has queued so far writes this memory: our stream must wait for it.
        store.ready = torch.cuda.current_stream(array.device).record_event()
    result = Tensor._of_store(store)
    result._external = True
    return result


def characters(path: Any) -> Any:
    """A path (str, bytes or os.PathLike) as a Tensor of its characters, a list of paths as a Batch; anything else unchanged."""
    if isinstance(path, str) or hasattr(path, "__fspath__"):
        return make_tensor(np.frombuffer(os.fsencode(path), np.uint8))
    if is_list(path) and path and all(isinstance(p, str | bytes | os.PathLike) for p in path):
        return make_batch([np.frombuffer(os.fsencode(p), np.uint8) for p in path])
    return path


def build_batch(tensors: Any, dtype: Any, device: DeviceLike | None, layout: str | None, copy: bool) -> Batch:
    """The body of `batch` and `as_batch`."""
    if watched:
        tensors, dtype, device, layout = unmarked((tensors, dtype, device, layout))
    wanted = None if dtype is None else to_dtype(dtype)
    target = to_device_object(device)
    if tensors is None:
        raise ValueError("A batch needs data: got None")
    if isinstance(tensors, Samples):
        tensors = tensors._batch._chosen(list(tensors._indices))
    value = from_pipeline(tensors)
    tensors = tensors if value is None else value
    if isinstance(tensors, Batch):
        return _changed(tensors, wanted, target, layout, force_copy=copy)
    if isinstance(tensors, Tensor) or (_is_array_like(tensors) and not is_list(tensors)):
        return _split_first_axis(tensors, wanted, target, layout, copy)
    if isinstance(tensors, str | bytes):
        raise RuntimeError(f"Cannot make a batch of {type(tensors).__name__}: expected an iterable of samples")
    kind = tensors.__class__
    if issubclass(kind, Mapping):
        raise TypeError(
            f"Cannot make a batch of {kind.__name__}, whose keys would be the samples: "
            "ndd.batch(list(d.values())), or one batch for each key"
        )
    if not issubclass(kind, Iterable):
        raise TypeError(f"{kind.__name__!r} object is not iterable as samples of a batch")
    samples: Sequence[Any] = tensors if kind is list or kind is tuple else list(tensors)
    if not samples:
        return _empty_batch(wanted, target, layout)
    return _gather(samples, wanted, target, layout, copy)


def _empty_batch(wanted: DType | None, device: Device | None, layout: str | None) -> Batch:
    if wanted is None:
        raise ValueError("Element type must be specified if the list is empty")
    if layout:
        raise ValueError(f"A layout needs samples to describe: got {layout!r} with an empty list")
    empty = Batch._of_store(Store(wanted, None, Device.CPU, [], parts=[]))
    return empty if device is None or device == Device.CPU else empty.to_device(device)


def _split_first_axis(data: Any, wanted: DType | None, device: Device | None, layout: str | None, copy: bool) -> Batch:
    tensor = build_tensor(data, wanted, device, None, copy)
    if tensor.ndim == 0:
        raise ValueError("Cannot create a batch from a scalar")
    store = tensor._value()
    whole = store.arrays()[0]
    own = layout if layout is not None else (store.layout or "")[1:] or None
    shape = tuple(whole.shape[1:])
    if own and len(own) != len(shape):
        raise ValueError(
            "A non-empty layout must have the same number of dimensions as the samples of the batch: "
            f"got {len(own)} ({own}), expected {len(shape)}"
        )
    split = Store(store.dtype, own, store.device, [shape] * whole.shape[0], whole=whole)
    split.stream, split.ready = store.stream, store.ready
    result = Batch._of_store(split)
    if not split.shapes:
        result._spec = Spec.of(split.dtype, len(shape), own, split.device)
    result._external = tensor._external
    return result


def _gather(samples: Any, wanted: DType | None, device: Device | None, layout: str | None, copy: bool) -> Batch:
    if device is not None and device.device_id is not None and not any(_is_on_gpu(s) for s in samples):
        on_cpu = _gather(samples, wanted, Device.CPU, layout, copy=False)
        moved = on_cpu.to_device(device)  # one copy for all of them
        return moved.evaluate() if on_cpu._external else moved
    alike = arrays_alike(samples, wanted, layout, copy)
    if alike is not None:
        return batch_of_arrays(alike, layout, copy)
    handles: list[Any] = []
    for i, sample in enumerate(samples):
        if sample is None:
            raise TypeError(f"Tensors must be array-like types or numbers. Got `None` at index {i}")
        numbers = wanted is None and sample.__class__ in _PYTHON  # the type of numbers depends on the other samples
        handles.append(None if numbers else build_tensor(sample, wanted, device, None, copy))
        device = device or (Device.CPU if numbers else handles[0].device)
    if wanted is None:
        _make_alike(handles, samples, device, copy)
    check_dimensions(samples, handles, layout)
    return _joined(handles, layout)


def _make_alike(handles: list[Any], samples: Any, device: Device | None, copy: bool) -> None:
    """Converts the samples that are Python numbers, and brings all samples to one element type."""
    arrays = [h.dtype for h in handles if h is not None]
    wanted, kinds = None, {}
    if arrays and len(arrays) < len(handles):
        kinds = {i: np.array(samples[i]).dtype.kind for i, h in enumerate(handles) if h is None}
        wanted = type_with_python(type_of_all(arrays), set(kinds.values()))
    for i, handle in enumerate(handles):
        if handle is None:  # integers among floats are checked below
            apart = wanted is not None and wanted.kind is DType.Kind.float and kinds[i] != "f"
            handles[i] = build_tensor(samples[i], None if apart else wanted, device, None, copy)
    types = [h.dtype for h in handles]
    if all([kind is types[0] for kind in types]):
        return
    wanted = wanted or (type_of_all(types) if arrays else type_of_python(types))
    for i, handle in enumerate(handles):
        if handle.dtype != wanted:
            handles[i] = _widened(handle, wanted, i) if arrays else build_tensor(samples[i], wanted, device, None, copy)


def _widened(sample: Tensor, wanted: DType, i: int) -> Tensor:
    """A sample in the common type of all samples; RuntimeError if one of its numbers would change."""
    most = largest_exact(sample.dtype, wanted)
    if most is not None:
        values = np.asarray(sample.cpu())
        beyond = values[(values > most) | (values < -most if values.dtype.kind == "i" else False)]
        if beyond.size:
            raise RuntimeError(
                f"The samples of a batch have one type. The common type of these is {wanted}, which may not represent "
                f"{beyond[0]} of sample {i}, {sample.dtype}. Choose the type with `dtype=`"
            )
    return _converted(sample, wanted)


def _is_on_gpu(sample: Any) -> bool:
    if isinstance(sample, Tensor):
        return sample.device.device_id is not None
    if is_array(sample) or not _is_array_like(sample):
        return False
    place = getattr(sample, "__dlpack_device__", None)
    return place()[0] == 2 if place is not None else hasattr(sample, "__cuda_array_interface__")


def _joined(handles: list[Tensor], layout: str | None) -> Batch:
    stores = [h._value() for h in handles]
    first = stores[0]
    info = [s.source_info[0] if s.source_info else None for s in stores]
    store = Store(
        first.dtype,
        layout or first.layout,
        first.device,
        [s.shapes[0] for s in stores],
        parts=[s.arrays()[0] for s in stores],
        source_info=info if any(i is not None for i in info) else None,
    )
    if not first.on_cpu:
        store.stream = next((s.stream for s in stores if s.stream is not None), None)
        store.ready = _all_ready(stores)
    result = Batch._of_store(store)
    result._external = any(h._external for h in handles)
    return result


def _batch_to_tensor(
    data: Batch, dtype: Any, device: DeviceLike | None, layout: str | None, pad: bool, force_copy: bool
) -> Tensor:
    if layout and data._spec.ndim is not None and len(layout) != data._spec.ndim + 1:
        raise ValueError(
            "A non-empty layout must have the same number of dimensions as the Tensor: "
            f"got {len(layout)} ({layout}), expected {data._spec.ndim + 1}"
        )
    stacked = operation("stack_batch")(data, pad=pad, layout=layout, force_copy=force_copy)
    return _changed(stacked, dtype, device, None, force_copy=False)


bind_operations(tensor=tensor, build_tensor=build_tensor, build_batch=build_batch, broadcast=broadcast)
