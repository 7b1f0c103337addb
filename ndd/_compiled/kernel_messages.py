"""Kernels as messages to the processes that compile (`compile_processes.py`).

A kernel is sent as the code of its function, its options, and the constants, kernels and intrinsics that it names. So the
receiver imports neither the operator that the kernel belongs to nor torch, which takes longer than most kernels. Only this
package's processes of the same program read such messages.
"""

from __future__ import annotations

import builtins
import importlib
import io
import marshal
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

_LIGHT = "ndd._compiled."  # modules that import without torch
_CONSTANTS = (bool, int, float, str, tuple, type(None), np.generic, np.ndarray, np.dtype, np.ufunc)


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if _is_compiled(value):
            return value.as_message()
        if isinstance(value, types.ModuleType):
            return importlib.import_module, (value.__name__,)
        return NotImplemented


def _is_compiled(value: Any) -> bool:
    """Whether it is an object of `jit.Compiled`."""
    return hasattr(type(value), "as_message")


def packed(kernel: Any, kinds: tuple[Any, ...]) -> bytes | None:
    """A kernel and numba's types of its arguments. None if it names objects that cannot be sent."""
    buffer = io.BytesIO()
    try:
        _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump((kernel, kinds))
    except (pickle.PicklingError, TypeError, AttributeError, ValueError):
        return None
    return buffer.getvalue()


def unpacked(message: bytes) -> tuple[Any, tuple[Any, ...]]:
    """The kernel and the types."""
    return pickle.loads(message)


def function_parts(function: Any) -> tuple[Any, ...]:
    """What `function_of` makes the function of again, without the names that it uses. PicklingError for a closure."""
    if function.__closure__:
        raise pickle.PicklingError(f"{function.__qualname__} is a closure")
    code = marshal.dumps(function.__code__)
    return code, function.__module__, function.__name__, function.__qualname__, function.__defaults__


def function_of(code: bytes, module: str, name: str, qualname: str, defaults: Any) -> Any:
    """The function. numba looks up its module, which is empty here unless it is a light one."""
    if module.startswith(_LIGHT):
        importlib.import_module(module)
    elif module not in sys.modules:
        sys.modules[module] = types.ModuleType(module)
    function = types.FunctionType(marshal.loads(code), {"__builtins__": builtins}, name, defaults)
    function.__module__, function.__qualname__ = module, qualname
    return function


def can_be_sent(value: Any) -> bool:
    """Whether a value that a kernel names is one that a compiled kernel can use: a constant, a module, a class, a kernel. (A name
    of an attribute may be that of something else in the kernel's module.)"""
    if isinstance(value, _CONSTANTS) or _is_compiled(value):
        return True
    if isinstance(value, type | types.BuiltinFunctionType):
        return not (value.__module__ or "").startswith("ndd")
    return isinstance(value, types.ModuleType) and not value.__name__.startswith("ndd")


def place_of(value: Any, module: str) -> tuple[Callable[..., Any], tuple[str, str]]:
    """A reference to an object by its name in a module. PicklingError if it has none."""
    for name, other in vars(sys.modules[module]).items():
        if other is value:
            return _at_place, (module, name)
    raise pickle.PicklingError(f"no name in {module}")


def _at_place(module: str, name: str) -> Any:
    if not hasattr(sys.modules.get(module), name):  # it is not imported yet, or is an empty one of `function_of`
        sys.modules.pop(module, None)
    return getattr(importlib.import_module(module), name)
