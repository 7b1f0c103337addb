"""The return values of a proxied transform in a worker: notes of outputs that do not exist yet, and how they are collated."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data._utils.collate import default_collate_fn_map


class Call:
    """One call of the transform: the inputs of one sample."""

    __slots__ = ("inputs", "outputs")

    def __init__(self, inputs: dict[str, Any]):
        self.inputs = inputs
        self.outputs: Any = None  # its samples, if a custom collation left notes of single calls


class BatchCall:
    """The calls of a batch; all outputs of a batch share one, so that the pipeline runs once."""

    __slots__ = ("calls", "outputs")

    def __init__(self, calls: list[Call]):
        self.calls = calls
        self.outputs: Any = None


class DALIOutputSampleRef:
    """The transform's return value for a sample: a note of output `output_idx` of a call that has not run yet.

    Attributes:
        sample_idx: the place of the sample in its batch: the number of calls of the transform since the last batch.

    Args:
        call: the call of the transform.
        output_idx: the number of the pipeline's output.
    """

    __slots__ = ("call", "output_idx", "sample_idx")

    def __init__(self, call: Call, output_idx: int, sample_idx: int):
        self.call = call
        self.output_idx = output_idx
        self.sample_idx = sample_idx

    def __repr__(self) -> str:
        return f"DALIOutputSampleRef(output_idx={self.output_idx}, sample_idx={self.sample_idx})"


class DALIOutputBatchRef:
    """A batch of notes: replaced by the tensor of output `output_idx` in the main process.

    Args:
        batch: the calls of the transform that make the batch.
        output_idx: the number of the pipeline's output.
    """

    __slots__ = ("batch", "output_idx")

    def __init__(self, batch: BatchCall, output_idx: int):
        self.batch = batch
        self.output_idx = output_idx


class _Local(threading.local):
    batch: BatchCall | None = None  # that was collated last
    count = 0  # of calls since then


_local = _Local()
if hasattr(os, "register_at_fork"):  # the calls of a worker are its own
    os.register_at_fork(after_in_child=lambda: setattr(_local, "count", 0))


def _collate(notes: list[DALIOutputSampleRef], *, collate_fn_map: Any = None) -> DALIOutputBatchRef:
    """Torch's collation of notes: one note for the batch. Outputs of the same calls share their `BatchCall`.

    RuntimeError, as in DALI, unless the transform was called once for each sample, in their order.
    """
    first, calls = notes[0], [n.call for n in notes]
    for i, note in enumerate(notes):
        if note.sample_idx != first.sample_idx + i or note.output_idx != first.output_idx:
            raise RuntimeError(
                f"Unexpected sample order: sample {i} of the batch has {note}, after {first} of sample 0. The transform must be "
                "called once for each sample. A pipeline with several external sources takes several inputs in one call, "
                "`proxy(a=..., b=...)`, and may give several outputs"
            )
    last, _local.count = _local.batch, 0
    if last is None or [id(c) for c in last.calls] != [id(c) for c in calls]:
        last = _local.batch = BatchCall(calls)
    return DALIOutputBatchRef(last, first.output_idx)


default_collate_fn_map[DALIOutputSampleRef] = _collate  # type: ignore[index]


class Proxy:
    """The transform: `proxy(x)` for a pipeline with one external source, else `proxy(name=x, ...)`.

    Returns a note for the pipeline's output, or a tuple of notes, one for each output. Picklable: it knows the names
    of the inputs and the number of outputs, not the pipeline.

    Args:
        names: of the pipeline's external sources.
        outputs: the number of outputs of the pipeline.
    """

    def __init__(self, names: list[str], outputs: int):
        self.names = names
        self.outputs = outputs

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Notes the inputs of one sample."""
        values = dict(named)
        if len(self.names) == len(inputs) == 1 and not named:
            values = {self.names[0]: inputs[0]}
        elif inputs or set(values) != set(self.names):
            raise ValueError(
                f"Expected signature is ({', '.join(self.names)}), got {len(inputs)} positional inputs "
                f"and {sorted(named)}"
            )
        call, place = Call(values), _local.count
        _local.count += 1
        notes = tuple(DALIOutputSampleRef(call, i, place) for i in range(self.outputs))
        return notes[0] if self.outputs == 1 else notes


def replaced(obj: Any, replace: Callable[[Any], Any]) -> Any:
    """`obj` with every note in it replaced; lists, dicts and objects with attributes are changed in place."""
    if isinstance(obj, DALIOutputBatchRef | DALIOutputSampleRef):
        return replace(obj)
    if isinstance(obj, torch.Tensor | str | bytes | int | float | type) or obj is None:
        return obj
    if isinstance(obj, list):
        obj[:] = [replaced(v, replace) for v in obj]
        return obj
    if isinstance(obj, dict):
        for key in list(obj):
            obj[key] = replaced(obj[key], replace)
        return obj
    if isinstance(obj, tuple):
        values = [replaced(v, replace) for v in obj]
        return type(obj)(*values) if hasattr(obj, "_fields") else tuple(values)
    if hasattr(obj, "__dict__") and not callable(obj):
        for name, value in list(vars(obj).items()):
            new = replaced(value, replace)
            if new is not value:
                object.__setattr__(obj, name, new)
    return obj
