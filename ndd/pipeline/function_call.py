"""The calls that made a pipeline's nodes, and the names that DALI gives these nodes.

Functions of `fn` and the operators of nodes are `noted`: recorded nodes know the call that made them. A call inside another
(`fn.readers.sequence` calls `fn.readers.file`) is a part of it.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable
from typing import Any

from ndd.pipeline import current

_CAPITALS = {
    "bbox_paste": "BBoxPaste", "bbox_rotate": "BBoxRotate", "coco": "COCO", "mfcc": "MFCC", "mxnet": "MXNet", "rms": "RMS",
    "dl_tensor_python_function": "DLTensorPythonFunction", "roi_random_crop": "ROIRandomCrop", "tfrecord": "TFRecord",
    "random_bbox_crop": "RandomBBoxCrop", "random_object_bbox": "RandomObjectBBox", "ssd_random_crop": "SSDRandomCrop",
    "DataNode.__getitem__": "_TensorSubscript", "DataNode.shape": "_Shape", "DataNode.property": "GetProperty",
    "DataNode.source_info": "GetProperty",
}  # fmt: skip
MOVES = ("DataNode.gpu", "DataNode.cpu")


class _Local(threading.local):
    inside = False  # a noted function


_local = _Local()
_serials = itertools.count()


class Node:
    """The part of a `DataNode` that calls see.

    Attributes:
        name: DALI's name: "images", "__Flip_0"; "reader[1]" for one of several outputs.
        _call: the call that made a recorded node, and `_place` the node's place among its outputs.
        _made_in: the branch of an `if` on a node whose samples it holds.
    """

    name: str | None = None
    _call: FunctionCall | None = None
    _place: Any = 0
    _made_in: Any = None
    _step: Any = None
    _recorded: bool


def nodes_in(value: Any) -> list[Node]:
    """The nodes in a value, a slice, a list or a tuple, in order."""
    if isinstance(value, slice):
        value = (value.start, value.stop, value.step)
    if isinstance(value, list | tuple):
        return [node for v in value for node in nodes_in(v)]
    return [value] if isinstance(value, Node) else []


def parted(value: Any) -> Any:
    """A value whose nodes hold only the samples that take the current branch.

    ValueError for a node that was made in a branch that has ended.
    """
    if isinstance(value, list | tuple):
        return type(value)(map(parted, value))
    if isinstance(value, dict):
        return {key: parted(v) for key, v in value.items()}
    if isinstance(value, slice):
        return slice(parted(value.start), parted(value.stop), parted(value.step))
    if not isinstance(value, Node):
        return value
    here, chain = current.branch(), []
    while here is not value._made_in:
        if here is None:
            raise ValueError(
                "This value was made in a branch of an `if` on a node, for the samples of that branch alone. Assign it to a "
                "variable in every branch (what is appended to a list is not put together after an `if`)"
            )
        chain.append(here)
        here = here.around
    for branch in reversed(chain):
        value = branch.part(value)
    return value


class FunctionCall:
    """A call that made recorded nodes.

    Attributes:
        path: of the function: "readers.file" of `fn`, "DataNode.__add__", "math.sqrt".
        name: of its nodes.
        serial: larger than the number of any call before.
    """

    def __init__(self, path: str, name: str, inputs: tuple[Any, ...], arguments: dict[str, Any]):
        self.path, self.name = path, name
        self.inputs, self.arguments = inputs, arguments
        self.serial = next(_serials)

    @property
    def nodes(self) -> list[Node]:
        """The nodes that the call takes: its inputs, then its arguments in the order of their names."""
        return nodes_in((*self.inputs, *(self.arguments[key] for key in sorted(self.arguments))))

    @property
    def device(self) -> str:
        """The device of the result, as far as the graph tells: "cpu" or "gpu"."""
        if self.path in MOVES:
            return self.path.removeprefix("DataNode.")
        chosen = self.arguments.get("device")
        if chosen is None:
            chosen = next((n._call.device for n in self.nodes if n._call is not None), "cpu")
        return "gpu" if chosen == "mixed" else chosen


def noted(path: str | None, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose nodes know which call made them; its attribute `noted` is the path. In a branch of an `if` on a node
    it gets only the samples that take the branch."""

    @functools.wraps(function)
    def call(*inputs: Any, **arguments: Any) -> Any:
        if _local.inside:
            return function(*inputs, **arguments)
        inputs, arguments = parted(inputs), parted(arguments)
        _local.inside = True
        try:
            result = function(*inputs, **arguments)
        finally:
            _local.inside = False
        if path is not None:
            _note(result, path, inputs, arguments)
        return result

    call.noted = path  # type: ignore[attr-defined]
    return call


def _note(result: Any, path: str, inputs: tuple[Any, ...], arguments: dict[str, Any]) -> None:
    several = isinstance(result, dict | list)
    places = result.items() if isinstance(result, dict) else enumerate(result if several else [result])
    nodes = [(place, node) for place, node in places if isinstance(node, Node) and node.name is None]
    if not nodes:
        return
    pipeline = current.pipeline()
    numbers = _serials if pipeline is None else pipeline._states.numbers
    if not path.startswith("DataNode.") and path != "external_source":
        for _ in range(sum(not nodes_in(value) for value in inputs)):
            next(numbers)  # DALI makes it a constant, which has a name
    name = inputs[0].name if path in MOVES else arguments.get("name")
    if name is None:
        name = f"__{_class_name(path)}_{next(numbers)}"
    call = FunctionCall(path, name, inputs, arguments) if nodes[0][1]._recorded else None
    for place, node in nodes:
        node.name = f"{name}[{place}]" if several else name
        node._call, node._place = call, place
        if pipeline is not None and pipeline.enable_memory_stats and node._recorded:
            pipeline._statistics.watch(node, name, place)


@functools.cache
def _class_name(path: str) -> str:
    home, _, last = path.rpartition(".")
    class_name = _CAPITALS.get(path) or _CAPITALS.get(last)
    if class_name is None:
        arithmetic = home in ("math", "DataNode")
        class_name = "_ArithmeticGenericOp" if arithmetic else "".join(part.capitalize() for part in last.split("_"))
    return class_name
