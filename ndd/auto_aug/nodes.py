"""Batches in a loop, DataNodes in pipeline mode: the same code for both."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import ndd
from ndd._tensor import Store
from ndd._tensor.dtype import dtype as dtype_of


def in_pipeline() -> Any:
    """The pipeline whose body runs, or None in a loop."""
    return ndd.Pipeline.current()


def is_node(value: Any) -> bool:
    """Whether a value is one of pipeline mode."""
    return hasattr(type(value), "__ndd_function__")  # `hasattr` of the batch itself takes ten times as long


def value_of(value: Any) -> Any:
    """The batch of a node that has one; any other value unchanged."""
    return value.value if is_node(value) else value


def is_image(data: Any) -> bool:
    """Whether these are bytes HWC or FHWC, by rank if there is no layout; for a node, whether its current value is."""
    data = value_of(data)
    return data.dtype is ndd.uint8 and (data.layout or {3: "HWC", 4: "FHWC"}.get(data.ndim)) in ("HWC", "FHWC")


def on_batches(function: Callable[..., Any]) -> Callable[..., Any]:
    """Extends a `function` of batches to nodes, for which it returns a node."""

    @functools.wraps(function)
    def call(*values: Any, **named: Any) -> Any:
        operands = (*values, *named.values())
        node = next(filter(is_node, operands), None)
        if node is None:
            return function(*values, **named)

        def run(*batches: Any) -> Any:
            return function(*batches[: len(values)], **dict(zip(named, batches[len(values) :], strict=True)))

        return node.__ndd_function__(run, *operands)

    return call


def sliced(value: Any, index: int) -> Any:
    """Element `index` of each sample, or of a tuple or list for all samples."""
    return value.slice[index] if isinstance(value, ndd.Batch) else value[index]


def part(value: Any, places: list[int]) -> Any:
    """The samples `places` of a batch or of a node with a value; any other value applies to all samples."""
    if isinstance(value, ndd.Batch):
        return value.select(places)
    if is_node(value):
        return type(value)(value.value.select(places))
    return value.map_samples(lambda v: chosen(v, places)) if hasattr(type(value), "map_samples") else value


def chosen(numbers: Any, places: list[int]) -> Any:
    """The same for numbers of samples, which may be an array."""
    return numbers[places] if isinstance(numbers, np.ndarray) else part(numbers, places)


def numbers_of(value: Any) -> np.ndarray:
    """The numbers of a batch or Tensor, `[N, ...]`. Waits for them if necessary."""
    return value if isinstance(value, np.ndarray) else value.evaluate().numpy()


def batch_of(numbers: np.ndarray) -> ndd.Batch:
    """A batch over an array `[N, ...]` that nothing else writes to, in a tenth of the time of `ndd.batch`."""
    shapes = [numbers.shape[1:]] * len(numbers)
    return ndd.Batch._of_store(Store(dtype_of(numbers.dtype), None, ndd.Device.CPU, shapes, whole=numbers))


def at_run(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a `function` that needs values. With nodes it is one step of the pipeline, and gets nodes with values."""

    @functools.wraps(function)
    def call(*values: Any, **named: Any) -> Any:
        operands: list[Any] = []
        for value in (*values, *named.values()):
            if hasattr(type(value), "map_samples"):
                value.map_samples(operands.append)
            else:
                operands.append(value)
        node = next(filter(is_node, operands), None)
        if node is None:
            return function(*values, **named)
        kind = type(node)

        def run(*batches: Any) -> Any:
            operands_of_run = iter([kind(v) if is_node(o) else v for o, v in zip(operands, batches, strict=True)])
            own = [
                v.map_samples(lambda _: next(operands_of_run))
                if hasattr(type(v), "map_samples")
                else next(operands_of_run)
                for v in (*values, *named.values())
            ]
            result = function(*own[: len(values)], **dict(zip(named, own[len(values) :], strict=True)))
            return result.value if is_node(result) else result

        return node.__ndd_function__(run, *operands)

    return call
