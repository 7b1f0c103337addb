"""Functions of higher modules that methods of values call. A higher module binds a function to a name, and the method looks
the name up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_operations: dict[str, Callable[..., Any]] = {}


def bind_operations(**functions: Callable[..., Any]) -> None:
    """Binds the functions that methods of values call; the modules of these functions call this on import."""
    _operations.update(functions)


def operation(name: str) -> Callable[..., Any]:
    """The function bound to `name`."""
    return _operations[name]
