"""ndd in graphs of torchdata: `ndd.pytorch.nodes`, which needs torchdata."""

from importlib import import_module as _import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "nodes":
        return _import_module("ndd.pytorch.nodes")
    raise AttributeError(f"module 'ndd.pytorch' has no attribute {name!r}")
