"""Pipelines as text: `Pipeline.serialize()` writes the calls that the outputs depend on as JSON, `deserialize` makes them
again.

The text holds names of functions of `fn` and plain values, no code: a forged one can make no other calls.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable
from enum import Enum
from typing import Any

import numpy as np

import ndd
from ndd.pipeline.function_call import nodes_in
from ndd.pipeline.functions import fn
from ndd.pipeline.graph import calls_behind
from ndd.pipeline.node import DataNode, NewAxis
from ndd.types import Constant

_KIND = "ndd pipeline definition"
_ENUMS = (*(getattr(ndd.types, name) for name in ("DALIDataType", "DALIImageType", "DALIInterpType")),)
_OPTIONS = (
    "num_threads", "device_id", "seed", "exec_pipelined", "prefetch_queue_depth", "exec_async", "enable_memory_stats",
    "enable_checkpointing", "exec_dynamic",
)  # fmt: skip
_CHECKS = ("output_dtype", "output_ndim", "output_layout")


def definition_text(pipeline: Any, outputs: Iterable[Any]) -> str:
    """The definition of a pipeline with these outputs, which are recorded nodes. RuntimeError for values that cannot be
    written."""
    outputs = tuple(outputs)
    numbers: dict[int, int] = {}
    rows = []
    for number, call in enumerate(calls_behind(outputs)):
        inputs, arguments = call.inputs, call.arguments
        if call.path == "external_source":  # without its source, as in DALI: the reader of the definition feeds it
            inputs = (None, *inputs[1:])
            arguments = {**{k: v for k, v in arguments.items() if k != "source"}, "name": call.name}
        rows.append(
            {
                "function": call.path,
                "inputs": [_written(v, f"fn.{call.path}: input {i}", numbers) for i, v in enumerate(inputs)],
                "arguments": {k: _written(v, f"fn.{call.path}: {k}", numbers) for k, v in arguments.items()},
            }
        )
        numbers[call.serial] = number
    options = {name: getattr(pipeline, name) for name in _OPTIONS}
    checks = dict(zip(_CHECKS, pipeline._output_checks, strict=True))
    options |= {"batch_size": pipeline.max_batch_size, **checks}
    return json.dumps(
        {
            "kind": _KIND,
            "version": 1,
            "options": {k: _written(v, f"Pipeline: {k}", {}) for k, v in options.items()},
            "calls": rows,
            "outputs": [_written(v, f"output {i}", numbers) for i, v in enumerate(outputs)],
        }
    )


def definition_in(text: Any) -> dict[str, Any]:
    """The definition in a text; RuntimeError for any other text."""
    text = text.decode("utf-8", "replace") if isinstance(text, bytes | bytearray) else text
    try:
        definition = json.loads(text)
        options = {k: _read(v, []) for k, v in definition["options"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        definition = {}
    if not isinstance(definition, dict) or definition.get("kind") != _KIND:
        raise RuntimeError(
            f"Pipeline.deserialize: expected what Pipeline.serialize() of ndd gave (DALI's have another format), got {text[:40]!r}"
        )
    if definition.get("version") != 1:
        raise RuntimeError(f"Pipeline.deserialize: expected version 1, got {definition.get('version')!r}")
    if unknown := options.keys() - {*_OPTIONS, *_CHECKS, "batch_size"}:
        raise RuntimeError(f"Pipeline.deserialize: the definition has an unknown option {min(unknown)!r}")
    return {**definition, "options": options}


def outputs_of(definition: dict[str, Any]) -> list[Any]:
    """Makes the calls of a definition, inside `with pipeline:`, and returns its outputs."""
    results: list[Any] = []
    try:
        for row in definition["calls"]:
            inputs = [_read(v, results) for v in row["inputs"]]
            function = _function(row["function"])
            results.append(function(*inputs, **{k: _read(v, results) for k, v in row["arguments"].items()}))
        return [_read(v, results) for v in definition["outputs"]]
    except (KeyError, IndexError, AttributeError, TypeError, ValueError) as error:
        raise RuntimeError(f"Pipeline.deserialize: the definition is inconsistent: {error}") from error


def _function(path: str) -> Any:
    """The noted function of that path; ValueError if there is none."""
    home, _, name = path.rpartition(".")
    member: Any = {"DataNode": DataNode, "math": ndd.math}.get(home, fn)
    for part in (name,) if member is not fn else path.split("."):
        member = getattr(member, part, None)
    if getattr(member, "noted", None) != path and not (home == "math" and name in ndd.math.__all__):
        raise ValueError(f"there is no function {path!r}")
    return member


def _written(value: Any, label: str, numbers: dict[int, int]) -> Any:
    """A value in the form of JSON: anything but a number, a text or a list becomes a dict with its kind and its parts."""

    def parts(values: Iterable[Any]) -> list[Any]:
        return [_written(v, label, numbers) for v in values]

    if isinstance(value, _ENUMS):
        return {type(value).__name__: int(value)}
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            data = base64.b64encode(array.tobytes()).decode()
            return {"array": [array.dtype.str, list(array.shape), data]}
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, DataNode):
        return {"node": [numbers[value._call.serial], None if _is_alone(value) else value._place]}
    if isinstance(value, list):
        return parts(value)
    if isinstance(value, tuple):
        return {"tuple": parts(value)}
    if isinstance(value, dict) and not nodes_in(list(value.values())):
        return {"dict": [parts(pair) for pair in value.items()]}
    if isinstance(value, slice):
        return {"slice": parts((value.start, value.stop, value.step))}
    if isinstance(value, NewAxis):
        return {"newaxis": value.name}
    if isinstance(value, Constant):
        return {"Constant": parts((value.value, value.dtype, value.extents, value.layout, value.target))}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, ndd.tfrecord.Feature):
        return {"Feature": parts((value.shape, int(value.type), value.default, value.variable))}
    try:
        return {"dtype": ndd.dtype(value).name}
    except (TypeError, ValueError, KeyError):
        raise RuntimeError(
            f"Pipeline.serialize: {label}: a {type(value).__name__} cannot be written, nor can functions, tensors and Python "
            "objects: keep the function that makes the pipeline"
        ) from None


def _is_alone(node: DataNode) -> bool:
    return node.name == node._call.name


def _read(value: Any, results: list[Any]) -> Any:
    """Reads what `_written` wrote; `results` has the results of the calls so far."""
    if isinstance(value, list):
        return [_read(v, results) for v in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "array":
        dtype, shape, data = content
        return np.frombuffer(base64.b64decode(data), np.dtype(dtype)).reshape(shape).copy()
    if kind == "node":
        result = results[content[0]]
        return result if content[1] is None else result[content[1]]
    parts = [_read(v, results) for v in content] if isinstance(content, list) else []
    if kind == "Feature":
        shape, number, default, variable = parts
        return ndd.tfrecord.Feature(tuple(shape), ndd.tfrecord.FeatureType(number), default, variable)
    makers: dict[str, Any] = {
        "tuple": lambda: tuple(parts),
        "dict": lambda: dict(parts),
        "slice": lambda: slice(*parts),
        "newaxis": lambda: NewAxis(value["newaxis"]),
        "Constant": lambda: Constant(*parts),
        "dtype": lambda: ndd.dtype(content),
        **{enum.__name__: lambda enum=enum: enum(content) for enum in _ENUMS},
    }
    return makers[kind]()
