"""Values between the CPU and GPUs: one copy for a batch, through pinned memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cuda.launch import pinned_empty
from ndd._tensor import Device, Store
from ndd._tensor.dtype import bfloat16, torch_dtype
from ndd._tensor.memory import torch_device


def to_gpu(store: Store, device: Device) -> Store:
    """A CPU value on a GPU, without waiting."""
    staged = pinned_empty(store.nbytes())
    numpy = staged.numpy().view(store.dtype.numpy)
    start = 0
    whole = store.dense()
    if whole is not None:
        numpy[:] = whole.reshape(-1)
    else:
        for array in store.arrays():
            numpy[start : start + array.size] = array.reshape(-1)
            start += array.size
    flat = staged.to(torch_device(device), non_blocking=True).view(torch_dtype(store.dtype))
    return _shaped(store, device, flat)


def to_cpu(store: Store) -> Store:
    """A GPU value on the CPU; waits for it."""
    import torch

    flat = _flat(store)
    host = pinned_empty(flat.numel() * flat.element_size())
    host.copy_(flat.view(torch.uint8) if flat.numel() else host, non_blocking=True)
    if torch.cuda.is_available():
        torch.cuda.current_stream(store.device.device_id).synchronize()
    kind = np.uint16 if store.dtype is bfloat16 else store.dtype.numpy
    return _shaped(store, Device.CPU, host.numpy().view(kind))


def between_gpus(store: Store, device: Device) -> Store:
    """A GPU value copied to the same or another GPU, without waiting."""
    flat = _flat(store)
    target = torch_device(device)
    return _shaped(store, device, flat.clone() if flat.device == target else flat.to(target, non_blocking=True))


def _flat(store: Store) -> Any:
    """All elements in one 1-D tensor."""
    import torch

    if store.flat is not None:
        return store.flat
    whole = store.dense()
    if whole is not None:
        flat = whole.contiguous().reshape(-1)
        return flat.as_strided(flat.shape, (1,))  # to torch one element is contiguous whatever its stride says
    parts = [t.reshape(-1) for t in store.arrays()]
    return (
        torch.cat(parts) if parts else torch.empty(0, dtype=torch_dtype(store.dtype), device=torch_device(store.device))
    )


def _shaped(store: Store, device: Device, flat: Any) -> Store:
    forms: dict[str, Any] = {"flat": flat}
    if store.shapes and store.uniform():
        forms = {"whole": flat.reshape((len(store.shapes), *store.shapes[0]))}
    return Store(
        store.dtype, store.layout, device, store.shapes, batched=store.batched, source_info=store.source_info, **forms
    )
