"""`Call`: one call of an operator, from its inputs to its results. It runs on the context's thread, or on a thread that
waits for it."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._cuda import scope
from ndd._execution.errors import raise_signalled
from ndd._execution.invocation import Invocation
from ndd._operator import fusion, on_cpu, on_gpu
from ndd._operator.arguments import values_of
from ndd._operator.call_cache import CachedCall, CachedPlan, shapes_key
from ndd._operator.empty_batch import ranked, results_without_samples
from ndd._operator.frames import FrameMap, is_video, unroll
from ndd._operator.inputs import InputFailed, stored
from ndd._operator.naming import raise_named, source_info_of
from ndd._operator.partition import CostEstimate, parallel_for
from ndd._operator.plan import Plan, check_values, checked_plan
from ndd._operator.unit_warnings import warn_of_planes
from ndd._operator.values import Values
from ndd._tensor import Store
from ndd._tensor.operand import Operand

if TYPE_CHECKING:
    from ndd._compiled.jit import Kernel
    from ndd._execution.threads import ThreadPool
    from ndd._operator.operator import Operator

# A sample is handed to another thread only if the batch moves at least this many bytes, or if the first sample took that
# long. A hand-over costs about 10 us, in which one core copies some 100 kB, and short work is mostly Python, which threads
# cannot run at once.
_WORTH_THREADS = 1 << 17
_LONG_NS = 100_000


class Call:
    """One call of an operator: facts that its functions may need besides their inputs and arguments.

    Attributes:
        n: the number of samples.
        batched: whether the result is a Batch (else one Tensor).
        device: where the operator runs.
        draws: for random operators: the position of this call's streams of random words.
        outs: the specs of the outputs.
    """

    __slots__ = (
        "batched",
        "cached_call",
        "context",
        "device",
        "draws",
        "handles",
        "n",
        "op",
        "outs",
        "ready_made",
        "stores",
        "stream",
        "taker",
    )  # fmt: skip

    def __init__(self, op: Operator, cached_call: CachedCall, handles: Any, n: int, batched: bool, draws: Any):
        self.op = op
        self.cached_call = cached_call
        self.handles = handles
        self.n = n
        self.batched = batched
        self.draws = draws
        self.device = cached_call.device
        self.outs = cached_call.outs
        self.stores: list[Any] = []
        self.stream: Any = None
        self.context: Any = None
        self.taker: Any = None  # the call that takes the output of this one as its input 0, see `fusion.announce`
        self.ready_made: Store | None = None  # the output, if the call before has computed it (`fusion.py`)

    # ---- for operators

    @property
    def threads(self) -> int:
        """The number of threads that share the samples of a batch."""
        return self.context.num_threads

    @property
    def sources(self) -> list[Any]:
        """The source of each sample, None where it is unknown."""
        info = source_info_of(self.stores)
        return info if info is not None and len(info) == self.n else [None] * self.n

    def spread(self, function: Callable[[int], Any], count: int, nbytes: int | None = None) -> dict[int, BaseException]:
        """`function(i)` for every i below `count`, on several threads if that is worth it; the exceptions by index.

        `nbytes` is how much memory is moved, if that measures the work. The operator decides whether a bad sample is an
        error for all: `ndd.bad_sample`, or raise the first.
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
                pool: ThreadPool = self.context.thread_pool
                rest = pool.run(lambda k: function(k + 1), count - 1)
                errors.update({k + 1: error for k, error in rest.items()})
                break
        return errors

    def parallel_for(self, loop: Kernel, fields: tuple[Any, ...], count: int, nbytes: int, held: Any) -> bool:
        """Runs a compiled loop over samples on as many threads as is worth it: see `partition.parallel_for`."""
        return parallel_for(self.context, loop, fields, count, nbytes, held, self.cost(loop))

    def cost(self, of: Any) -> CostEstimate:
        """The measured cost of a loop or kernel of this operator for values of these types."""
        specs = self.cached_call.specs
        key = (of, specs[0] and specs[0].dtype if specs else None, self.outs[0].dtype)
        return self.op.costs.get(key) or self.op.costs.setdefault(key, CostEstimate())

    def once(self, make: Callable[[], Any]) -> Any:
        """The result of `make`. In a call whose arguments are all constants, it depends on these and on `n` alone: then it
        is made once for all calls with the same constants, which must not write to it."""
        if self.op.random or self.cached_call.handles or any([h is not None for h in self.handles]):
            return make()
        return self.cached_call.once(self.n, make)

    def once_for_shapes(self, aside: str, shapes: np.ndarray, make: Callable[[], Any]) -> Any:
        """The result of `make` for a plan that does not use the values of argument `aside`: made once for all calls with the
        same constants and with samples of this one shape, if they have one shape. It must not be written to."""
        named = self.cached_call.named
        if any([named[name] is handle for handle in self.cached_call.handles for name in named if name != aside]):
            return make()
        key = shapes.tobytes()
        if key != key[: shapes.shape[1] * 8] * len(shapes):
            return make()
        return self.cached_call.once(key, make)

    # ---- for the framework

    def run(self, invocation: Invocation) -> list[Store]:
        """Computes the outputs; errors carry the operator's name, the sample and its source."""
        self.context = invocation.context
        if self.cached_call.assumed:
            handle = self.handles[0]
            warn_of_planes(self.op.name, (handle._store or stored(handle)).shapes, invocation.call)
        if self.device.device_id is None:
            return self._compute()
        stream = self.stream = invocation.stream = invocation.context._stream_on(self.device.device_id)
        with scope.on_stream(stream, self.device.device_id):
            results = self._compute()
            for store in results:
                if store.stream is None and store.device.device_id is not None:
                    store.stream = stream._torch
        return results

    def _compute(self) -> list[Store]:
        op = self.op
        if self.stream is not None and op.fuses:
            outcome = fusion.joined(self, on_gpu.joined)
            if outcome is not None:
                self.stores = [outcome[1]]
                return self._labelled([outcome[0]], None)
        if not self.n:  # operators never see an empty batch
            return results_without_samples(self, [None if h is None else stored(h) for h in self.handles])
        stores = self._inputs()
        if self.ready_made is not None:
            outcome, self.ready_made = self.ready_made, None
            return self._labelled([outcome], None)
        if op.views is not None:
            return self._view(stores)
        if op.batch is not None and not op.batch_takes_plan and (op.plan is None or self.device.device_id is None):
            return self._batch(stores)
        # Kernels read samples without gaps: strided samples are copied for this call.
        stores = [None if s is None else s.contiguous() for s in stores]
        constant = not (op.random or self.cached_call.handles)
        key = shapes_key(stores, self.n, self.device.device_id is not None) if constant else None
        planned = self.cached_call.plans.get(key) if key is not None else None
        if planned is not None:
            self.cached_call.missed = 0
            try:
                return self._labelled(self._computed(planned, stores, self.n), None)
            except Exception as error:
                raise_named(error, op, stores)
        return self._planned_now(stores, key)

    def _inputs(self) -> list[Any]:
        """The values of the inputs; the stream of the call waits for them."""
        self.stores = stores = [None if h is None else h._store or stored(h) for h in self.handles]
        if self.stream is not None:
            wait_for = scope.wait_for
            for store in stores:
                if store is not None and store.device.device_id is not None:
                    wait_for(store, self.stream)
        for handle in self.cached_call.handles:
            if handle._store is None:
                stored(handle)
        return stores

    def arguments(self) -> dict[str, Any]:
        """The arguments by name: per-sample ones as `Values` (or None), the others unchanged."""
        cached_call, n = self.cached_call, self.n
        known, by_name = cached_call.by_name
        if known == n:
            return by_name
        by_name = {
            a.name: values_of(a, v, n, self.op.name) if a.per_sample and v is not None else v
            for a, v in zip(self.op.arguments, cached_call.named.values(), strict=True)
        }
        if not cached_call.handles:
            cached_call.by_name = n, by_name
        return by_name

    def _view(self, stores: list[Any]) -> list[Store]:
        """Outputs that are views of the inputs' memory."""
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

    def _batch(self, stores: list[Any]) -> list[Store]:
        """An operator that computes a whole batch at once."""
        op = self.op
        try:
            if self.device.device_id is None:
                outcome = op.batch(self, *self._operands(stores), **self.arguments())  # type: ignore[misc]
            else:
                own = [s if s is None or s.device != self.device else s.contiguous() for s in stores]  # for kernels
                outcome = on_gpu.batch(self, self._operands(own))
            single = self.cached_call.single
            if not op.ours:
                check_values(outcome, self.outs, single, None if self.cached_call.fewer else self.n)
            results = [on_cpu.store_of(v, s) for v, s in zip([outcome] if single else outcome, self.outs, strict=True)]
        except Exception as error:
            raise_named(error, op, stores)
        return self._labelled(results, None)

    def _planned_now(self, stores: list[Any], key: Any) -> list[Store]:
        op = self.op
        operands = self._operands(stores)
        frames: FrameMap | None = None
        try:
            n = self.n
            if op.frames and any(map(is_video, self.cached_call.specs)):
                operands, args, frames = unroll(op, operands, self.cached_call.named, n)
                n = frames.count
            else:
                args = self.arguments()
            plan = self._plan(operands, args, n, frames is not None)
            planned = on_cpu.planned(self, plan, n) if self.device.device_id is None else CachedPlan(plan, [])
            if key is not None and frames is None and not any([o is not None and o.touched for o in operands]):
                self.cached_call.keep(key, planned)
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
        return plan if op.ours else checked_plan(plan, self.outs, self.cached_call.single, n, frames)

    def _operands(self, stores: list[Any]) -> list[Any]:
        specs = self.cached_call.specs
        operands: list[Any] = [
            None if s is None else Operand(s, specs[i] if i < len(specs) else self.handles[i]._spec, self.n)
            for i, s in enumerate(stores)
        ]
        return operands + [None] * (len(self.op.inputs) - len(operands))

    def _computed(
        self, planned: CachedPlan, stores: list[Any], n: int, operands: list[Any] | None = None
    ) -> list[Store]:
        if self.device.device_id is None:
            return on_cpu.computed(self, planned, stores, n)
        operands = self._operands(stores) if operands is None else operands
        return on_gpu.computed(self, planned, operands, n)

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
                store.scales = _scales(self, self.stores[0], store)
        return results


def _scales(call: Call, source: Store, store: Store) -> list[Any] | None:
    """The units of the axes of a result. A sound of the same shape has the same rate."""
    known = source.scales or []
    if call.op.scale is not None:
        scales = {
            scale: call.op.scale(scale, **call.cached_call.named) for scale in set(known)
        }  # there are few different rates
        return [scales[scale] for scale in known] if len(known) == store.n else None
    alike = store.layout == source.layout and np.array_equal(store.shape_array, source.shape_array)
    return source.scales if store.scales is None and alike else store.scales


def _default_plan(shapes: np.ndarray, args: dict[str, Any]) -> Plan:
    """The plan of an operator without `.plan`: the shapes of input 0, and its arguments."""
    per_sample: dict[str, Any] = {}
    shared: dict[str, Any] = {}
    for name, value in args.items():
        if isinstance(value, Values):
            per_sample[name] = np.asarray(value)
        else:
            shared[name] = value
    return Plan(shapes, per_sample, shared)


def _repeat(store: Store, n: int) -> Store:
    sample = store.arrays()[0]
    repeated = Store(
        store.dtype, store.layout, store.device, store.shapes * n, parts=[sample] * n,
        source_info=None if store.source_info is None else list(store.source_info) * n,
    )  # fmt: skip
    repeated.stream, repeated.ready = store.stream, store.ready
    return repeated


__all__ = ["Call", "InputFailed", "stored"]
