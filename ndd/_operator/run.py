"""Running one invocation: inputs -> plan -> memory -> kernels -> stores. On the context's thread, or the asker's."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._execution.invocation import Invocation
from ndd._operator.arguments import resolve
from ndd._operator.frames import FrameMap, unroll
from ndd._operator.plan import Operand, Plan
from ndd._tensor import Handle, Spec, Store
from ndd._tensor.memory import host_empty

if TYPE_CHECKING:
    from ndd._operator.declare import Operator

# A sample is handed to another thread only if the batch moves at least this many bytes: a hand-over costs about
# 10 us, in which one core copies some 100 kB.
_WORTH_THREADS = 1 << 17

_now = threading.local()


def current_invocation() -> Any:
    """The invocation that runs on this thread (for operators that need its context, stream or sources)."""
    return getattr(_now, "job", None)


class InputFailed(Exception):
    """An input of this invocation could not be computed: its error is this invocation's error too."""

    def __init__(self, origin: Invocation):
        self.origin = origin


class Job:
    """What an invocation does when its turn comes."""

    __slots__ = ("args", "batched", "context", "device", "handles", "n", "op", "outs", "specs", "stream", "words")

    def __init__(
        self,
        op: Operator,
        handles: list[Any],
        specs: list[Spec | None],
        args: dict[str, Any],
        n: int,
        batched: bool,
        device: Any,
        outs: list[Spec],
    ):
        self.op = op
        self.handles = handles
        self.specs = specs
        self.args = args
        self.n = n
        self.batched = batched
        self.device = device
        self.outs = outs
        self.stream: Any = None
        self.context: Any = None

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
        stores = [None if h is None else _stored(h) for h in self.handles]
        if self.stream is not None:
            from ndd._cuda.scope import wait_for

            for store in stores:
                if store is not None and store.device.device_id is not None:
                    wait_for(store, self.stream)
        args = self.args
        for argument in op.arguments:
            value = args[argument.name]
            if isinstance(value, Handle) and argument.per_sample:
                _check_argument(value)
        previous, _now.job = getattr(_now, "job", None), self
        try:
            if op.views is not None:
                return self._view(stores)
            return self._kernels(stores)
        finally:
            _now.job = previous

    def _view(self, stores: list[Any]) -> list[Store]:
        args = {
            a.name: resolve(a, v, self.n, self.op.name) if isinstance(v := self.args[a.name], Handle) and a.per_sample else v
            for a in self.op.arguments
        }
        if self.op.random:
            args["words"] = self.args["words"]
        operands = [None if s is None else s if s.n == self.n else _repeat(s, self.n) for s in stores]
        try:
            result = self.op.views(self, *operands, **args)  # type: ignore[misc]
        except Exception as error:
            raise self._named(error, stores) from None
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
        op = self.op
        operands = [None if s is None else Operand(s, spec, self.n) for s, spec in zip(stores, self.specs, strict=True)]
        args = self.args
        frames: FrameMap | None = None
        first = self.specs[0] if self.specs else None
        if op.frames and first is not None and first.layout and first.layout[0] == "F":
            operands, args, frames = unroll(op, operands, args, self.n)
        else:
            args = {
                k: resolve(_argument(op, k), v, self.n, op.name) if isinstance(v, Handle) else v for k, v in args.items()
            }
        n = self.n if frames is None else frames.count
        try:
            plan = op.plan(*operands, **args) if op.plan is not None else Plan(operands[0].shapes, *_sorted(args, op, n))
            results = self._on_gpu(plan, operands, n) if self.device.device_id is not None else self._on_cpu(plan, operands, n)
        except Exception as error:
            raise self._named(error, stores, frames) from None
        return self._labelled(results, stores, frames)

    # ---- CPU

    def _on_cpu(self, plan: Plan, operands: list[Any], n: int) -> list[Store]:
        op = self.op
        if plan.shapes is None:
            return self._returned(plan, operands, n)
        several = len(self.outs) > 1
        shapes = [_tuples(s) for s in (plan.shapes if several else [plan.shapes])]
        results = [_allocate(s, spec) for s, spec in zip(shapes, self.outs, strict=True)]
        columns = [_column(o, n) for o in operands] + [r.arrays() for r in results]
        make = self._arguments(plan, columns, n)
        kernel = op.cpu
        if kernel is None:
            raise RuntimeError("there is no CPU variant")

        def one(i: int) -> None:
            kernel(*make(i))

        nbytes = sum(r.nbytes() for r in results) + sum(o._store.nbytes() for o in operands if o is not None)
        self._raise_first(self._spread(one, n, nbytes))
        return results

    def _arguments(self, plan: Plan, columns: list[list[Any]], n: int) -> Any:
        """A function of i that gives the kernel's positional arguments for sample i."""
        extra = self.op.cpu_names[len(columns) :]
        rows: list[Any] = list(columns)
        constant: list[Any] = []
        kinds: list[bool] = []
        for name in extra:
            if name in plan.per_sample:
                values = plan.per_sample[name]
                plain = isinstance(values, np.ndarray) and values.ndim == 1
                rows.append(values.tolist() if plain else values)  # type: ignore[union-attr]
                kinds.append(True)
            else:
                constant.append(plan.shared[name])
                kinds.append(False)
        if not constant:
            return lambda i: [r[i] for r in rows]
        lead = len(columns)
        if not any(kinds):
            return lambda i: [*(r[i] for r in rows), *constant]

        def mixed(i: int) -> list[Any]:
            picked = [r[i] for r in rows[:lead]]
            row, fixed = iter(rows[lead:]), iter(constant)
            picked.extend(next(row)[i] if k else next(fixed) for k in kinds)
            return picked

        return mixed

    def _spread(self, one: Any, n: int, nbytes: int) -> dict[int, BaseException]:
        if n > 1 and (self.op.heavy or nbytes >= _WORTH_THREADS):
            return self.context.thread_pool.run(one, n)
        errors: dict[int, BaseException] = {}
        for i in range(n):
            try:
                one(i)
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
        make = self._arguments(plan, [_column(o, n) for o in operands], n)
        found: list[Any] = [None] * n
        several = len(self.outs) > 1

        def one(i: int) -> None:
            result = op.cpu(*make(i))  # type: ignore[misc]
            found[i] = result if several else (result,)

        nbytes = sum(o._store.nbytes() for o in operands if o is not None)
        errors = self._spread(one, n, nbytes)
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

    def _on_gpu(self, plan: Plan, operands: list[Any], n: int) -> list[Store]:
        from ndd._cuda.launch import Launch, allocate

        op = self.op
        if plan.shapes is None:
            found = op.cuda(Launch(self, plan, operands, None, n), *operands, **self._named_values(plan))  # type: ignore[misc]
            return [found] if isinstance(found, Store) else list(found)
        several = len(self.outs) > 1
        shapes = plan.shapes if several else [plan.shapes]
        results = [allocate(np.asarray(s, np.int64), spec, n) for s, spec in zip(shapes, self.outs, strict=True)]
        launch = Launch(self, plan, operands, results, n)
        if op.cuda is not None:
            op.cuda(launch, *operands, *results, **self._named_values(plan))
        elif op.cuda_source is not None:
            launch(op.name)
        else:
            raise RuntimeError("there is no GPU variant")
        return results

    def _named_values(self, plan: Plan) -> dict[str, Any]:
        wanted = set(self.op.cuda_names)
        both = {**plan.per_sample, **plan.shared}
        return {k: v for k, v in both.items() if k in wanted}

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
        try:
            named = type(error)(f"{self.op.name}: {where}{text}")
        except TypeError:
            named = RuntimeError(f"{self.op.name}: {where}{type(error).__name__}: {text}")
        named.__dict__.update(getattr(error, "__dict__", {}))
        return named.with_traceback(error.__traceback__)


def _stored(handle: Any) -> Store:
    """The value of an input; its failure is passed on as it is."""
    if handle._store is None:
        pending = handle._pending
        if not pending.finished:
            pending.context.finish(pending)
        if pending.error is not None:
            raise InputFailed(pending)
    return handle._value()


def _check_argument(handle: Any) -> None:
    if handle._store is None:
        _stored(handle)


def _argument(op: Operator, name: str) -> Any:
    return next(a for a in op.arguments if a.name == name)


def _sorted(args: dict[str, Any], op: Operator, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
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
    numpy = spec.dtype.numpy  # type: ignore[attr-defined]
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


def _column(operand: Operand | None, n: int) -> list[Any]:
    return [None] * n if operand is None else operand.arrays


def _repeat(store: Store, n: int) -> Store:
    one = store.arrays()[0]
    repeated = Store(
        store.dtype, store.layout, store.device, store.shapes * n, parts=[one] * n,
        source_info=None if store.source_info is None else store.source_info * n,
    )  # fmt: skip
    repeated.stream, repeated.ready = store.stream, store.ready
    return repeated
