"""`Call`: one call of an operator, from its inputs to its results. Runs on the context's thread, or the asker's."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ndd._execution.errors import raise_signalled
from ndd._execution.invocation import Invocation
from ndd._operator import on_cpu, turns
from ndd._operator.arguments import values_of
from ndd._operator.call_cache import FEW, CachedCall, CachedPlan
from ndd._operator.empty_batch import ranked, results_without_samples
from ndd._operator.frames import FrameMap, is_video, unroll
from ndd._operator.naming import raise_named, source_info_of
from ndd._operator.plan import Plan, check_values, checked_plan
from ndd._operator.values import Values
from ndd._tensor import Store
from ndd._tensor.operand import Operand
from ndd._tensor.warn_once import warn_once

if TYPE_CHECKING:
    from ndd._compiled.jit import Kernel
    from ndd._operator.operator import Operator

# A sample is handed to another thread only if the batch moves at least this many bytes, or if the first one took that
# long: a hand-over costs about 10 us, in which one core copies some 100 kB; what is short is Python, which threads share.
_WORTH_THREADS = 1 << 17
_LONG_NS = 100_000

_CHANNELS = 4  # images that have more are rare enough to ask

_HELD_HERE = 2  # references to an input that only its call holds, while they are counted
_FEW_RAGGED = 256  # samples of different shapes for which what a GPU is told is kept: 100 bytes each and launch


class InputFailed(Exception):
    """An input of this invocation could not be computed: its error is this invocation's error too."""

    def __init__(self, origin: Invocation):
        self.origin = origin


class Call:
    """One call of an operator: what its functions may ask for beside their inputs and arguments.

    Attributes:
        n: how many samples there are.
        batched: whether the result is a Batch (else one Tensor).
        device: where the operator runs.
        draws: random operators: where the streams of random words of this call are.
        outs: the specs of the outputs.
    """

    __slots__ = (
        "batched", "context", "device", "draws", "handles", "n", "op", "outs", "ready_made", "settled", "stores",
        "stream", "taker",
    )  # fmt: skip

    def __init__(self, op: Operator, settled: CachedCall, handles: Any, n: int, batched: bool, draws: Any):
        self.op = op
        self.settled = settled
        self.handles = handles
        self.n = n
        self.batched = batched
        self.draws = draws
        self.device = settled.device
        self.outs = settled.outs
        self.stores: list[Any] = []
        self.stream: Any = None
        self.context: Any = None
        self.taker: Any = None  # the call whose input 0 is the output of this one, see `announce`
        self.ready_made: Store | None = None  # the output, by the call before (`continued.py`)

    # ---- for operators

    @property
    def threads(self) -> int:
        """How many threads share the samples of a batch."""
        return self.context.num_threads

    @property
    def sources(self) -> list[Any]:
        """Where each sample came from, None where nobody knows."""
        info = source_info_of(self.stores)
        return info if info is not None and len(info) == self.n else [None] * self.n

    def spread(self, function: Callable[[int], Any], count: int, nbytes: int | None = None) -> dict[int, BaseException]:
        """`function(i)` for every i below `count`, on several threads if that is worth it; the exceptions by index.

        `nbytes` is how much memory is moved, if that is a measure of the work. Whether one bad sample is an error for
        all is the operator's to say: `ndd.bad_sample`, or raise the first.
        """
        if count > 1 and (nbytes is None or nbytes >= _WORTH_THREADS):
            return self.context.thread_pool.run(function, count)
        errors: dict[int, BaseException] = {}
        start = perf_counter_ns()
        for i in range(count):
            try:
                function(i)
            except Exception as error:
                raise_signalled(error)
                errors[i] = error
            if i == 0 and perf_counter_ns() - start > _LONG_NS and count > 2:
                rest = self.context.thread_pool.run(lambda k: function(k + 1), count - 1)
                errors.update({k + 1: error for k, error in rest.items()})
                break
        return errors

    def in_turns(self, loop: Kernel, what: tuple[Any, ...], count: int, nbytes: int, held: Any) -> bool:
        """Runs `loop(turns, most, *what)` on as many threads as is worth it, until all of `count` samples have been taken
        (`turns.py`).

        `loop` is a kernel that takes up to `most` samples, by `next_turn(turns)`, and gives True; False: nothing was done, nor
        will be, since it is being compiled. `nbytes`: about what is moved. `held`: all that it knows addresses of. Gives
        whether all is done.
        """
        return turns.in_turns(self.context, loop, what, count, nbytes, held, self.pace(loop))

    def pace(self, of: Any) -> turns.Pace:
        """How long a loop or kernel of this operator takes with values of these types."""
        specs = self.settled.specs
        key = (of, specs[0] and specs[0].dtype if specs else None, self.outs[0].dtype)
        return self.op.paces.get(key) or self.op.paces.setdefault(key, turns.Pace())

    def looked_at(self, shapes: np.ndarray) -> np.ndarray | None:
        """What will ever be looked at of the images HWC that this call makes, if these are their `shapes`: int64 `[N, 4]`, y0,
        x0, y1, x1 of each. None for all of them: somebody holds them, or it is not known. The rest may hold anything."""
        taker = self.taker
        if taker is None or self.settled.fewer or taker.n != self.n or not taker.holds_its_input_alone():
            return None
        try:
            if any([h._store is None for h in taker.settled.handles]):  # their values may have to wait for this
                return None
            if any([h is not None for h in taker.handles[1:]]):
                return None
            spec = taker.settled.specs[0]
            if spec.layout != "HWC":
                return None
            operand = Operand(Store(spec.dtype, spec.layout, spec.device, shapes), spec, self.n)
            operands = [operand] + [None] * (len(taker.op.inputs) - 1)
            starts, ends = taker.op.looks_at[0](operand, taker._plan(operands, taker.arguments(), self.n, False))
        except Exception as error:  # the taker itself meets it too
            raise_signalled(error)
            return None
        # Where all lies outside, it is the pixels at the edge that count.
        starts = np.clip(starts, 0, shapes[:, :2] - 1)
        return np.concatenate((starts, np.clip(ends, starts + 1, shapes[:, :2])), axis=1).astype(np.int64)

    def once(self, make: Callable[[], Any]) -> Any:
        """What `make` gives. In a call with nothing but constants it can follow from these alone (and from `n`): then it
        is made once for all calls with the same, which must not write to it."""
        if self.op.random or self.settled.handles or any([h is not None for h in self.handles]):
            return make()
        return self._kept_here(self.n, make)

    def kept(self, aside: str, shapes: np.ndarray, make: Callable[[], Any]) -> Any:
        """What `make` gives, for a plan in which the values of argument `aside` have no part: made once for all calls with
        the same constants and with samples of this one shape, if they have one. Nobody may write to it."""
        named = self.settled.named
        if any([named[name] is handle for handle in self.settled.handles for name in named if name != aside]):
            return make()
        key = shapes.tobytes()
        if key != key[: shapes.shape[1] * 8] * len(shapes):
            return make()
        return self._kept_here(key, make)

    def _kept_here(self, key: Any, make: Callable[[], Any]) -> Any:
        made = self.settled.made_once
        try:
            return made[key]
        except KeyError:
            found = make()
        if len(made) > FEW:
            made.clear()
        made[key] = found
        return found  # not `made[key]`: another thread may have cleared it meanwhile

    # ---- for the framework

    def holds_its_input_alone(self) -> bool:
        """Whether nobody else can look at input 0."""
        return sys.getrefcount(self.handles[0]) <= _HELD_HERE

    def announce(self) -> None:
        """Tells the call that makes input 0, while it has not begun, that this one will take it and look at a part of it."""
        named, (_, given) = self.settled.named, self.op.looks_at  # type: ignore[misc]
        if given and all([named[name] is None for name in given]):
            return
        first = maker_of(self.handles[0])
        if first is not None and self.device.device_id is None:
            first.taker = self

    def run(self, invocation: Invocation) -> list[Store]:
        """Computes the outputs; errors carry the operator's name, the sample and its source."""
        self.context = invocation.context
        if self.settled.assumed:
            self._warn_of_planes(invocation)
        if self.device.device_id is None:
            return self._compute()
        stream = self.stream = invocation.stream = invocation.context.stream_on(self.device.device_id)
        with _gpu_rooms().scope.on_stream(stream, self.device.device_id):
            results = self._compute()
            for store in results:
                if store.stream is None and store.device.device_id is not None:
                    store.stream = stream._torch
        return results

    def _warn_of_planes(self, invocation: Invocation) -> None:
        """Warns of an image without a layout that looks like CHW: it is taken as HWC, as in DALI."""
        handle = self.handles[0]
        shapes = (handle._store or stored(handle)).shapes
        if shapes and shapes[0][-1] > _CHANNELS and shapes[0][0] in (1, 3, 4):
            name = self.op.name
            warn_once(
                f"{name}: planes",
                f"{name}: an array of shape {shapes[0]} without a layout is taken as HWC, an image of {shapes[0][-1]} "
                'channels. If it is CHW, say so when you make the value: ndd.as_tensor(..., layout="CHW")',
                invocation.call,
            )

    def _compute(self) -> list[Store]:
        op = self.op
        if op.joins is not None:
            found = self._joined()
            if found is not None:
                return found
        if not self.n:  # operators never see an empty batch
            return results_without_samples(self, [None if h is None else stored(h) for h in self.handles])
        stores = self._inputs()
        if self.ready_made is not None:
            made, self.ready_made = self.ready_made, None
            return self._labelled([made], None)
        if op.views is not None:
            return self._view(stores)
        if op.batch is not None and not op.batch_takes_plan and (op.plan is None or self.device.device_id is None):
            found = self._batch(stores)
            if found is not None:
                return found
        # Kernels read samples without gaps: what is strided is copied, for this call.
        stores = [None if s is None else s.contiguous() for s in stores]
        key = self._shapes_key(stores)
        planned = self.settled.plans.get(key) if key is not None else None
        if planned is not None:
            self.settled.missed = 0
            try:
                return self._labelled(self._computed(planned, stores, self.n), None)
            except Exception as error:
                raise_named(error, op, stores)
        return self._planned_now(stores, key)

    def _inputs(self) -> list[Any]:
        """The values of the inputs, which the stream of the call waits for."""
        self.stores = stores = [None if h is None else h._store or stored(h) for h in self.handles]
        if self.stream is not None:
            wait_for = _gpu_rooms().scope.wait_for
            for store in stores:
                if store is not None and store.device.device_id is not None:
                    wait_for(store, self.stream)
        for handle in self.settled.handles:
            if handle._store is None:
                stored(handle)
        return stores

    def _joined(self) -> list[Store] | None:
        """The output without the input in between, if nobody but this call holds that, it has not been made, and the
        kernels that make it can do both (`.joins` of the operator). None if that cannot be, or would fail."""
        first = self.before(self.handles[0])
        if first is None or not self.holds_its_input_alone():
            return None
        try:
            first.context, first.stream = self.context, self.stream
            for handle in self.settled.handles:  # before a decoder, say, is waited for
                stored(handle)
            stores = [None if s is None else s.contiguous() for s in first._inputs()]
            operands = first._operands(stores)
            plan = first._plan(operands, first.arguments(), first.n, False)
            spec = self.settled.specs[0]
            made = Store(spec.dtype, spec.layout, spec.device, np.asarray(plan.shapes))
            made.source_info = source_info_of(stores)
            operand = Operand(made, spec, self.n)
            own = self._plan([operand], self.arguments(), self.n, False)
            if not self.op.joins[1](operand, own):  # type: ignore[index]
                return None
            result = _gpu_rooms().on_gpu.joined(first, plan, operands, operand, own, self.outs[0])
        except Exception as error:  # the way step by step says what is wrong, and whose fault it is
            raise_signalled(error)
            return None
        self.stores = [made]
        return self._labelled([result], None)

    def before(self, handle: Any) -> Call | None:
        """The call whose output this one could make along with its own, if it has not run and nobody else holds it."""
        pending = handle._pending
        if pending is None or pending.queued or self.device.device_id is None:
            return None
        first = maker_of(handle)
        fits = (
            first is not None
            and first.op.ours
            and first.op.cuda_source == self.op.joins[0]  # type: ignore[index]
            and first.op.cuda is not None
            and first.settled.single
            and not first.settled.fewer
            and first.device == self.device
            and first.n == self.n
            and first.batched == self.batched
            and first.outs[0].layout == self.settled.specs[0].layout
            and (first.op.frames is False or "F" not in (first.outs[0].layout or ""))
        )
        return first if fits else None

    def arguments(self) -> dict[str, Any]:
        """The arguments by name: per-sample ones as `Values` (or None), the others as they are."""
        settled, n = self.settled, self.n
        known, found = settled.by_name
        if known == n:
            return found
        found = {
            a.name: values_of(a, v, n, self.op.name) if a.per_sample and v is not None else v
            for a, v in zip(self.op.arguments, settled.named.values(), strict=True)
        }
        if not settled.handles:
            settled.by_name = n, found
        return found

    def _view(self, stores: list[Any]) -> list[Store]:
        """Outputs that are the inputs' memory, seen in another way."""
        op = self.op
        try:
            args = self.arguments()
            operands = [None if s is None else s if s.n == self.n else _repeat(s, self.n) for s in stores]
            result = op.views(self, *operands, **args)  # type: ignore[misc]
        except Exception as error:
            raise_named(error, op, stores)
        results = [result] if isinstance(result, Store) else list(result)
        for store, spec in zip(results, self.outs, strict=True):
            store.batched = self.batched
            if store.source_info is None and stores and stores[0] is not None and stores[0].source_info:
                info = stores[0].source_info
                store.source_info = info if len(info) == store.n else None
            if spec.layout != store.layout and store.layout is None:
                store.layout = spec.layout
        return results

    def _batch(self, stores: list[Any]) -> list[Store] | None:
        """An operator that computes a whole batch in Python; None where it leaves it to its plan and kernels."""
        op = self.op
        try:
            if self.device.device_id is None:
                found = op.batch(self, *self._operands(stores), **self.arguments())  # type: ignore[misc]
            else:
                own = [s if s is None or s.device != self.device else s.contiguous() for s in stores]  # for kernels
                found = _gpu_rooms().on_gpu.batch(self, self._operands(own))
            single = self.settled.single
            if not op.ours:
                check_values(found, self.outs, single, None if self.settled.fewer else self.n)
            elif found is None:
                return None
            results = [on_cpu.store_of(v, s) for v, s in zip([found] if single else found, self.outs, strict=True)]
        except Exception as error:
            raise_named(error, op, stores)
        return self._labelled(results, None)

    def _shapes_key(self, stores: list[Any]) -> Any:
        """What a plan depends on beside the call: the shapes. None if it is not worth keeping or depends on more."""
        if self.op.random or self.settled.handles or not stores:
            return None
        key: list[Any] = [self.n]
        for s in stores:
            if s is None:
                key.append(None)
                continue
            if s.whole is None and self.device.device_id is not None and 1 < s.n <= _FEW_RAGGED:
                extents = s.shape_array
                key.append((extents.shape[1], extents.tobytes()))
                continue
            if s.flat is not None and s.n > 1:  # flat buffers are made for shapes that differ
                return None
            shapes = s.shapes
            if s.whole is None and len(shapes) > FEW:
                return None
            first = shapes[0] if shapes else None
            if s.whole is None and shapes and shapes.count(first) != len(shapes):
                return None
            key.append((len(shapes), first))
        return tuple(key)

    def _planned_now(self, stores: list[Any], key: Any) -> list[Store]:
        op = self.op
        operands = self._operands(stores)
        frames: FrameMap | None = None
        try:
            n = self.n
            if op.frames and any(map(is_video, self.settled.specs)):
                operands, args, frames = unroll(op, operands, self.settled.named, n)
                n = frames.count
            else:
                args = self.arguments()
            plan = self._plan(operands, args, n, frames is not None)
            planned = on_cpu.planned(self, plan, n) if self.device.device_id is None else CachedPlan(plan, [])
            if key is not None and frames is None and not any([o is not None and o.touched for o in operands]):
                self.settled.keep(key, planned)
            seen = stores if frames is None else [None if o is None else o._store_ for o in operands]
            results = self._computed(planned, seen, n, operands)
        except Exception as error:
            raise_named(error, op, stores, frames)
        return self._labelled(results, frames)

    def _plan(self, operands: list[Any], args: dict[str, Any], n: int, frames: bool) -> Plan:
        op = self.op
        if op.plan is None:
            return _default_plan(operands[0].shapes, args)
        plan = op.plan(self, *operands, **args) if op.plan_takes_call else op.plan(*operands, **args)
        return plan if op.ours else checked_plan(plan, self.outs, self.settled.single, n, frames)

    def _operands(self, stores: list[Any]) -> list[Any]:
        specs = self.settled.specs
        found: list[Any] = [
            None if s is None else Operand(s, specs[i] if i < len(specs) else self.handles[i]._spec, self.n)
            for i, s in enumerate(stores)
        ]
        return found + [None] * (len(self.op.inputs) - len(found))

    def _computed(
        self, planned: CachedPlan, stores: list[Any], n: int, operands: list[Any] | None = None
    ) -> list[Store]:
        if self.device.device_id is None:
            return on_cpu.computed(self, planned, stores, n)
        operands = self._operands(stores) if operands is None else operands
        return _gpu_rooms().on_gpu.computed(self, planned, operands, n)

    def _labelled(self, results: list[Store], frames: FrameMap | None) -> list[Store]:
        info = source_info_of(self.stores)
        for k, store in enumerate(results):
            if frames is not None:
                results[k] = store = frames.roll(store, self.outs[k])
            if not store.n:
                results[k] = store = ranked(store, self.outs[k])
            store.batched = self.batched
            if store.source_info is None and info is not None and len(info) == store.n:
                store.source_info = info
            if self.stores and self.stores[0] is not None and self.stores[0].scales is not None:
                self._scale(self.stores[0], store)
        return results

    def _scale(self, source: Store, store: Store) -> None:
        """What the axes of a result stand for. A sound of the same shape is one of the same rate."""
        known = source.scales or []
        if self.op.scale is not None:
            named = self.settled.named
            made = {one: self.op.scale(one, **named) for one in set(known)}  # recordings have few rates
            store.scales = [made[one] for one in known] if len(known) == store.n else None
        elif (
            store.scales is None
            and store.layout == source.layout
            and np.array_equal(store.shape_array, source.shape_array)
        ):
            store.scales = source.scales


class _GpuRooms(NamedTuple):
    scope: Any
    on_gpu: Any


@functools.cache
def _gpu_rooms() -> _GpuRooms:
    """What only work on a GPU needs; `import` within functions takes 0.5 us each time."""
    from ndd._cuda import scope
    from ndd._operator import on_gpu

    return _GpuRooms(scope, on_gpu)


def maker_of(handle: Any) -> Call | None:
    """The call that will make this value; None if it has begun, or if no operator makes it."""
    pending = handle._pending
    if pending is None or pending.begun:
        return None
    call = getattr(pending.work, "__self__", None)  # `work` is `Call.run` of the call
    return call if call.__class__ is Call else None


def stored(handle: Any) -> Store:
    """The value of an input; its failure is passed on as it is."""
    pending = handle._pending
    if pending is not None:  # another thread may put the store there at any time, and then forgets `_pending`
        if not pending.finished:
            pending.context.finish(pending)
        if pending.error is not None:
            raise InputFailed(pending)
    return handle._value()


def _default_plan(shapes: np.ndarray, args: dict[str, Any]) -> Plan:
    """For an operator without a plan: the shapes of input 0; what may differ between samples is per sample."""
    per_sample, shared = {}, {}
    for name, value in args.items():
        if isinstance(value, Values):
            per_sample[name] = np.asarray(value)
        else:
            shared[name] = value
    return Plan(shapes, per_sample, shared)


def _repeat(store: Store, n: int) -> Store:
    one = store.arrays()[0]
    repeated = Store(
        store.dtype, store.layout, store.device, store.shapes * n, parts=[one] * n,
        source_info=None if store.source_info is None else list(store.source_info) * n,
    )  # fmt: skip
    repeated.stream, repeated.ready = store.stream, store.ready
    return repeated


__all__ = ["Call", "InputFailed", "maker_of", "stored"]
