"""Starts the processes that compile (`_compiled/compile_processes.py`) before torch is imported, which takes seconds.

The modules for that need no torch, but the packages around them import it. So these are left empty for a moment.
"""

from __future__ import annotations

import sys
from types import ModuleType

_PACKAGES = ("_compiled", "_execution", "_tensor")
_empty_packages: dict[str, ModuleType] = {}


def _start() -> None:
    package = sys.modules["ndd"]
    for name in _PACKAGES:
        empty = sys.modules[f"ndd.{name}"] = _empty_packages[f"ndd.{name}"] = ModuleType(f"ndd.{name}")
        empty.__path__ = [f"{folder}/{name}" for folder in package.__path__]
    try:  # with these packages
        from ndd._compiled.background import background
        from ndd._compiled.early_kernels import EARLY
        from ndd._compiled.kernel_cache import folder_if_all_empty

        background.start_early(folder_if_all_empty, EARLY)
    finally:
        for name in _empty_packages:
            del sys.modules[name]


def name_modules() -> None:
    """Makes the modules that were imported first attributes of their packages, as an import does."""
    while _empty_packages:
        name, empty = _empty_packages.popitem()
        for attribute, value in vars(empty).items():
            if isinstance(value, ModuleType) and not hasattr(sys.modules[name], attribute):
                setattr(sys.modules[name], attribute, value)


if not any([f"ndd.{name}" in sys.modules for name in _PACKAGES]):
    _start()
