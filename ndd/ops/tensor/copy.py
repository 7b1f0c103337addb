"""`ndd.copy`: a new value with the same content, on any device."""

from __future__ import annotations

from typing import Any

from ndd._operator import like, operator
from ndd._tensor import Store, bind_operations


@operator(transfers=True)
def copy(input, /):
    """Copies the samples to new memory, on the same device or on another (`device=`).

    Works for every element type, rank and layout; shapes and layout stay. A copy to the GPU does not wait; one to
    the CPU waits until the data is there.

    >>> import ndd
    >>> ndd.copy(ndd.tensor([1, 2])).torch()
    tensor([1, 2], dtype=torch.int32)
    """
    return like(input)


@copy.views
def _(job, store: Store) -> Store:
    if job.device.device_id is None and store.on_cpu:
        return _copied(store)
    from ndd._cuda import transfer

    if job.device.device_id is None:
        return _fetched(job, store)
    return transfer.to_gpu(store, job.device) if store.on_cpu else transfer.between_gpus(store, job.device)


def _copied(store: Store) -> Store:
    dense = store.dense() if store.batched else None
    forms: dict[str, Any] = (
        {"whole": dense.copy()} if dense is not None else {"parts": [a.copy() for a in store.arrays()]}
    )
    return Store(store.dtype, store.layout, store.device, store.shapes, source_info=store.source_info, **forms)


def _fetched(job, store: Store) -> Store:
    """GPU -> CPU: the copy runs on the stream of the GPU that holds the value."""
    from ndd._cuda import transfer
    from ndd._cuda.scope import on_stream, wait_for

    number = store.device.device_id or 0
    stream = job.context.stream_on(number)
    wait_for(store, stream)
    with on_stream(stream, number):
        return transfer.to_cpu(store)


bind_operations(copy=copy)
