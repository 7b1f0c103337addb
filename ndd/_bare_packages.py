"""Bare packages: modules inside them are imported without the `__init__` of the package, which imports torch."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType

_removed: dict[str, ModuleType] = {}


def add(package: str) -> None:
    """Makes a bare package, and those around it, unless they are imported."""
    if package not in sys.modules:
        outer, _, name = package.rpartition(".")
        add(outer)
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = [f"{folder}/{name}" for folder in sys.modules[outer].__path__]


@contextlib.contextmanager
def standing_in(*packages: str) -> Iterator[None]:
    """Bare packages for a moment. The modules that are imported in it stay."""
    for package in packages:
        add(package)
    try:
        yield
    finally:
        _removed.update({package: sys.modules.pop(package) for package in packages})


def name_modules() -> None:
    """Makes the modules that stayed attributes of their packages, as an import does."""
    while _removed:
        package, bare = _removed.popitem()
        for name, value in vars(bare).items():
            if isinstance(value, ModuleType) and not hasattr(sys.modules[package], name):
                setattr(sys.modules[package], name, value)
