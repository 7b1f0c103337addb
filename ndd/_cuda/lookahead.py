"""Lookahead on a GPU: an operator on the coming batch, on a stream of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ndd._cuda.scope import on_stream, wait_for
from ndd._execution.kept import Kept
from ndd._execution.lookahead import computed
from ndd._execution.stream import Stream
from ndd._tensor import Store
from ndd._tensor.operand import Operand

if TYPE_CHECKING:
    from ndd._operator.call import Call

_streams = Kept(lambda number: Stream(device_id=number), per="thread")  # batches that are computed at once do not wait


def looked_ahead(call: Call, operand: Operand, compute: Callable[[Call, Operand], Store]) -> Store:
    """`compute(call, operand)` for a deterministic operator with one input, perhaps computed ahead of the call."""
    store = operand._store
    if not call.eager or not operand.varies:
        return compute(call, operand)

    def ahead(coming: Store) -> Store:
        number = call.device.device_id
        stream = _streams(number)
        with on_stream(stream, number):
            result = compute(call.on(coming, stream), Operand(coming, operand.spec, coming.n))
            result.ready = stream._torch.record_event()  # the stream itself goes on with other batches
        return result

    result = computed(store, call.settled, lambda: compute(call, operand), ahead)
    if result.ready is not None:
        wait_for(result, call.stream)
        result.ready = None
    return result
