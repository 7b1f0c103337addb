"""`@kernel`: numba's nopython compiler, imported at the first call (0.2 s), compiled once a machine.

A kernel releases the GIL and is cached on disk next to its file (or in numba's user cache where that cannot be
written). Kernels may call kernels, and C functions (`External`).
"""

from __future__ import annotations

import functools
import os
import threading
import types
from collections.abc import Callable
from typing import Any

_compiling = threading.RLock()


def _after_fork() -> None:
    """In a forked child: a thread of the parent that held the lock does not exist here."""
    global _compiling
    _compiling = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Compiled:
    """What kernels may call: gives numba the thing to call when the caller is compiled."""

    def compiled(self) -> Any:
        """A numba dispatcher or intrinsic."""
        raise NotImplementedError


class Kernel(Compiled):
    """A function that is compiled when it is first called, or first called by another kernel."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]):
        functools.update_wrapper(self, function)
        self.function = function
        self.options = options
        self._compiled: Any = None

    def compiled(self) -> Any:
        """The numba dispatcher."""
        if self._compiled is None:
            with _compiling:
                if self._compiled is None:
                    self._compiled = self._dispatcher()
        return self._compiled

    def _dispatcher(self) -> Any:
        import numba

        original = self.function
        scope = dict(original.__globals__)  # type: ignore[attr-defined]
        for name in _names(original.__code__):  # type: ignore[attr-defined]
            called = scope.get(name)
            if isinstance(called, Compiled):
                scope[name] = called.compiled()
        copy = types.FunctionType(
            original.__code__,  # type: ignore[attr-defined]
            scope,
            original.__name__,  # type: ignore[attr-defined]
            original.__defaults__,  # type: ignore[attr-defined]
            original.__closure__,  # type: ignore[attr-defined]
        )
        copy.__module__, copy.__qualname__ = original.__module__, original.__qualname__
        options = {"nogil": True, "cache": True, "error_model": "numpy", **self.options}
        return numba.njit(**options)(copy)

    def __call__(self, *args: Any) -> Any:
        return (self._compiled or self.compiled())(*args)


class External(Compiled):
    """A C function of this process that kernels may call, such as libc's: `External("close", "int32(int32)")`.

    Pointers are `uintp` (`array.ctypes.data`).
    """

    def __init__(self, name: str, signature: str):
        self.name = name
        self.signature = signature

    def compiled(self) -> Any:
        """What numba calls."""
        from numba.core import sigutils, types as numba_types

        arguments, result = sigutils.normalize_signature(self.signature)
        return numba_types.ExternalFunction(self.name, result(*arguments))

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.name}: only a kernel can call a C function")


def _names(code: types.CodeType) -> set[str]:
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Marks a function as a numba kernel: `@kernel`, or `@kernel(fastmath=True)` with numba's options."""
    if function is None:
        return lambda f: Kernel(f, options)
    return Kernel(function, options)


def inner_kernel(function: Callable[..., Any]) -> Any:
    """Marks a kernel that only kernels call: it compiles in two thirds of the time."""
    return Kernel(function, {"no_cpython_wrapper": True, "no_cfunc_wrapper": True})
