"""The CPU side of a call: memory for the outputs, and the kernels that fill it."""

# Parts of the package's own classes, which users do not see.
# pyright: reportPrivateUsage=false
from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._compiled.jit import Kernel
from ndd._execution.errors import raise_signalled
from ndd._operator.call_cache import CachedPlan
from ndd._operator.naming import raise_first
from ndd._operator.partition import (
    Cut,
    Memory,
    Rows,
    SampleLoop,
    View,
    are_consecutive,
    array_pieces,
    bits_of,
    is_large,
    row_pieces,
    rows_are_alike,
    sample_arrays,
    too_few_to_compile,
    uses_nontemporal_stores,
)
from ndd._operator.plan import Plan
from ndd._tensor import Spec, Store
from ndd._tensor.memory import host_empty

if TYPE_CHECKING:
    from ndd._operator.call import Call


def planned(call: Call, plan: Plan, n: int) -> CachedPlan:
    """The plan with the shapes of the outputs in the form in which memory is made for them."""
    shapes = [_tuples_and_array(s) for s in ([plan.shapes] if call.cached_call.single else plan.shapes)]
    return CachedPlan(plan, shapes)


def computed(call: Call, planned: CachedPlan, stores: list[Any], n: int) -> list[Store]:
    """The outputs: computed by `.batch` if the operator has one that takes the plan, else by kernels for one sample."""
    op, plan = call.op, planned.plan
    results = [_allocate(s, array, spec) for (s, array), spec in zip(planned.shapes, call.outs, strict=True)]
    if not n:  # the batch consists of videos without frames
        return results
    if op.batch_takes_plan:
        op.batch(call, plan, *stores, *[None] * (len(op.inputs) - len(stores)), *results)  # type: ignore[misc]
    else:
        if planned.kernels is None:
            planned.kernels = [
                _Bound(call, plan, kernel, samples, len(stores)) for kernel, samples in _chosen(op, plan)
            ]
        for bound in planned.kernels:
            bound.run(call, stores, results, n)
    return results


def _chosen(op: Any, plan: Plan) -> list[tuple[Any, Any]]:
    """The kernels that compute the samples, each with the numbers of its samples; None: all of them."""
    kernel = op.cpu if plan.kernel is None else plan.kernel
    if kernel is None:
        raise RuntimeError(f'there is no CPU variant: write one with `@{op.name}.cpu`, or ask for device="gpu"')
    if kernel.__class__ is not dict:
        return [(kernel, None)]
    return [
        (candidate, None if mask.all() else np.flatnonzero(mask)) for candidate, mask in kernel.items() if mask.any()
    ]


class _Bound:
    """A kernel and its arguments: the operands, their views, and numbers of the plan."""

    __slots__ = (
        "_alike", "_columns", "_compiled", "_cut", "_kernel", "_loops", "_numbers", "_operands", "_samples", "_varies",
        "_views", "_work",
    )  # fmt: skip

    def __init__(self, call: Call, plan: Plan, kernel: Any, samples: np.ndarray | None, count: int):
        op = call.op
        self._kernel: Any = kernel
        names, bound = op.cpu_names, {}
        if plan.kernel is not None:
            self._kernel, bound = (kernel.func, kernel.keywords) if isinstance(kernel, partial) else (kernel, {})
            names = _names(self._kernel)
        self._compiled = self._kernel.__class__ is Kernel
        # Operands by their number among inputs and outputs; None for an input that is not given.
        inputs = range(max(len(op.inputs), count)) if plan.inputs is None else plan.inputs
        self._operands = [k if k < count else None for k in inputs] + [count + k for k in range(len(call.outs))]
        lead = 1 + len(call.outs) if op.variadic and not self._compiled else len(self._operands)
        self._numbers = [_bound(bound[name]) if name in bound else plan.field(name) for name in names[lead:]]
        if self._compiled:
            self._numbers = [(bits_of(value), each) for value, each in self._numbers]
        self._varies = any([each for _, each in self._numbers])
        self._cut = "whole" if samples is not None else plan.cut or op.cut
        self._samples, self._work = samples, plan.work
        self._views = plan._views(names, len(self._operands))
        if self._compiled and self._cut == "elements":
            self._views = [View("flat", view and view.dtype) for view in self._views]
        self._alike: bool | None = None
        self._loops: dict[Any, SampleLoop] = {}
        self._columns: list[Any] | None = None

    def run(self, call: Call, stores: list[Any], results: list[Store], n: int) -> None:
        """Computes the samples that the kernel is for."""
        every = [*stores, *results]
        operands = [None if k is None else every[k] for k in self._operands]
        if self._cut == "whole" or self._varies or not self._in_arrays(call, operands, results[0]):
            if self._compiled:
                self._in_loop(call, operands, n)
            else:
                self._one_by_one(call, operands, n)

    def _in_arrays(self, call: Call, operands: list[Any], out: Store) -> bool:
        """Runs a Python kernel on a few large arrays, if it can. Errors are found again when samples are computed one by
        one."""
        kernel, by_elements = self._kernel, self._cut == "elements"
        if self._compiled:  # a few numbers are not worth compiling for
            if not (by_elements and kernel.has_fallback() and too_few_to_compile(out)):
                return False
            kernel = kernel.run_fallback
        if by_elements:
            rows = array_pieces(operands, self._views, call.context)
        else:
            rows = row_pieces(operands, self._views, call.context)
        if rows is None:
            return False
        if call.op.variadic and not self._compiled:
            rows = [(row[:-1], row[-1]) for row in rows]
        extra = [value for value, _ in self._numbers]
        return _all_done(call, kernel, [(*row, *extra) for row in rows])

    def _in_loop(self, call: Call, operands: list[Any], n: int) -> None:
        """Runs a compiled kernel over samples, or over pieces of them."""
        joined = self._cut != "whole" and not self._varies and are_consecutive(operands, n)
        if joined and self._alike is None:
            self._alike = rows_are_alike(operands, self._views, n)
        joined = joined and self._alike is True
        key = joined, call.threads if self._cut != "whole" and is_large(operands) else 1
        loop = self._loops.get(key)
        if loop is None:
            fields: list[Any] = [
                None if store is None else Memory(k, view)
                for k, (store, view) in enumerate(zip(operands, self._views, strict=True))
            ]
            fields += [Rows(np.asarray(value)) if each else value for value, each in self._numbers]
            cut = None
            if self._cut != "whole":
                cut = Cut(key[1], joined, self._cut == "elements" and uses_nontemporal_stores(operands[-1]))
            loop = self._loops[key] = SampleLoop(self._kernel, fields, operands, n, self._work, self._samples, cut)
        loop.run(call, operands)

    def _one_by_one(self, call: Call, operands: list[Any], n: int) -> None:
        """Runs a Python kernel for each sample."""
        columns = [sample_arrays(store, view, n) for store, view in zip(operands, self._views, strict=True)]
        nbytes = sum([store.nbytes() * (n if store.n != n else 1) for store in operands if store is not None])
        if call.op.variadic:  # the kernel takes the inputs of a sample as one tuple
            columns = [list(zip(*columns[: -len(call.outs)], strict=True)), *columns[-len(call.outs) :]]
        if self._columns is None:
            self._columns = [_column(value, n) if each else [value] * n for value, each in self._numbers]
        rows = list(zip(*columns, *self._columns, strict=True))
        kernel, chosen = self._kernel, self._samples
        if chosen is not None:
            errors = call.spread(lambda k: kernel(*rows[chosen[k]]), len(chosen), nbytes * len(chosen) // n)
            raise_first({int(chosen[k]): error for k, error in errors.items()})
        elif call.op.ours:
            raise_first(call.spread(lambda i: kernel(*rows[i]), n, nbytes))
        else:
            raise_first(call.spread(lambda i: _refuse_result(kernel(*rows[i])), n, nbytes))


def _bound(value: Any) -> tuple[Any, bool]:
    """A value of a `functools.partial`, and whether it has a row for each sample."""
    return (value.values, True) if value.__class__ is Rows else (value, False)


def _names(kernel: Any) -> list[str]:
    """The parameters of a kernel that the plan names."""
    code = getattr(kernel, "function", kernel).__code__
    return list(code.co_varnames[: code.co_argcount])


def _column(values: Any, n: int) -> list[Any]:
    """The value of each sample."""
    if values.__class__ is not np.ndarray:
        return values
    array: Any = values
    return array.tolist() if array.ndim == 1 else [*np.ascontiguousarray(array)]


def _refuse_result(returned: Any) -> None:
    """Refuses a value that a user's kernel returns: it would be lost, and the output would stay unwritten."""
    if returned is not None:
        raise TypeError(
            f"the CPU kernel must write the result into its output (`out[...] = ...`), but it returned {type(returned).__name__}"
        )


def _all_done(call: Call, kernel: Any, rows: list[tuple[Any, ...]]) -> bool:
    def run(i: int) -> None:
        kernel(*rows[i])

    if len(rows) > 1:
        return not call.context.thread_pool.run(run, len(rows))
    try:
        kernel(*rows[0])
    except Exception as error:
        raise_signalled(error)
        return False
    return True


def store_of(value: Any, spec: Spec) -> Store:
    """The store of an output that `.batch` returned as a list of arrays, one array `[N, ...]`, or a store."""
    if isinstance(value, Store):
        return value
    if value.__class__ is list:
        return Store(spec.dtype, spec.layout, spec.device, [tuple(p.shape) for p in value], parts=value)
    shapes = [tuple(value.shape[1:])] * len(value)
    return Store(spec.dtype, spec.layout, spec.device, shapes, whole=value)


def _tuples_and_array(shapes: Any) -> tuple[list[tuple[int, ...]], np.ndarray | None]:
    """The shapes of a plan as tuples, and as a copied array if they were an array."""
    if shapes.__class__ is np.ndarray:
        return [tuple(s) for s in shapes.tolist()], shapes.astype(np.int64)
    return [tuple(int(e) for e in s) for s in shapes], None


def allocated(shapes: Any, spec: Spec) -> Store:
    """Uninitialised host memory for one output whose shapes a plan gives."""
    return _allocate(*_tuples_and_array(shapes), spec)


def _allocate(shapes: list[tuple[int, ...]], array: np.ndarray | None, spec: Spec) -> Store:
    """Uninitialised host memory for one output: one array for samples of one shape, else one flat buffer."""
    store = Store(spec.dtype, spec.layout, spec.device, shapes, shape_array=array)
    first = shapes[0] if shapes else ()
    if shapes and shapes.count(first) != len(shapes):
        store.flat = host_empty(store.volumes.total, spec.dtype.numpy)
    else:
        store.whole = host_empty((len(shapes), *first), spec.dtype.numpy)
    return store
