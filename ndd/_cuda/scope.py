"""Working on a GPU: the current device and stream of torch, and waiting for memory that another stream writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ndd._tensor import Store


@contextmanager
def on_stream(stream: Any, device_id: int) -> Iterator[None]:
    """Makes torch allocate and copy on `stream` of GPU `device_id`."""
    import torch

    with torch.cuda.device(device_id), torch.cuda.stream(stream._torch):
        yield


def wait_for(store: Store, stream: Any) -> None:
    """Orders `stream` after whatever still writes `store`, and tells the allocator that `stream` reads it."""
    ours = stream._torch
    if store.stream is not None and store.stream != ours:
        ours.wait_stream(store.stream)
    if store.ready is not None:
        ours.wait_event(store.ready)
    if store.stream is None or store.stream != ours:
        for tensor in store.owners():
            tensor.record_stream(ours)


def raw_handle(stream: Any) -> int:
    """The `cudaStream_t` of a context's stream."""
    return stream.handle
