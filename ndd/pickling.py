"""DALI's `pickling`, for code that imports it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["pickle_by_value"]

_Function = TypeVar("_Function", bound=Callable[..., object])


def pickle_by_value(fun: _Function) -> _Function:
    """Returns the function unchanged. In DALI it marks functions that are sent with their code to the processes of a parallel
    `external_source`; here sources run in the process of the pipeline. TypeError for anything but a function.

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
