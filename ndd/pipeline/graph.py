"""What made the nodes of a pipeline: their names, as DALI gives them, and the graph behind outputs.

Functions of `fn` and the operators of nodes are `noted`: recorded nodes know the call that made them. A call inside another
(`fn.readers.sequence` calls `fn.readers.file`) is a part of it.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterable
from typing import Any

from ndd.pipeline.node import DataNode, nodes_in

_CAPITALS = {
    "bbox_paste": "BBoxPaste", "bbox_rotate": "BBoxRotate", "coco": "COCO", "mfcc": "MFCC", "mxnet": "MXNet", "rms": "RMS",
    "dl_tensor_python_function": "DLTensorPythonFunction", "roi_random_crop": "ROIRandomCrop", "tfrecord": "TFRecord",
    "random_bbox_crop": "RandomBBoxCrop", "random_object_bbox": "RandomObjectBBox", "ssd_random_crop": "SSDRandomCrop",
    "DataNode.__getitem__": "_TensorSubscript", "DataNode.shape": "_Shape", "DataNode.property": "GetProperty",
    "DataNode.source_info": "GetProperty",
}  # fmt: skip
_MOVES = ("DataNode.gpu", "DataNode.cpu")


class _Local(threading.local):
    inside = False  # a noted function


_local = _Local()
_serials = itertools.count()


class FunctionCall:
    """A call that made recorded nodes.

    Attributes:
        path: of the function: "readers.file" of `fn`, "DataNode.__add__", "math.sqrt".
        name: of its nodes.
        serial: larger than that of any call before.
    """

    def __init__(self, path: str, name: str, inputs: tuple[Any, ...], arguments: dict[str, Any]):
        self.path, self.name = path, name
        self.inputs, self.arguments = inputs, arguments
        self.serial = next(_serials)

    @property
    def nodes(self) -> list[DataNode]:
        """The nodes that it takes: its inputs, then its arguments by their names."""
        return nodes_in((*self.inputs, *(self.arguments[key] for key in sorted(self.arguments))))

    @property
    def device(self) -> str:
        """Where its result is, as far as the graph tells: "cpu" or "gpu"."""
        if self.path in _MOVES:
            return self.path.removeprefix("DataNode.")
        given = self.arguments.get("device")
        if given is None:
            given = next((n.call.device for n in self.nodes if n.call is not None), "cpu")
        return "gpu" if given == "mixed" else given


def noted(path: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose nodes know what call made them; its attribute `noted` is the path."""

    @functools.wraps(function)
    def call(*inputs: Any, **arguments: Any) -> Any:
        if _local.inside:
            return function(*inputs, **arguments)
        _local.inside = True
        try:
            found = function(*inputs, **arguments)
        finally:
            _local.inside = False
        _note(found, path, inputs, arguments)
        return found

    call.noted = path  # type: ignore[attr-defined]
    return call


def _note(found: Any, path: str, inputs: tuple[Any, ...], arguments: dict[str, Any]) -> None:
    from ndd.pipeline.body import PipelineBody

    several = isinstance(found, dict | list)
    places = found.items() if isinstance(found, dict) else enumerate(found if several else [found])
    made = [(place, node) for place, node in places if isinstance(node, DataNode) and node.name is None]
    if not made:
        return
    pipeline = PipelineBody.current()
    numbers = _serials if pipeline is None else pipeline.states.numbers
    if not path.startswith("DataNode.") and path != "external_source":
        for _ in range(sum(not nodes_in(value) for value in inputs)):
            next(numbers)  # DALI makes a constant of it, which has a name
    name = inputs[0].name if path in _MOVES else arguments.get("name")
    if name is None:
        name = f"__{_class_name(path)}_{next(numbers)}"
    call = FunctionCall(path, name, inputs, arguments) if made[0][1].recorded else None
    for place, node in made:
        node.name = f"{name}[{place}]" if several else name
        node.call, node.place = call, place
        if pipeline is not None and pipeline.enable_memory_stats:
            pipeline.statistics.watch(node, name, place)


@functools.cache
def _class_name(path: str) -> str:
    home, _, last = path.rpartition(".")
    found = _CAPITALS.get(path) or _CAPITALS.get(last)
    if found is None:
        arithmetic = home in ("math", "DataNode")
        found = "_ArithmeticGenericOp" if arithmetic else "".join(part.capitalize() for part in last.split("_"))
    return found


def calls_behind(outputs: Iterable[Any]) -> list[FunctionCall]:
    """The calls that outputs depend on, in the order in which they were made.

    RuntimeError for a node that no noted function made: one of the user's, or of `auto_aug`.
    """
    found: dict[int, FunctionCall] = {}
    waiting = nodes_in(tuple(outputs))
    while waiting:
        call = waiting.pop().call
        if call is None:
            raise RuntimeError("one of its nodes was made by no function of `fn` or `math`, as those of `auto_aug` are")
        if call.serial not in found:
            found[call.serial] = call
            waiting += call.nodes
    return [found[serial] for serial in sorted(found)]


def dot_text(outputs: Iterable[Any], show_tensors: bool, use_colors: bool) -> str:
    """The graph behind outputs in the language of Graphviz: every call, and an edge to each that takes what it gives.

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
            giver = _title(node.call)
            if show_tensors:
                box = _quoted(f"{giver}[{node.place}]")
                lines += [f"{box}[shape=box];", f"{_quoted(giver)} -> {box}[label={_quoted(node.place)}];"]
                lines.append(f"{box} -> {_quoted(taker)}[label={i}];")
            else:
                lines.append(f"{_quoted(giver)} -> {_quoted(taker)};")
    return "\n".join([*dict.fromkeys(lines), "}"]) + "\n"


def _title(call: Any) -> str:
    """The name of a call; what moves a value to another device has the name of the value."""
    return f"{call.name} on {call.device}" if call.path in _MOVES else call.name


def _quoted(name: Any) -> str:
    return '"' + str(name).replace("\\", "\\\\").replace('"', '\\"') + '"'


_WITH_TWO = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
_OTHERS = ("eq", "ne", "lt", "le", "gt", "ge", "neg", "invert", "abs")
OPERATORS = [f"__{name}__" for name in (*_WITH_TWO, *(f"r{name}" for name in _WITH_TWO), *_OTHERS)]
for _name in (*OPERATORS, "__getitem__"):
    setattr(DataNode, _name, noted(f"DataNode.{_name}", getattr(DataNode, _name)))
for _name in ("gpu", "cpu", "shape", "source_info", "property"):
    setattr(DataNode, _name, noted(f"DataNode.{_name}", getattr(DataNode, _name)))


_apply = DataNode.__ndd_function__


def _apply_noted(self: DataNode, function: Callable[..., Any], *operands: Any) -> DataNode:
    if not isinstance(function, functools.partial):
        return _apply(self, function, *operands)
    (name,) = function.args  # of a function of `ndd.math`
    return noted(f"math.{name}", lambda *_: _apply(self, function, *operands))(*operands)


DataNode.__ndd_function__ = _apply_noted  # type: ignore[method-assign]
