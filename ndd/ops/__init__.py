"""Operators of the top-level namespace. `ndd.ops.Resize` and the other classes are the operators of pipeline mode."""

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    from ndd.pipeline.operator_classes import ops  # a layer above, and pipelines alone need it

    return getattr(ops, name)
