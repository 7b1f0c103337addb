"""The roles `.cpu_turns` and `.cpu_batch`, until the last operator has `.cpu` or `.batch` in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._compiled.jit import Kernel
from ndd._execution.errors import raise_signalled
from ndd._operator import turns
from ndd._operator.call_cache import CachedPlan
from ndd._operator.naming import raise_first
from ndd._operator.pieces import batch_pieces, few, pieces
from ndd._operator.plan import Plan
from ndd._tensor import Store

if TYPE_CHECKING:
    from ndd._operator.call import Call


def _lead(call: Call) -> int:
    """How many parameters of `.cpu` come before those of the plan: inputs (variadic ones as one tuple) and outputs."""
    return (1 if call.op.variadic else len(call.op.inputs)) + len(call.outs)


def _columns(call: Call, plan: Plan, lead: int, n: int) -> list[Any]:
    """For every further parameter of the kernel a list with its value for each sample."""
    columns: list[Any] = []
    for name in call.op.cpu_names[lead:]:
        values, each = plan.field(name)
        if not each:
            values = [values] * n
        elif isinstance(values, np.ndarray):
            values = values.tolist() if values.ndim == 1 else list(np.ascontiguousarray(values))
        columns.append(values)
    return columns


def computed(call: Call, planned: CachedPlan, stores: list[Any], results: list[Store], n: int) -> list[Store]:
    """See `on_cpu.computed`."""
    op, plan = call.op, planned.plan
    if "addresses" in op.cpu_batch_names:
        every = np.array([np.broadcast_to(s.pointers(), (n,)) for s in stores])
        plan = Plan(plan.shapes, plan.per_sample, {**plan.shared, "addresses": every})
    left: Any = None
    if op.cpu_turns is not None and not ((op.cut == "elements") and few(results[0])):
        left = op.cpu_turns(call, plan, stores, results)
        if left is not None and not len(left):
            return results
    if op.cpu_batch is not None and _at_once(call, plan, stores, results):
        return results
    if (op.cut == "elements") and not planned.plan.per_sample and _in_pieces(call, planned, stores, results):
        return results
    if op.cpu is None:
        if op.cpu_batch is None:
            raise RuntimeError(f'there is no CPU variant: write one with `@{op.name}.cpu`, or ask for device="gpu"')
        _one_by_one(call, plan, stores, results, n)
        return results
    if left is None and isinstance(op.cpu, Kernel) and _in_turns(call, op.cpu, plan, stores, results):
        return results
    columns, nbytes = _arrays(call, stores, n)
    if op.variadic:  # the kernel takes the inputs of a sample as one tuple
        columns = [list(zip(*columns, strict=True))]
    for r in results:
        columns.append(r.arrays())
        nbytes += r.nbytes()
    if planned.columns is None:
        planned.columns = _columns(call, planned.plan, _lead(call), n)
    columns += planned.columns
    rows = list(zip(*columns, strict=True))
    if left is not None:
        nbytes = nbytes * len(left) // n
    _run(call, op.cpu, rows, nbytes, left)
    return results


def _in_turns(call: Call, kernel: Kernel, plan: Plan, stores: list[Any], results: list[Store]) -> bool:
    """Runs a compiled kernel for samples inside one call of a compiled loop, if it can; errors are left to the way sample
    by sample, as is float16, which kernels take as its bits, and what is no array."""
    memory = [*stores, *[None] * (len(call.op.inputs) - len(stores)), *results]
    if call.op.variadic or any([s is not None and s.dtype.name in ("f16", "bfloat16") for s in memory]):
        return False
    what = list(memory)
    for name in call.op.cpu_names[len(what) :]:
        values, each = plan.field(name)
        if each:
            values = values if isinstance(values, np.ndarray) else np.array(values)
            if values.dtype.kind not in "biuf":
                return False
            values = turns.Rows(values)
        what.append(values)
    try:
        turns.each_sample(call, kernel, *what)
    except Exception as error:
        raise_signalled(error)
        return False
    return True


def _arrays(call: Call, stores: list[Any], n: int) -> tuple[list[Any], int]:
    """For every input a list of its samples, and how many bytes these are."""
    columns: list[Any] = []
    nbytes = 0
    for store in stores:
        if store is None:
            columns.append([None] * n)
            continue
        arrays = store.arrays()
        columns.append(arrays if len(arrays) == n else arrays * n)
        for a in arrays:
            nbytes += a.nbytes
    columns += [[None] * n] * (len(call.op.inputs) - len(stores))
    return columns, nbytes


def _one_by_one(call: Call, plan: Plan, stores: list[Any], results: list[Store], n: int) -> None:
    """The kernel for whole batches on every sample as a batch of one."""
    op = call.op
    every = op.cpu_batch_inputs is None
    columns, nbytes = _arrays(call, stores, n)
    taken = columns if every else [columns[i] for i in op.cpu_batch_inputs]  # type: ignore[union-attr]
    alone: list[Any] = [[None if a is None else a[None] for a in column] for column in taken]
    lead = 1 if every else len(taken)
    if every:
        alone = [list(zip(*alone, strict=True))]
    for r in results:
        alone.append([a[None] for a in r.arrays()])
        nbytes += r.nbytes()
    for name in op.cpu_batch_names[lead + len(results) :]:
        values, each = plan.field(name)
        alone.append([values[i : i + 1] for i in range(n)] if each else [values] * n)
    _run(call, op.cpu_batch, list(zip(*alone, strict=True)), nbytes)


def _run(call: Call, kernel: Any, rows: list[tuple[Any, ...]], nbytes: int, chosen: Any = None) -> None:
    if chosen is not None:
        found = call.spread(lambda k: kernel(*rows[chosen[k]]), len(chosen), nbytes)
        raise_first({int(chosen[k]): error for k, error in found.items()})
    elif call.op.ours:
        raise_first(call.spread(lambda i: kernel(*rows[i]), len(rows), nbytes))
    else:
        raise_first(call.spread(lambda i: _nothing(kernel(*rows[i])), len(rows), nbytes))


def _nothing(returned: Any) -> None:
    """What a user's kernel returns would be lost, and the output hold anything."""
    if returned is not None:
        raise TypeError(
            f"the CPU kernel is to write the result into its output (`out[...] = ...`), it returned {type(returned).__name__}"
        )


def _in_pieces(call: Call, planned: CachedPlan, stores: list[Any], results: list[Store]) -> bool:
    """Runs an elementwise kernel on large pieces, if it can; errors are left to the way sample by sample."""
    rows = pieces(stores, results[0], call.context)
    if rows is None:
        return False
    op = call.op
    if op.variadic:  # the kernel takes the inputs as one tuple
        rows = [(row[:-1], row[-1]) for row in rows]
    if op.cpu is None:
        names = op.cpu_batch_names[len(op.inputs) + len(call.outs) :]
        extra = tuple([planned.plan.field(k)[0] for k in names])
        return _all_done(call, op.cpu_batch, [(*row, *extra) for row in rows])
    extra = tuple([column[0] for column in _columns(call, planned.plan, _lead(call), 1)])
    return _all_done(call, op.cpu, [(*row, *extra) for row in rows])


def _at_once(call: Call, plan: Plan, stores: list[Any], results: list[Store]) -> bool:
    """Runs the kernel for whole batches, if it can; errors are left to the way sample by sample."""
    rows = batch_pieces(call.op, plan, stores, results, call.context)
    return rows is not None and _all_done(call, call.op.cpu_batch, rows)


def _all_done(call: Call, kernel: Any, rows: list[tuple[Any, ...]]) -> bool:
    if len(rows) > 1:
        return not call.context.thread_pool.run(lambda i: kernel(*rows[i]), len(rows))
    try:
        kernel(*rows[0])
    except Exception as error:
        raise_signalled(error)
        return False
    return True
