"""ndd in graphs of torchdata: `ndd.pytorch.nodes`, which needs torchdata."""

from typing import Any

__all__ = ["nodes"]


def __getattr__(name: str) -> Any:
    if name == "nodes":
        import importlib

        return importlib.import_module("ndd.pytorch.nodes")
    raise AttributeError(f"module 'ndd.pytorch' has no attribute {name!r}")
