"""A `.cuda` for operators whose shapes follow from data, which a GPU operator would have to wait for too."""

from __future__ import annotations

from typing import Any

from ndd._cuda import transfer
from ndd._operator.on_cpu import store_of
from ndd._tensor import Device, Spec


def computed_on_host(launch: Any, *operands: Any, **arguments: Any) -> Any:
    """The results of `.batch`, computed on the CPU and copied to the GPU: `op.cuda(computed_on_host)`.

    The operator is declared with `reads="cpu"`, so that its inputs are in host memory.
    """
    call = launch.call
    results = call.op.batch(call, *operands, **arguments)
    values = [results] if call.cached_call.single else results
    stores = [
        transfer.to_gpu(store_of(v, Spec.of(s.dtype, s.ndim, s.layout, Device.CPU)), call.device)
        for v, s in zip(values, call.outs, strict=True)
    ]
    return stores[0] if call.cached_call.single else stores
