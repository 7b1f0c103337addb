"""Names of `ndd` that are looked up on first use, and the errors for names that it does not have.

Pipeline mode is written with what `ndd` exports, as a user's program is: so it is imported after `ndd`, when one of its names
is asked for, and only programs that use it wait for that.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from os import environ as _environ
from sys import modules as _modules
from typing import Any

from ndd._operator.name_hints import missing_name
from ndd.installation import version

_OF_PIPELINES = ("OperatorConcurrency", "Pipeline", "StreamPolicy", "newaxis", "pipeline_def")
_OF_PROFILING = ("explain", "profile", "progress")
_MODULES = ("auto_aug", "backend", "data_node", "fn", "pipeline", "recipes", "tensors", "torchvision")


def mark_ranges_if_asked() -> None:
    """With NDD_NVTX=1, makes operators ranges in Nsight Systems from the import on."""
    if _environ.get("NDD_NVTX") == "1":
        _import_module("ndd.profiling.loop_profile").mark_ranges()


def __dir__() -> list[str]:
    return sorted({*vars(_modules["ndd"]), *_OF_PIPELINES, *_OF_PROFILING, *_MODULES})


def __getattr__(name: str) -> Any:
    """`ndd.__version__`, looked up on use: the installed metadata take 10 ms to find. Pipeline mode."""
    if name == "__version__":
        return version()
    if name in _MODULES:
        return _import_module(f"ndd.{name}")
    if name in _OF_PIPELINES or name in _OF_PROFILING:
        value = getattr(_import_module("ndd.pipeline" if name in _OF_PIPELINES else "ndd.profiling"), name)
        setattr(_modules["ndd"], name, value)  # from now on it is there
        return value
    raise missing_name("ndd", name, vars(_modules["ndd"]).get("__all__", ()))
