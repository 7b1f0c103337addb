"""Operations of values' methods: picking samples, indexing inside them, stacking a batch into one tensor.

These change what a handle is (Batch -> Tensor) or only how memory is seen, so they have no kernels; they are scheduled
like any operator.
"""

# This package may use attributes that are private to users, such as `Handle._value`.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ndd._cuda.cupy_module import cupy
from ndd._cuda.scope import on_stream, wait_for
from ndd._execution.schedule import schedule
from ndd._operator.call import stored
from ndd._tensor import Batch, Spec, Store, Tensor, bind_operations
from ndd._tensor.operations import operation
from ndd._tensor.slicing import index_handles, result_layout, subscript as subscript_store


def _scheduled(
    name: str,
    kind: Any,
    work: Callable[[Any], list[Store]],
    inputs: list[Any],
    spec: Spec,
    n: int | None,
    at_once: bool,
) -> Any:
    """A handle of the result of `work` on `inputs`, run when the mode says so."""
    work.handles = inputs  # type: ignore[attr-defined]  # for a profile, as those of a `Call`
    invocation = schedule(name, work, tuple(inputs), at_once=at_once)
    return kind._of_pending(invocation, 0, spec, n)


def subscript(value: Any, indices: tuple[Any, ...]) -> Any:
    """`tensor[...]` and `batch.slice[...]`."""
    n = value._n
    for handle in index_handles(indices):
        if isinstance(handle, Batch):
            size = handle.batch_size
            if isinstance(value, Batch) and size != value.batch_size:
                raise ValueError(f"Inconsistent batch size: {size} != {value.batch_size}")
    dropped = sum(not isinstance(r, slice) for r in indices)
    spec = Spec.of(value.dtype, value.ndim - dropped, result_layout(value.layout, indices), value.device)

    def work(invocation: Any) -> list[Store]:
        return [subscript_store(stored(value), indices)]

    bounds = index_handles(indices)
    result = _scheduled("slice", type(value), work, [value, *bounds], spec, n, value._store is not None and not bounds)
    result._external = value._external
    return result


def choose_samples(batch: Batch, indices: list[int]) -> Batch:
    """`batch.select([...])`."""

    def work(invocation: Any) -> list[Store]:
        return [stored(batch).select(indices)]

    result = _scheduled("select", Batch, work, [batch], batch._spec, len(indices), batch._store is not None)
    result._external = batch._external
    return result


def choose_sample(batch: Batch, index: int) -> Tensor:
    """`batch.select(i)`."""

    def work(invocation: Any) -> list[Store]:
        return [stored(batch).sample(index)]

    return _scheduled("select", Tensor, work, [batch], batch._spec, 1, batch._store is not None)


def join_batches(batches: list[Batch], order: list[int]) -> Batch:
    """The samples of several batches as one batch of views: sample i is number `order[i]` of their concatenation.

    They have one element type, rank and layout (a batch without a layout goes with any), and are on one device.
    """
    first = batches[0]
    layout = next((b.layout for b in batches if b.layout), None)
    for i, batch in enumerate(batches):
        kind, own = (batch.dtype, batch.ndim, batch.layout or layout), (first.dtype, first.ndim, layout)
        if kind != own or batch.device != first.device:
            raise ValueError(
                f"Batches of one type, rank, layout and device can be joined: batch 0 is {first.dtype} {first.ndim}-D "
                f"{layout or ''} on {first.device}, batch {i} {batch.dtype} {batch.ndim}-D {batch.layout or ''} on {batch.device}"
            )
    if len(order) == first.batch_size and order == list(range(len(order))) and len(batches) == 1:
        return first

    def work(invocation: Any) -> list[Store]:
        stores = [stored(batch) for batch in batches]
        arrays = [a for s in stores for a in s.arrays()]
        shapes = [shape for s in stores for shape in s.shapes]
        infos = [info for s in stores for info in s.source_info or [None] * s.n]
        result = Store(
            first.dtype, layout, first.device, [shapes[i] for i in order], parts=[arrays[i] for i in order],
            source_info=[infos[i] for i in order] if any(s.source_info for s in stores) else None,
        )  # fmt: skip
        return [result]

    spec = Spec.of(first.dtype, first.ndim, layout, first.device)
    result = _scheduled("join", Batch, _on_device(work, *batches), batches, spec, len(order), False)
    result._external = any([b._external for b in batches])
    return result


def stack_batch(batch: Batch, pad: bool = False, layout: str | None = None, force_copy: bool = False) -> Tensor:
    """`as_tensor(batch)`: the samples along a new first axis; layout "N" + theirs."""
    own = layout or (f"N{batch.layout or ''}" if batch.layout or batch._spec.ndim == 0 else None)
    ndim = None if batch._spec.ndim is None else batch._spec.ndim + 1

    def work(invocation: Any) -> list[Store]:
        store = stored(batch)
        if not store.uniform():
            if not pad:
                raise ValueError(
                    "The batch has a non-uniform shape: its samples cannot make one tensor. `pad=True` pads them with "
                    f"zeros. Shapes: {_few(store.shapes)}"
                )
            store = operation("pad")(Batch._of_store(store)).evaluate()._store
        whole = store.dense()
        if whole is None:
            whole = store.stacked()
        elif force_copy:
            whole = whole.copy() if store.on_cpu else whole.clone()
        shape = tuple(whole.shape)
        result = Store(store.dtype, own, store.device, [shape], parts=[whole], batched=False)
        result.stream, result.ready = store.stream, store.ready
        return [result]

    spec = Spec.of(batch.dtype, ndim, own, batch.device)
    return _scheduled("as_tensor", Tensor, _on_device(work, batch), [batch], spec, 1, False)


def _on_device(work: Callable[[Any], list[Store]], *values: Any) -> Callable[[Any], list[Store]]:
    """The work with the context's stream current, for values on a GPU."""
    number = values[0].device.device_id
    if number is None:
        return work

    def placed(invocation: Any) -> list[Store]:
        stream = invocation.context._stream_on(number)
        invocation.stream = stream
        for value in values:
            wait_for(stored(value), stream)
        with on_stream(stream, number):
            results = work(invocation)
        for store in results:
            store.stream = getattr(stream, "_torch", None)
        return results

    return placed


def gpu_of_address(address: int) -> int:
    """The number of the GPU whose memory is there."""
    return int(cupy().cuda.runtime.pointerGetAttributes(address).device)


def _few(shapes: list[tuple[int, ...]]) -> str:
    distinct = sorted(set(shapes))
    return ", ".join(map(str, distinct[:4])) + (", ..." if len(distinct) > 4 else "")


bind_operations(
    subscript=subscript, choose_samples=choose_samples, choose_sample=choose_sample, stack_batch=stack_batch,
    gpu_of_address=gpu_of_address,
)  # fmt: skip
