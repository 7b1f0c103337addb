"""The trace of a pipeline: the steps that its function recorded, once, when the pipeline was made.

A step says how a value is computed from earlier values; `replay.py` computes all steps for every batch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from ndd.pipeline.current import called_here
from ndd.pipeline.operator_states import OperatorState

_serials = itertools.count()


class Step:
    """A recorded call.

    Attributes:
        compute: `compute(run)`, or `compute(run, object)` if the call has state between runs.
        nodes: the nodes that it takes, in DALI's order: its inputs, then its arguments by their names.
        call_state: the state of the call.
        several: whether it returns a tuple or a dict.
        joins: whether it runs even if one of its inputs has no samples, as steps that merge branches do.
        serial: larger than the number of any step before.
    """

    __slots__ = ("call_state", "compute", "joins", "nodes", "serial", "several")

    def __init__(
        self,
        compute: Callable[..., Any],
        nodes: list[Any],
        call_state: OperatorState | None,
        several: bool,
        joins: bool,
        live: bool,
    ):
        self.compute = compute if live else called_here(compute)
        self.nodes, self.call_state, self.several, self.joins = nodes, call_state, several, joins
        self.serial = next(_serials)


class Trace:
    """The steps that outputs depend on.

    Attributes:
        steps: in the order in which they were recorded, each with the steps whose values are not needed after it.
        call_states: their states in DALI's order: output after output, the inputs of a step before the step.
    """

    def __init__(self, outputs: Iterable[Any], always: Iterable[Step]):
        ends = [node._step for node in outputs if node._step is not None]
        met = _met([*ends, *always])
        last: dict[Step, Step] = {}
        for step in (ordered := sorted(met, key=lambda step: step.serial)):
            last |= {node._step: step for node in step.nodes}
            last[step] = step
        done: dict[Step, list[Step]] = {}
        for step in last.keys() - set(ends):
            done.setdefault(last[step], []).append(step)
        self.steps = [(step, done.get(step, [])) for step in ordered]
        self.call_states = [step.call_state for step in met if step.call_state is not None]


def _met(ends: list[Step]) -> list[Step]:
    """Steps and everything that they depend on, inputs first; without recursion, since pipelines may be long."""
    ordered: dict[Step, None] = {}
    waiting: list[tuple[Step, bool]] = [(step, False) for step in reversed(ends)]
    while waiting:
        step, is_ready = waiting.pop()
        if step in ordered:
            continue
        if is_ready:
            ordered[step] = None
            continue
        waiting.append((step, True))
        waiting += [(node._step, False) for node in reversed(step.nodes) if node._step is not None]
    return list(ordered)
