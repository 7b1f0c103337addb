"""Methods of values whose functions belong to higher modules. A method looks its function up by a name that the module has
bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_operations: dict[str, Callable[..., Any]] = {}


def bind_operations(**functions: Callable[..., Any]) -> None:
    """Tells the values which functions their methods stand for; the modules of these functions call this on import."""
    _operations.update(functions)


def operation(name: str) -> Callable[..., Any]:
    """The function bound to `name`."""
    return _operations[name]
