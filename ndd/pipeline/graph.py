"""The graph of a pipeline's outputs: the calls that they depend on, and their picture."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ndd.pipeline.function_call import MOVES, FunctionCall, nodes_in


def calls_behind(outputs: Iterable[Any]) -> list[FunctionCall]:
    """The calls that outputs depend on, in the order in which they were made.

    RuntimeError for a node that no noted function made, such as a node of the user or of `auto_aug`.
    """
    calls: dict[int, FunctionCall] = {}
    waiting = nodes_in(tuple(outputs))
    while waiting:
        call = waiting.pop()._call
        if call is None:
            raise RuntimeError(
                "one of its nodes was not made by a function of `fn` or `math` (it may be of `auto_aug`)"
            )
        if call.serial not in calls:
            calls[call.serial] = call
            waiting += call.nodes
    return [calls[serial] for serial in sorted(calls)]


def dot_text(outputs: Iterable[Any], show_tensors: bool, use_colors: bool) -> str:
    """The graph of the outputs in the language of Graphviz: every call, and an edge to each call that takes its result.

    Args:
        show_tensors: each value is a box between the calls, and edges bear the places of outputs and inputs.
        use_colors: calls on the CPU are blue, those on a GPU green.
    """
    lines = ["digraph pipeline {"]
    calls = calls_behind(outputs)
    for call in calls:
        colour = f"[color={'green' if call.device == 'gpu' else 'blue'}]" if use_colors else ""
        lines.append(f"{_quoted(_title(call))}{colour};")
    takers = [(_title(call), call.nodes) for call in calls]
    for i, node in enumerate(nodes_in(tuple(outputs))):
        lines.append(f"{_quoted(f'output {i}')}[shape=plaintext];")
        takers.append((f"output {i}", [node]))
    for taker, nodes in takers:
        for i, node in enumerate(nodes):
            giver = _title(node._call)
            if show_tensors:
                box = _quoted(f"{giver}[{node._place}]")
                lines += [f"{box}[shape=box];", f"{_quoted(giver)} -> {box}[label={_quoted(node._place)}];"]
                lines.append(f"{box} -> {_quoted(taker)}[label={i}];")
            else:
                lines.append(f"{_quoted(giver)} -> {_quoted(taker)};")
    return "\n".join([*dict.fromkeys(lines), "}"]) + "\n"


def _title(call: Any) -> str:
    """The name of a call; a call that moves a value to another device has the name of the value."""
    return f"{call.name} on {call.device}" if call.path in MOVES else call.name


def _quoted(name: Any) -> str:
    return '"' + str(name).replace("\\", "\\\\").replace('"', '\\"') + '"'
