"""The GPU side of a call: memory for the outputs, and the operator's launches, new or recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ndd._cuda.launch import Joined, Launch, Room, replay
from ndd._operator.plan import Plan
from ndd._tensor import Spec, Store
from ndd._tensor.operand import Operand

if TYPE_CHECKING:
    from ndd._operator.call import Call
    from ndd._operator.call_cache import CachedPlan


def computed(call: Call, planned: CachedPlan, operands: list[Any], n: int) -> list[Store]:
    """The outputs. Launches that depend on shapes and constants alone are repeated without the operator's code."""
    op, plan = call.op, planned.plan
    if planned.rooms is None:
        shapes = [plan.shapes] if call.cached_call.single else plan.shapes
        rooms: list[Room] = []
        for s in shapes:
            rooms.append(rooms[0] if rooms and s is shapes[0] else Room(s, n, operands))
        planned.rooms = rooms  # complete: other threads may use this plan at once
    results = [room.store(spec) for room, spec in zip(planned.rooms, call.outs, strict=True)]
    if planned.recorded is not None:
        replay(planned.recorded, call, operands, results)
        return results
    outputs = [Operand(r, spec, n) for r, spec in zip(results, call.outs, strict=True)]
    launch = Launch(call, plan, operands, outputs, n, planned.cached)
    if op.cuda is not None:
        op.cuda(launch, *operands, *outputs, **_named_values(op, plan))
    elif op.cuda_source is not None:
        launch(op.name)
    else:
        raise RuntimeError("there is no GPU variant")
    if planned.cached and not any([o is not None and o.touched for o in (*operands, *outputs)]):
        planned.recorded = launch.written_down()
    return results


def joined(first: Call, plan: Plan, operands: list[Any], between: Operand, second: Plan, spec: Spec) -> Store:
    """The output of an operator, made by the kernels of the operator that makes its input, without the input in between.

    Args:
        first: the call of the other operator, its `plan` and inputs.
        between: its output, which has shapes but no memory.
        second: the plan of the operator itself.
        spec: the description of its output.
    """
    n = between.n
    result = Room(second.shapes, n, []).store(spec)
    both = Plan(second.shapes, {**plan.per_sample, **second.per_sample}, {**plan.shared, **second.shared})
    launch = Joined(first, both, operands, [Operand(result, spec, n)], n)
    launch.type_between = between.dtype
    first.op.cuda(launch, *operands, between, **_named_values(first.op, plan))  # type: ignore[misc]
    return result


def batch(call: Call, operands: list[Any]) -> Any:
    """The value of an operator that computes a whole batch in Python, by its CUDA function."""
    op = call.op
    if op.cuda is None:
        raise RuntimeError("there is no GPU variant")
    launch = Launch(call, Plan([]), operands, [], call.n)
    args = call.arguments()
    names = op.cuda_names
    return op.cuda(launch, *operands, **{k: v for k, v in args.items() if k in names or "**" in names})


def _named_values(op: Any, plan: Plan) -> dict[str, Any]:
    own, shared = plan.per_sample, plan.shared
    return {k: own[k] if k in own else shared[k] for k in op.cuda_names if k in own or k in shared}


__all__ = ["batch", "computed", "joined"]
