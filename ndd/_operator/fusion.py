"""Fusion: a result that only one call takes is computed only as far as that call needs it (the role `.fuses`).

One question decides: *does one waiting call alone hold my output, and can it plan from shapes?* `_can_take` and `_holds_alone`
answer it, both for the maker (`waiting`) and for the call that waits (`joined`). If so,

* a decoder decodes only the part of its images that the call reads (`window`);
* a spectrogram is handed over in pieces of a few hundred columns, which are still in the cache, and is never stored
  (`continuation`): for 64 recordings it has 19 MB, three times the mel bands that are made from it, and writing and reading
  it took longer than all its Fourier transforms;
* on a GPU the kernels that resample images normalise the pixels that they make (`joined`).

The arithmetic, and so every bit, is the same as with one operator after the other. `.fuses` of the waiting operator names
the operator (or its `.cu` file, or "decoders") that makes input 0, and decides which of its work can be done there.
"""

# This package may use attributes that are private to users, such as `Handle._value`.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ndd._execution import observation
from ndd._execution.errors import raise_signalled
from ndd._operator import on_cpu
from ndd._operator.inputs import stored
from ndd._operator.naming import source_info_of
from ndd._operator.plan import Plan
from ndd._tensor import Store
from ndd._tensor.operand import Operand

if TYPE_CHECKING:
    from ndd._operator.call import Call

DECODERS = "decoders"
_HELD_HERE = 2  # the reference count of an input that only its call holds


class Waiting(NamedTuple):
    """The only call that holds an output which does not exist yet: that input without memory, its plan, and the work of
    `.fuses`."""

    call: Call
    input: Operand
    plan: Plan
    answer: Any


def announce(call: Call, pending: Any) -> bool:
    """Tells the call that makes input 0, if it has not started, that this call will take its output. Returns whether this
    call should compute both, as on a GPU if the other call is not queued yet."""
    maker, fuses = _maker_of(pending), call.op.fuses
    if maker is None:
        return False
    if call.device.device_id is not None:
        return not pending.queued and _fits(maker, call)
    key = maker.op.name if maker.op.name in fuses and maker.op.ours else DECODERS
    if key in fuses:
        _, needs = fuses[key]
        named = call.cached_call.named
        if not needs or any([named[name] is not None for name in needs]):
            maker.taker = call
    return False


def _can_take(maker: Call, taker: Call, key: str | None) -> bool:
    """Whether `taker` can fuse with `maker`, and both work on the same batch on the same device."""
    return (
        key in taker.op.fuses
        and (maker.device, maker.n, maker.batched) == (taker.device, taker.n, taker.batched)
        and maker.cached_call.single
        and not maker.cached_call.fewer
    )


def _holds_alone(taker: Call) -> bool:
    """Whether no other call can need input 0 of a call."""
    return sys.getrefcount(taker.handles[0]) <= _HELD_HERE


def waiting(call: Call, shapes: np.ndarray, key: str) -> Waiting | None:
    """The one call that takes the output of this one, if the output has these shapes. None if the output has other references,
    if no call waits for it, or if the waiting call would fail."""
    taker = call.taker
    if taker is None or not call.n or not (_can_take(call, taker, key) and _holds_alone(taker)):
        return None
    # The values of arguments and further inputs may have to wait for this call.
    cached_call = taker.cached_call
    if any([h._store is None for h in cached_call.handles]) or any([h is not None for h in taker.handles[1:]]):
        return None
    try:
        spec = cached_call.specs[0]
        operand = Operand(Store(spec.dtype, spec.layout, spec.device, shapes), spec, call.n)
        return _asked(taker, operand, key)
    except Exception as error:  # the taker raises it itself
        raise_signalled(error)
        return None


def _asked(taker: Call, operand: Operand, key: str) -> Waiting:
    operands = [operand] + [None] * (len(taker.op.inputs) - 1)
    plan = taker._plan(operands, taker.arguments(), taker.n, False)
    return Waiting(taker, operand, plan, taker.op.fuses[key][0](operand, plan))


# ---- windows of images


def window(call: Call, shapes: np.ndarray) -> np.ndarray | None:
    """The part of each image HWC of this call that will be read, for images of these `shapes`: int64 `[N, 4]`, y0, x0, y1,
    x1. None for whole images. Pixels outside may hold anything."""
    waiter = waiting(call, shapes, DECODERS)
    if waiter is None or waiter.input.layout != "HWC":
        return None
    starts, ends = waiter.answer
    # A window outside of the image reads the pixels at the image's edge.
    starts = np.clip(starts, 0, shapes[:, :2] - 1)
    return np.concatenate((starts, np.clip(ends, starts + 1, shapes[:, :2])), axis=1).astype(np.int64)


# ---- pieces of an output


class Continuation(NamedTuple):
    """The waiting call's function for a piece, and the store of its output."""

    work: Callable[..., None]
    store: Store


def continuation(call: Call, shapes: np.ndarray) -> Continuation | None:
    """The function that takes pieces of this call's output, which has these shapes, so that it is not stored."""
    waiter = waiting(call, shapes, call.op.name)
    if waiter is None or waiter.answer is None:
        return None
    return Continuation(waiter.answer, on_cpu.allocated(waiter.plan.shapes, waiter.call.outs[0]))


def hand_over(call: Call, receiver: Continuation, shapes: np.ndarray) -> Store:
    """Passes its complete output to the waiting call. Returns a placeholder for the output of this call, which is never read: it
    has the shapes, and NaN as values."""
    spec = call.outs[0]
    # Views of one array: broadcasting each by itself took 0.3 ms for a batch of 64.
    nothing = np.broadcast_to(np.full(1, np.nan, spec.dtype.numpy), tuple(np.maximum.reduce(shapes).tolist()))
    parts = [nothing[tuple(map(slice, extents))] for extents in shapes.tolist()]
    call.taker.ready_made = receiver.store
    if observation.active is not None:
        observation.active.note(f"fused: made together with {call.taker.op.name}, piece by piece")
    return Store(spec.dtype, spec.layout, spec.device, shapes, parts=parts)


# ---- one launch for two operators


def joined(call: Call, launch: Callable[..., Store]) -> tuple[Store, Store] | None:
    """The output of this call, made by the kernels of the call that makes its input, and that input, which has shapes but no
    memory. None if that call has begun, if the input has other references, or if it would fail. `launch`: see
    `on_gpu.joined`."""
    pending = call.handles[0]._pending
    maker = _maker_of(pending)
    if maker is None or pending.queued or not (_fits(maker, call) and _holds_alone(call)):
        return None
    try:
        maker.context, maker.stream = call.context, call.stream
        for handle in call.cached_call.handles:  # checked before the wait for a decoder, for example
            stored(handle)
        stores = [None if s is None else s.contiguous() for s in maker._inputs()]
        operands = maker._operands(stores)
        plan = maker._plan(operands, maker.arguments(), maker.n, False)
        spec = call.cached_call.specs[0]
        between = Store(spec.dtype, spec.layout, spec.device, np.asarray(plan.shapes))
        between.source_info = source_info_of(stores)
        waiter = _asked(call, Operand(between, spec, call.n), maker.op.cuda_source)  # type: ignore[arg-type]
        if not waiter.answer:
            return None
        result = launch(maker, plan, operands, waiter.input, waiter.plan, call.outs[0])
        if observation.active is not None:
            observation.active.note(f"fused: made by the kernels of {maker.op.name}, which has no result of its own")
        return result, between
    except Exception as error:  # running both calls raises the right error
        raise_signalled(error)
        return None


def _fits(maker: Call, call: Call) -> bool:
    """Whether the GPU kernels of `maker` can also do the work of `call` on its output."""
    return (
        call.device.device_id is not None
        and maker.op.ours
        and maker.op.cuda is not None
        and _can_take(maker, call, maker.op.cuda_source)
        and maker.outs[0].layout == call.cached_call.specs[0].layout
        and (maker.op.frames is False or "F" not in (maker.outs[0].layout or ""))
    )


def _maker_of(pending: Any) -> Call | None:
    """The call that will make a value; None if it has begun, or if the value is not made by an operator."""
    if pending is None or pending.begun:
        return None
    maker = getattr(pending.work, "__self__", None)  # `work` is `Call.run` of the call
    return maker if hasattr(maker, "ready_made") else None
