"""Results worked on while they lie in the cache, for the one call that takes them (`.continues`).

A loop over sound calls one operator on the result of another, and each reads from memory what the one before wrote there: of
64 recordings 11 MB of samples, 19 MB of spectrograms, 6 MB of mel bands, twice. Where a call has been made on the result of
another that has not begun, and that nobody else holds, that result need not be: as soon as a sample of it is made, the next
operator takes it, and so on to the last one of the row. A spectrogram goes to the mel bands in pieces of some hundred columns.
It is the same arithmetic, so the same bits, as one operator after the other; and the threads of the pool meet once, not once
for each operator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._execution.errors import raise_signalled
from ndd._operator import on_cpu
from ndd._tensor import Store
from ndd._tensor.operand import Operand
from ndd._tensor.store import volumes

if TYPE_CHECKING:
    from ndd._operator.call import Call, Planned


class Continuation:
    """What a call does with the result of the one before it, sample by sample, in place of running by itself.

    Attributes:
        call: the call.
        shapes: int64 `[N, ndim]`, of its output.
        after: what is done with its output; None for the last one.
        store: where its output lies, if it is the last one.
        work: what the role `.continues` returned, as a rule `work(i, x)`: takes sample `i` of the result before, gives its own
            to `give`.
    """

    __slots__ = ("_arrays", "after", "call", "shapes", "store", "work")

    def __init__(self, call: Call, shapes: np.ndarray, after: Continuation | None):
        self.call = call
        self.shapes = shapes
        self.after = after
        self.store = None if after is not None else on_cpu.allocated(shapes, call.outs[0])
        self._arrays = None if self.store is None else self.store.arrays()
        self.work: Callable[..., None] = _unknown

    def room(self, i: int) -> np.ndarray:
        """Where sample `i` of the output is to be written."""
        if self._arrays is not None:
            return self._arrays[i]
        return np.empty(tuple(self.shapes[i].tolist()), self.call.outs[0].dtype.numpy)

    def give(self, i: int, x: np.ndarray) -> None:
        """Sample `i` of the output is complete."""
        if self.after is not None:
            self.after.work(i, x)


def _unknown(*given: Any) -> None:
    raise NotImplementedError


def announce(call: Call) -> None:
    """Tells the call that makes input 0, while it has not begun, that this one will take it."""
    pending = call.handles[0]._pending
    if pending is None or pending.begun or call.device.device_id is not None:
        return
    first = getattr(pending.work, "__self__", None)
    if first.__class__ is not call.__class__ or not first.op.ours or first.op.name != call.op.continues[0]:  # type: ignore[index]
        return
    if first.device == call.device and first.n == call.n and first.batched == call.batched and first.settled.single:
        first.reader = call


def continuation(call: Call, shapes: np.ndarray) -> Continuation | None:
    """What to do with the output of this call, of these shapes, in place of keeping it. None if somebody holds it, if nobody
    waits for it, or if what does would fail."""
    reader = call.reader
    if reader is None or not reader.holds_its_input_alone() or not call.n:
        return None
    try:
        if reader.op.continues is None or reader.op.continues[0] != call.op.name or reader.settled.handles:
            return None
        if any([h is not None for h in reader.handles[1:]]):
            return None
        spec = reader.settled.specs[0]
        operand = Operand(Store(spec.dtype, spec.layout, spec.device, shapes), spec, call.n)
        plan = reader._plan([operand], reader.arguments(), call.n, False)
        found = np.asarray(plan.shapes)
        own = Continuation(reader, found, continuation(reader, found))
        work = reader.op.continues[1](own, operand, plan)
    except Exception as error:  # the reader itself meets it too
        raise_signalled(error)
        return None
    if work is None:
        return None
    own.work = work
    return own


def hand_over(call: Call, after: Continuation, shapes: np.ndarray) -> Store:
    """Gives the last call of the row its output, complete now. Returns what stands for the output of this one, which nobody
    looks at: it has the shapes, and no numbers. So have those of the calls between."""
    made = _nothing(call, shapes)
    while after.after is not None:
        after.call.made = _nothing(after.call, after.shapes)
        after = after.after
    after.call.made = after.store
    return made


def _nothing(call: Call, shapes: np.ndarray) -> Store:
    spec = call.outs[0]
    return Store(spec.dtype, spec.layout, spec.device, shapes)


def computed(call: Call, planned: Planned, stores: list[Any]) -> list[Store] | None:
    """What an operator with a kernel for samples does where somebody takes its output sample by sample. None if nobody does,
    if a few long samples would keep threads waiting, or if something went wrong."""
    op, shapes, n = call.op, np.asarray(planned.plan.shapes), call.n
    if op.cpu is None or op.cpu_batch is not None or op.elementwise or op.variadic or len(shapes) != n or not n:
        return None
    sizes = volumes(shapes)
    if call.threads > 1 and 2 * call.threads * int(np.maximum.reduce(sizes)) > int(np.add.reduce(sizes)):
        return None
    after = continuation(call, shapes)
    if after is None:
        return None
    inputs, nbytes = on_cpu.arrays_of(call, stores, n)
    if planned.columns is None:
        planned.columns = on_cpu.columns_of(call, planned.plan, n)
    inputs, more = list(zip(*inputs, strict=True)), list(zip(*planned.columns, strict=True)) or [()] * n
    kernel, dtype, extents = op.cpu, call.outs[0].dtype.numpy, shapes.tolist()
    order = np.argsort(-sizes, kind="stable").tolist()

    def whole(k: int) -> None:
        i = order[k]
        out = np.empty(extents[i], dtype)
        kernel(*inputs[i], out, *more[i])
        after.work(i, out)

    if call.spread(whole, n, nbytes):
        return None  # the way step by step says what it is
    return [hand_over(call, after, shapes)]
