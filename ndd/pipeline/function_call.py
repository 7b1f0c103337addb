"""What made the nodes of a pipeline: the calls, and the names that DALI gives their nodes.

Functions of `fn` and the operators of nodes are `noted`: recorded nodes know the call that made them. A call inside another
(`fn.readers.sequence` calls `fn.readers.file`) is a part of it.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ndd.pipeline import current

if TYPE_CHECKING:
    from ndd.pipeline.node import DataNode

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
        from ndd.pipeline.node import nodes_in

        return nodes_in((*self.inputs, *(self.arguments[key] for key in sorted(self.arguments))))

    @property
    def device(self) -> str:
        """Where its result is, as far as the graph tells: "cpu" or "gpu"."""
        if self.path in MOVES:
            return self.path.removeprefix("DataNode.")
        given = self.arguments.get("device")
        if given is None:
            given = next((n.call.device for n in self.nodes if n.call is not None), "cpu")
        return "gpu" if given == "mixed" else given


def noted(path: str | None, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose nodes know what call made them; its attribute `noted` is the path. In a branch of an `if` on a node it
    gets the samples of its nodes that take the branch."""

    @functools.wraps(function)
    def call(*inputs: Any, **arguments: Any) -> Any:
        if _local.inside:
            return function(*inputs, **arguments)
        from ndd.pipeline.conditions import parted

        inputs, arguments = parted(inputs), parted(arguments)
        _local.inside = True
        try:
            found = function(*inputs, **arguments)
        finally:
            _local.inside = False
        if path is not None:
            _note(found, path, inputs, arguments)
        return found

    call.noted = path  # type: ignore[attr-defined]
    return call


def _note(found: Any, path: str, inputs: tuple[Any, ...], arguments: dict[str, Any]) -> None:
    from ndd.pipeline.node import DataNode, nodes_in

    several = isinstance(found, dict | list)
    places = found.items() if isinstance(found, dict) else enumerate(found if several else [found])
    made = [(place, node) for place, node in places if isinstance(node, DataNode) and node.name is None]
    if not made:
        return
    pipeline = current.pipeline()
    numbers = _serials if pipeline is None else pipeline.states.numbers
    if not path.startswith("DataNode.") and path != "external_source":
        for _ in range(sum(not nodes_in(value) for value in inputs)):
            next(numbers)  # DALI makes a constant of it, which has a name
    name = inputs[0].name if path in MOVES else arguments.get("name")
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
