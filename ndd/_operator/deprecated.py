"""Operators and arguments that DALI has renamed or dropped and still takes with a warning."""

from __future__ import annotations

import copy
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, TypeVar

from ndd._operator import registry
from ndd._operator.declare import wrapper_of
from ndd._tensor.user_line import warn_user

F = TypeVar("F", bound=Callable[..., Any])


def renamed(operator: str, old: str, old_value: Any, new: str, new_value: Any) -> Any:
    """The value of argument `new`, which may have been given under its old name; TypeError if under both."""
    if old_value is None:
        return new_value
    if new_value is not None:
        raise TypeError(f"{operator}() got `{old}`, the old name of `{new}`, besides `{new}`")
    _warn(f"{operator}: `{old}` is an old name of `{new}`")
    return old_value


def ignored(operator: str, name: str, value: Any) -> None:
    """Warns of an argument that has no effect any more."""
    if value is not None:
        _warn(f"{operator}: `{name}` has no effect any more")


def old_name(function: F, module: str) -> F:
    """An operator under the name that it had in `module`: warns at every call, and does the same.

    It is an operator of its own: documented, listed and tested like the others.
    """
    current: Any = function
    operator = copy.copy(current.operator)
    new = f"ndd.{registry.public_path(operator)}"
    operator.module = module
    operator.forget()
    operator.function = _documented(operator.function, module, f"The old name of `{new}`: it warns and does the same.")
    call = wrapper_of(operator)
    old = f"ndd.{registry.public_path(operator)}"

    @functools.wraps(call)
    def warning_call(*args: Any, **kwargs: Any) -> Any:
        _warn(f"`{old}` is an old name of `{new}`")
        return call(*args, **kwargs)

    warning_call.__signature__ = inspect.signature(call)  # type: ignore[attr-defined]
    registry.add(operator)
    return warning_call  # type: ignore[return-value]


def _documented(function: Any, module: str, head: str) -> Any:
    """A copy of a declaration for another place."""
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__, copy.__annotations__ = function.__kwdefaults__, function.__annotations__
    copy.__module__, copy.__doc__ = module, f"{head}\n\n    {function.__doc__}"
    return copy


def _warn(text: str) -> None:
    """Warns with a DeprecationWarning at the user's line: Python shows these in a script or a notebook, but not in a
    library."""
    warn_user(text, DeprecationWarning)
