"""`ndd.copy`: a new value with the same content, on any device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cpu.gather import PIECE, gather_loop
from ndd._cuda import transfer
from ndd._cuda.scope import on_stream, wait_for
from ndd._operator import Call, like, operator
from ndd._tensor import Store, bind_operations
from ndd._tensor.memory import host_empty

_LARGE = 1 << 19  # from this many bytes on threads share a copy


@operator(reads="anywhere")
def copy(input, /):
    """Copies the samples to new memory, on the same device or on another (`device=`).

    Works for every element type, rank and layout; all of them stay: `out[...] = in[...]`. A copy to the GPU does not
    wait; one to the CPU waits until the data is there.

    Raises RuntimeError for complex numbers and text and without a GPU, ValueError for lists of uneven lengths and unknown
    devices, TypeError for other objects.

    Args:
        input: any element type, rank and layout.

    >>> import ndd
    >>> ndd.copy(ndd.tensor([1, 2])).torch()
    tensor([1, 2], dtype=torch.int32)
    """
    return like(input)


copy.operator.keeps_shape = True


# A batch: samples that lie together are copied together.
@copy.batch
def _(call, input):
    """Copies to reused memory, with several threads if there is much to copy."""
    store = _samples(call, input)
    if not store.on_cpu:
        return _fetched(call, store)
    dense = store.dense() if store.batched else None
    if dense is not None and dense.flags.c_contiguous:
        whole = host_empty(dense.shape, dense.dtype)
        _copy_flat(call, dense.reshape(-1), whole.reshape(-1))
        return _like(store, whole=whole)
    flat = store.flat
    if flat is None or len(store.shapes) < 2:
        return _gathered(call, store)
    copied = host_empty(flat.shape, flat.dtype)
    _copy_flat(call, flat, copied)
    return _like(store, flat=copied)


@copy.cuda
def _(launch, input):
    store = _samples(launch.call, input)
    if store.on_cpu:
        moved = transfer.to_gpu(store, launch.device, launch.call.spread)
    else:
        moved = transfer.between_gpus(store, launch.device)
    moved.dropped = store.dropped
    return moved


def _samples(call: Call, input: Any) -> Store:
    """The value to copy: a single Tensor is repeated `batch_size` times."""
    store = input._store
    return store if store.n == call.n else store.select([0] * call.n)


def _gathered(call: Call, store: Store) -> Store:
    """Copies samples that are not adjacent, one after the other."""
    arrays = store.arrays()
    if len(arrays) == 1:
        return _like(store, parts=[arrays[0].copy()])
    flat = host_empty(store.element_count(), store.dtype.numpy)
    gathered = _like(
        store, **({"whole": flat.reshape(len(arrays), *arrays[0].shape)} if store.uniform() else {"flat": flat})
    )
    if flat.nbytes < _LARGE:
        np.concatenate([a.reshape(-1) for a in arrays], out=flat)
    else:
        packed = store.contiguous()
        ends = np.add.accumulate(packed.sizes) * flat.itemsize
        _copy_bytes(call, packed.pointers(), ends, flat, (packed, arrays))
    return gathered


def _copy_flat(call: Call, source: np.ndarray, target: np.ndarray) -> None:
    if source.nbytes < _LARGE:
        np.copyto(target, source)
    else:
        _copy_bytes(call, np.array([source.ctypes.data]), np.array([source.nbytes]), target, source)


def _copy_bytes(call: Call, sources: np.ndarray, ends: np.ndarray, target: np.ndarray, held: Any) -> None:
    """Threads share the pieces inside one compiled loop. Sixteen Python threads would take 1.5 times as long."""
    fields = sources, ends, target.ctypes.data
    call.parallel_for(gather_loop, fields, -(-target.nbytes // PIECE), 2 * target.nbytes, (target, held))


def _like(store: Store, **memory: Any) -> Store:
    result = Store(store.dtype, store.layout, store.device, store.shapes, source_info=store.source_info, **memory)
    result.dropped = store.dropped
    return result


def _fetched(call: Call, store: Store) -> Store:
    """Copies from a GPU to the CPU, on the stream of the GPU that holds the value."""
    number = store.device.device_id or 0
    stream = call.context._stream_on(number)
    wait_for(store, stream)
    with on_stream(stream, number):
        return transfer.to_cpu(store)


bind_operations(copy=copy)
