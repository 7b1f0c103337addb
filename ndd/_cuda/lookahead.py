"""Lookahead on a GPU: an operator on the coming batch, on a stream of its own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ndd._cuda.launch import Launch
from ndd._cuda.scope import on_stream
from ndd._execution.kept import Kept
from ndd._execution.lookahead import computed
from ndd._execution.stream import Stream
from ndd._tensor import Store

if TYPE_CHECKING:
    from ndd._operator.plan import Operand

_streams = Kept(lambda number: Stream(device_id=number))


def looked_ahead(launch: Launch, operand: Operand, compute: Callable[[Any, Operand], Store]) -> Store:
    """`compute(launch, operand)` for a deterministic operator with one input, perhaps computed ahead of the call."""
    job = launch.job
    store = operand._store
    if not job.eager or len(store.shapes) != operand.n:
        return compute(launch, operand)

    def ahead(coming: Store) -> Store:
        number = launch.device.device_id
        stream = _streams(number)
        sibling = copy.copy(job)
        sibling.stream, sibling.n = stream, coming.n
        found = type(operand)(coming, operand.spec, coming.n)
        with on_stream(stream, number):
            result = compute(Launch(sibling, launch.plan, [found], None, coming.n), found)
        result.stream = stream._torch
        return result

    return computed(store, job.prepared, lambda: compute(launch, operand), ahead)
