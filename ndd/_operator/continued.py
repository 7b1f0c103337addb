"""A result worked on piece by piece while it lies in the cache, for the one call that takes it (`.continues`).

A spectrogram is three times the mel bands that are made of it. Of 64 recordings it is 19 MB: written by one operator and read
by the next it took more time than all its Fourier transforms. When a mel filter bank has been called on a spectrogram that
is not begun, and that nobody else holds, it is made in pieces of some hundred columns, each goes through the triangles at once,
and the whole never exists. It is the same arithmetic, so the same bits, as one operator after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ndd._execution.errors import raise_signalled
from ndd._operator import on_cpu
from ndd._operator.call import maker_of
from ndd._tensor import Store
from ndd._tensor.operand import Operand

if TYPE_CHECKING:
    from ndd._operator.call import Call


class Continuation(NamedTuple):
    """What the next call does with a piece, and where its output lies."""

    work: Callable[..., None]  # what the role `.continues` returned
    store: Store


def announce(call: Call) -> None:
    """Tells the call that makes input 0, while it has not begun, that this one will take it."""
    first = maker_of(call.handles[0])
    if first is None or call.device.device_id is not None:
        return
    if not first.op.ours or first.op.name != call.op.continues[0]:  # type: ignore[index]
        return
    if first.device == call.device and first.n == call.n and first.batched == call.batched and first.settled.single:
        first.taker = call


def continuation(call: Call, shapes: np.ndarray) -> Continuation | None:
    """What to do with pieces of the output of this call, of these shapes, in place of making it. None if somebody holds it,
    if nobody waits for it, or if what does would fail."""
    taker = call.taker
    if taker is None or not taker.holds_its_input_alone() or not call.n:
        return None
    try:
        if taker.settled.handles or any([h is not None for h in taker.handles[1:]]):
            return None
        spec = taker.settled.specs[0]
        operand = Operand(Store(spec.dtype, spec.layout, spec.device, shapes), spec, call.n)
        plan = taker._plan([operand], taker.arguments(), call.n, False)
        work = taker.op.continues[1](operand, plan)
        return None if work is None else Continuation(work, on_cpu.allocated(plan.shapes, taker.outs[0]))
    except Exception as error:  # the taker itself meets it too
        raise_signalled(error)
        return None


def hand_over(call: Call, made: Continuation, shapes: np.ndarray) -> Store:
    """Gives the next call its output, complete now. Returns what stands for the output of this one, which nobody looks at: it
    has the shapes, and no numbers."""
    spec = call.outs[0]
    # Views of one array: to broadcast each by itself took 0.3 ms of a batch of 64.
    nothing = np.broadcast_to(np.full(1, np.nan, spec.dtype.numpy), tuple(np.maximum.reduce(shapes).tolist()))
    parts = [nothing[tuple(map(slice, extents))] for extents in shapes.tolist()]
    call.taker.ready_made = made.store
    return Store(spec.dtype, spec.layout, spec.device, shapes, parts=parts)
