"""Running one invocation: inputs -> plan -> memory -> kernels -> stores. On the context's thread, or the asker's."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ndd._execution.invocation import Invocation
from ndd._operator.arguments import resolve
from ndd._operator.frames import FrameMap, unroll
from ndd._operator.pieces import batch_pieces, pieces
from ndd._operator.plan import Operand, Plan
from ndd._tensor import Handle, Spec, Store
from ndd._tensor.memory import host_empty

if TYPE_CHECKING:
    from ndd._operator.declare import Operator

# A sample is handed to another thread only if the batch moves at least this many bytes: a hand-over costs about
# 10 us, in which one core copies some 100 kB.
_WORTH_THREADS = 1 << 17

_FEW = 64  # plans kept for one call, and samples compared one by one to find a batch uniform

# What NumPy says of arrays that do not fit together, where a plan has not looked at the shape of an argument itself.
_MISFITS = ("could not be broadcast", "could not broadcast", "inhomogeneous shape", "shape mismatch", "cannot reshape")
_now = threading.local()


def current_invocation() -> Any:
    """The invocation that runs on this thread (for operators that need its context, stream or sources)."""
    return getattr(_now, "job", None)


class InputFailed(Exception):
    """An input of this invocation could not be computed: its error is this invocation's error too."""

    def __init__(self, origin: Invocation):
        self.origin = origin


class Prepared:
    """A call as far as its constants and the specs of its inputs settle it; shared by all calls that agree in these."""

    __slots__ = ("device", "handles", "kernels", "may_drop", "moves", "named", "outs", "plans", "single", "specs")

    def __init__(
        self,
        specs: list[Any],
        named: dict[str, Any],
        handles: list[Any],
        device: Any,
        moves: bool,
        outs: list[Spec],
        single: bool,
        may_drop: bool,
    ):
        self.specs = specs
        self.named = named
        self.handles = handles
        self.device = device
        self.moves = moves
        self.outs = outs
        self.single = single
        self.may_drop = may_drop
        self.plans: dict[Any, Planned] = {}
        self.kernels: dict[Any, Any] = {}  # GPU: compiled functions, see `Launch`


class Planned:
    """A plan worked out for inputs of certain shapes, with what the CPU kernel gets for each sample."""

    __slots__ = ("columns", "launches", "plan", "rooms", "shapes")

    def __init__(self, plan: Plan, shapes: list[Any], columns: list[Any]):
        self.launches: dict[Any, Any] | None = None  # GPU: what `Launch` keeps, if this plan is kept
        self.rooms: Any = None  # GPU: what the outputs need
        self.plan = plan
        self.shapes = shapes
        self.columns = columns


class Job:
    """What an invocation does when its turn comes."""

    __slots__ = ("batched", "context", "device", "eager", "handles", "n", "op", "outs", "prepared", "stream", "words")

    def __init__(self, op: Operator, prepared: Prepared, handles: Any, n: int, batched: bool, words: Any):
        self.op = op
        self.prepared = prepared
        self.handles = handles
        self.n = n
        self.batched = batched
        self.words = words
        self.device = prepared.device
        self.outs = prepared.outs
        self.stream: Any = None
        self.context: Any = None
        self.eager = False  # the call returned at once: what comes next may be worked on ahead

    def run(self, invocation: Invocation) -> list[Store]:
        """Computes the outputs; errors carry the operator's name, the sample and its source."""
        self.context = invocation.context
        if self.device.device_id is None:
            return self._compute()
        from ndd._cuda.scope import on_stream

        self.stream = invocation.context.stream_on(self.device.device_id)
        invocation.stream = self.stream
        with on_stream(self.stream, self.device.device_id):
            results = self._compute()
            for store in results:
                if store.device.device_id is not None and store.stream is None:
                    store.stream = getattr(self.stream, "_torch", None)
        return results

    def _compute(self) -> list[Store]:
        op = self.op
        stores = [None if h is None else h._store or _stored(h) for h in self.handles]
        if not self.n:  # operators never see an empty batch
            return [Store(o.dtype, o.layout, o.device, [], parts=[]) for o in self.outs]
        if self.stream is not None:
            from ndd._cuda.scope import wait_for

            for store in stores:
                if store is not None and store.device.device_id is not None:
                    wait_for(store, self.stream)
        for handle in self.prepared.handles:
            if handle._store is None:
                _stored(handle)
        previous, _now.job = getattr(_now, "job", None), self
        try:
            return self._view(stores) if op.views is not None else self._kernels(stores)
        finally:
            _now.job = previous

    def _resolved(self) -> dict[str, Any]:
        """The arguments by name, with arrays in place of handles."""
        named = self.prepared.named
        if self.prepared.handles:
            named = {
                a.name: resolve(a, v, self.n, self.op.name) if isinstance(v := named[a.name], Handle) else v
                for a in self.op.arguments
            }
        return {**named, "words": self.words} if self.op.random else named

    def _view(self, stores: list[Any]) -> list[Store]:
        args = self._resolved()
        operands = [None if s is None else s if s.n == self.n else _repeat(s, self.n) for s in stores]
        try:
            result = self.op.views(self, *operands, **args)  # type: ignore[misc]
        except Exception as error:
            self._raise_named(error, stores)
        results = [result] if isinstance(result, Store) else list(result)
        for store, spec in zip(results, self.outs, strict=True):
            store.batched = self.batched
            if store.source_info is None and stores and stores[0] is not None and stores[0].source_info:
                info = stores[0].source_info
                store.source_info = info if len(info) == store.n else None
            if spec.layout != store.layout and store.layout is None:
                store.layout = spec.layout
        return results

    def _kernels(self, stores: list[Any]) -> list[Store]:
        key = self._shapes_key(stores)
        planned = self.prepared.plans.get(key) if key is not None else None
        if planned is not None:
            try:
                if self.device.device_id is None:
                    return self._labelled(self._computed(planned, stores), stores, None)
                return self._labelled(self._on_gpu(planned, self._operands(stores), self.n), stores, None)
            except Exception as error:
                self._raise_named(error, stores)
        return self._planned_now(stores, key)

    def _shapes_key(self, stores: list[Any]) -> Any:
        """What a plan depends on beside the call: the shapes. None if it is not worth keeping or depends on more."""
        op = self.op
        if op.random or self.prepared.handles or not stores:
            return None
        key: list[Any] = [self.n]
        for s in stores:
            if s is None:
                key.append(None)
                continue
            if s.flat is not None and s.n > 1:  # flat buffers are made for shapes that differ
                return None
            shapes = s.shapes
            if s.whole is None and len(shapes) > _FEW:
                return None
            first = shapes[0] if shapes else None
            if s.whole is None and any([x != first for x in shapes]):
                return None
            key.append((len(shapes), first))
        return tuple(key)

    def _planned_now(self, stores: list[Any], key: Any) -> list[Store]:
        op = self.op
        specs = self.prepared.specs
        operands = self._operands(stores)
        frames: FrameMap | None = None
        first = specs[0] if specs else None
        try:
            if op.frames and first is not None and first.layout and first.layout[0] == "F":
                args = dict(self.prepared.named)
                if op.random:
                    args["words"] = self.words
                operands, args, frames = unroll(op, operands, args, self.n)
            else:
                args = self._resolved()
            n = self.n if frames is None else frames.count
            plan = op.plan(*operands, **args) if op.plan is not None else Plan(operands[0].shapes, *_sorted(args, op))
            if plan.shapes is None and self.device.device_id is None:
                results = self._returned(plan, operands, n)
            else:
                planned = self._sorted_out(plan, n)
                if key is not None and frames is None and not any(o is not None and o.touched for o in operands):
                    if len(self.prepared.plans) > _FEW:
                        self.prepared.plans.clear()
                    self.prepared.plans[key] = planned
                    planned.launches = {}
                if self.device.device_id is not None:
                    results = self._on_gpu(planned, operands, n)
                else:
                    results = self._computed(planned, [None if o is None else o._store for o in operands], n)
        except Exception as error:
            self._raise_named(error, stores, frames)
        return self._labelled(results, stores, frames)

    # ---- CPU

    def _operands(self, stores: list[Any]) -> list[Any]:
        specs = self.prepared.specs
        found: list[Any] = [
            None if s is None else Operand(s, specs[i] if i < len(specs) else self.handles[i]._spec, self.n)
            for i, s in enumerate(stores)
        ]
        return found + [None] * (len(self.op.inputs) - len(found))

    def _sorted_out(self, plan: Plan, n: int) -> Planned:
        """The plan with its numbers sorted into what the CPU kernel takes, in the order of its parameters."""
        op = self.op
        if self.device.device_id is not None:
            return Planned(plan, [], [])
        shapes = [_tuples(s) for s in ([plan.shapes] if self.prepared.single else plan.shapes)]
        columns = (
            None
            if op.cpu_batch is not None and not op.elementwise
            else self._extra(plan, (1 if op.variadic else len(op.inputs)) + len(self.outs), n)
        )
        return Planned(plan, shapes, columns)  # type: ignore[arg-type]

    def _extra(self, plan: Plan, lead: int, n: int) -> list[Any]:
        columns: list[Any] = []
        for name in self.op.cpu_names[lead:]:
            if name in plan.per_sample:
                values = plan.per_sample[name]
                if isinstance(values, np.ndarray):
                    values = values.tolist() if values.ndim == 1 else list(np.ascontiguousarray(values))
                columns.append(values)
            else:
                columns.append(itertools.repeat(plan.shared[name], n))
        return [list(c) if not isinstance(c, list) else c for c in columns]

    def _computed(self, planned: Planned, stores: list[Any], n: int | None = None) -> list[Store]:
        count = self.n if n is None else n
        results = [_allocate(s, spec) for s, spec in zip(planned.shapes, self.outs, strict=True)]
        if self.op.cpu_batch is not None and self._at_once(planned.plan, stores, results):
            return results
        if self.op.elementwise and not planned.plan.per_sample and self._in_pieces(planned, stores, results):
            return results
        columns: list[Any] = []
        nbytes = 0
        for store in stores:
            if store is None:
                columns.append([None] * count)
                continue
            arrays = store.contiguous_arrays()
            columns.append(arrays if len(arrays) == count else arrays * count)
            for a in arrays:
                nbytes += a.nbytes
        columns += [[None] * count] * (len(self.op.inputs) - len(stores))
        if self.op.variadic:  # the kernel takes the inputs of a sample as one tuple
            columns = [list(zip(*columns, strict=True))]
        for r in results:
            columns.append(r.arrays())
            whole = r.whole if r.whole is not None else r.flat
            nbytes += whole.nbytes
        if planned.columns is None:
            planned.columns = self._extra(
                planned.plan, (1 if self.op.variadic else len(self.op.inputs)) + len(self.outs), count
            )
        columns += planned.columns
        kernel = self.op.cpu
        if kernel is None:
            raise RuntimeError("there is no CPU variant")
        rows = list(zip(*columns, strict=True)) if columns else [()] * count
        self._raise_first(self._spread(kernel, rows, nbytes))
        return results

    def _in_pieces(self, planned: Planned, stores: list[Any], results: list[Store]) -> bool:
        """Runs an elementwise kernel on large pieces, if it can; errors are left to the way sample by sample."""
        rows = pieces(stores, results[0], self.context)
        if rows is None:
            return False
        extra = tuple([column[0] for column in planned.columns])
        return self._all_done(self.op.cpu, [(*row, *extra) for row in rows])

    def _at_once(self, plan: Plan, stores: list[Any], results: list[Store]) -> bool:
        """Runs the kernel for whole batches, if it can; errors are left to the way sample by sample."""
        rows = batch_pieces(self.op, plan, stores, results, self.context)
        return rows is not None and self._all_done(self.op.cpu_batch, rows)

    def _all_done(self, kernel: Any, rows: list[tuple[Any, ...]]) -> bool:
        if len(rows) > 1:
            return not self.context.thread_pool.run(lambda i: kernel(*rows[i]), len(rows))
        try:
            kernel(*rows[0])
        except Exception:
            return False
        return True

    def _spread(self, kernel: Any, rows: list[Any], nbytes: int) -> dict[int, BaseException]:
        """Runs the kernel on every row of arguments, on the thread pool if that is worth it."""
        n = len(rows)
        if n > 1 and (self.op.heavy or nbytes >= _WORTH_THREADS):
            return self.context.thread_pool.run(lambda i: kernel(*rows[i]), n)
        i = 0
        errors: dict[int, BaseException] = {}
        for i, row in enumerate(rows):
            try:
                kernel(*row)
            except Exception as error:
                errors[i] = error
        return errors

    def _raise_first(self, errors: dict[int, BaseException]) -> None:
        if errors:
            i = min(errors)
            error = errors[i]
            if not hasattr(error, "sample"):
                error.sample = i  # type: ignore[attr-defined]
            raise error

    def _returned(self, plan: Plan, operands: list[Any], n: int) -> list[Store]:
        """The kernel finds the shapes: it returns its arrays."""
        op = self.op
        columns = [[None] * n if o is None else o.arrays for o in operands]
        columns += self._extra(plan, len(op.inputs), n)
        found: list[Any] = [None] * n
        single = self.prepared.single

        def keep(i: int, *row: Any) -> None:
            result = op.cpu(*row)  # type: ignore[misc]
            found[i] = (result,) if single else result

        nbytes = sum(o._store.nbytes() for o in operands if o is not None)
        errors = self._spread(keep, list(zip(range(n), *columns, strict=True)), nbytes)
        kept, dropped = list(range(n)), None
        if errors and op.recover is not None:
            found, kept, dropped = op.recover(self, errors, found, operands)
        elif errors:
            self._raise_first(errors)
        results = []
        for k, spec in enumerate(self.outs):
            parts = [found[i][k] for i in kept]
            store = Store(spec.dtype, spec.layout, spec.device, [p.shape for p in parts], parts=parts)
            store.dropped = dropped
            if dropped is not None and len(kept) != n and operands and operands[0].source_info:
                store.source_info = [operands[0].source_info[i] for i in kept]
            results.append(store)
        return results

    # ---- GPU

    def _on_gpu(self, planned: Planned, operands: list[Any], n: int) -> list[Store]:
        from ndd._cuda.launch import Launch, Room

        op, plan = self.op, planned.plan
        if plan.shapes is None:
            launch = Launch(self, plan, operands, None, n, planned.launches)
            found = op.cuda(launch, *operands, **self._named_values(plan))  # type: ignore[misc]
            return [found] if isinstance(found, Store) else list(found)
        if planned.rooms is None:
            shapes = [plan.shapes] if self.prepared.single else plan.shapes
            planned.rooms = [Room(s, n, operands) for s in shapes]
        results = [room.store(spec) for room, spec in zip(planned.rooms, self.outs, strict=True)]
        launch = Launch(self, plan, operands, results, n, planned.launches)
        if op.cuda is not None:
            op.cuda(launch, *operands, *results, **self._named_values(plan))
        elif op.cuda_source is not None:
            launch(op.name)
        else:
            raise RuntimeError("there is no GPU variant")
        return results

    def _named_values(self, plan: Plan) -> dict[str, Any]:
        wanted = self.op.cuda_names
        found = {k: plan.per_sample[k] for k in wanted if k in plan.per_sample}
        found.update([(k, plan.shared[k]) for k in wanted if k in plan.shared])
        return found

    # ---- labels and errors

    def _labelled(self, results: list[Store], stores: list[Any], frames: FrameMap | None) -> list[Store]:
        info = next((s.source_info for s in stores if s is not None and s.source_info), None)
        for k, store in enumerate(results):
            if frames is not None:
                results[k] = store = frames.roll(store, self.outs[k])
            store.batched = self.batched
            if store.source_info is None and info is not None and len(info) == store.n:
                store.source_info = info
        return results

    def _raise_named(self, error: Exception, stores: list[Any], frames: FrameMap | None = None) -> NoReturn:
        named = self._named(error, stores, frames)
        # In an operator of a user's own, the line that failed matters.
        raise named from None if named is error or self.op.module.startswith("ndd.") else error

    def _named(self, error: BaseException, stores: list[Any], frames: FrameMap | None = None) -> BaseException:
        """The error with operator, sample and source in front of its text; the type stays."""
        sample = getattr(error, "sample", None)
        where = ""
        if sample is not None:
            if frames is not None:
                sample = frames.sample_of(sample)
            info = next((s.source_info for s in stores if s is not None and s.source_info), None)
            source = info[sample] if info is not None and sample < len(info) else None
            where = f"sample {sample}{f' ({source})' if source else ''}: "
        text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
        if text.startswith(f"{self.op.name}: ") and not where:
            return error
        text = text.removeprefix(f"{self.op.name}: ")
        kind = type(error)
        if kind is ValueError and self.op.module.startswith("ndd.") and any(words in text for words in _MISFITS):
            kind, text = RuntimeError, f"an argument has values of a shape that does not fit: {text}"
        try:
            named = kind(f"{self.op.name}: {where}{text}")
        except TypeError:
            named = RuntimeError(f"{self.op.name}: {where}{type(error).__name__}: {text}")
        named.__dict__.update(getattr(error, "__dict__", {}))
        return named.with_traceback(error.__traceback__)


def _stored(handle: Any) -> Store:
    """The value of an input; its failure is passed on as it is."""
    pending = handle._pending
    if pending is not None:  # another thread may put the store there at any time, and then forgets `_pending`
        if not pending.finished:
            pending.context.finish(pending)
        if pending.error is not None:
            raise InputFailed(pending)
    return handle._value()


def _sorted(args: dict[str, Any], op: Operator) -> tuple[dict[str, Any], dict[str, Any]]:
    """Resolved arguments as (per_sample, shared) for an operator without a plan."""
    per_sample, shared = {}, {}
    scalars = {a.name for a in op.arguments if a.per_sample and not a.vector}
    vectors = {a.name for a in op.arguments if a.per_sample and a.vector}
    for name, value in args.items():
        rows = isinstance(value, list) if name in vectors else False
        if isinstance(value, np.ndarray):
            rows = (name in scalars and value.ndim == 1) or (name in vectors and value.ndim >= 2)
        (per_sample if rows else shared)[name] = value
    return per_sample, shared


def _tuples(shapes: Any) -> list[tuple[int, ...]]:
    if isinstance(shapes, np.ndarray):
        return [tuple(s) for s in shapes.tolist()]
    return [tuple(int(e) for e in s) for s in shapes]


def _allocate(shapes: list[tuple[int, ...]], spec: Spec) -> Store:
    """Uninitialised host memory for one output: one array for samples of one shape, else one flat buffer."""
    numpy = spec.dtype.numpy
    first = shapes[0] if shapes else ()
    for s in shapes:
        if s != first:
            total = 0
            for shape in shapes:
                count = 1
                for extent in shape:
                    count *= extent
                total += count
            flat = host_empty(total, numpy)
            return Store(spec.dtype, spec.layout, spec.device, shapes, flat=flat)
    whole = host_empty((len(shapes), *first), numpy)
    return Store(spec.dtype, spec.layout, spec.device, shapes, whole=whole)


def _repeat(store: Store, n: int) -> Store:
    one = store.arrays()[0]
    repeated = Store(
        store.dtype, store.layout, store.device, store.shapes * n, parts=[one] * n,
        source_info=None if store.source_info is None else store.source_info * n,
    )  # fmt: skip
    repeated.stream, repeated.ready = store.stream, store.ready
    return repeated
