"""DALI's `pickling`, for code that imports it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["pickle_by_value"]

_Function = TypeVar("_Function", bound=Callable[..., object])


def pickle_by_value(fun: _Function) -> _Function:
    """The function as it is. In DALI it marks what is sent to the processes of a parallel `external_source` with its code;
    here sources run in the process of the pipeline. TypeError for what is not a function.

    >>> import ndd.pickling
    >>> @ndd.pickling.pickle_by_value
    ... def source(info):
    ...     return info
    >>> source(3)
    3
    """
    if not callable(fun):
        raise TypeError(f"pickle_by_value: expected a function, got {fun!r}")
    return fun
