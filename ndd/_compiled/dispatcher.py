"""numba's dispatcher of a kernel, changed in five places. No other file uses its private names.

A dispatcher is what Python calls: it looks up the types of the arguments and calls the machine code for them. Changed are

1. `_cache`: `kernel_cache.py` stores compiled code; numba's own cache breaks when its index is damaged.
2. `typeof_pyval`: finds the type of a plain array without `numpy.ma`, which takes 8 ms to import.
3. `_compile_for_args`, called for new types: compiles in one thread at a time, without garbage collection, or calls a fallback.
   Read-only arrays (frozen, mapped from a file) get the code for writable ones: no kernel writes to its inputs.
4. `_compiler.compile`, called for kernels that are not on disk: tells the user why the call takes long.
5. `get_call_template`, called if a kernel calls the kernel: treats a literal number like any other argument, so that
   `little_endian(data, 0, 4)` and `little_endian(data, 8, 2)` are one compilation, not two.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ndd._compiled import linking
from ndd._compiled.background import Fallback, background, with_fallback
from ndd._compiled.kernel_cache import KernelCache
from ndd._execution.fork import fork_lock


def make_dispatcher(
    function: Callable[..., Any],
    options: dict[str, Any],
    *,
    inner: bool,
    cache: KernelCache | None,
    around_compile: Callable[[Callable[..., Any]], Callable[..., Any]],
    message: Callable[[tuple[Any, ...]], bytes | None],
    fallback: Fallback | None = None,
) -> Any:
    """The dispatcher of a function.

    Args:
        function: the text of a kernel, whose globals already have numba's objects in place of other kernels.
        options: those of `jit.kernel`.
        inner: whether only kernels call it.
        cache: stores compiled code; None: nothing is stored.
        around_compile: wraps the function that compiles for new types.
        message: what a process that compiles receives for types of arguments.
        fallback: answers while the kernel is compiled in the background.
    """
    import numba

    settings = {"nogil": True, "error_model": "numpy", **options}
    text: Any = function
    text.light, text.merged = settings.pop("light", not settings["nogil"]), settings.pop("merged", False)
    dispatcher: Any = numba.njit(**settings, **linking.options(inner))(function)
    if cache is not None:
        dispatcher._cache = cache
    dispatcher.typeof_pyval = _typed(dispatcher)
    dispatcher._compile_for_args = _one_at_a_time(dispatcher, cache, message)
    if fallback is not None and cache is not None and not inner:
        dispatcher._compile_for_args = with_fallback(dispatcher, cache, fallback, message, dispatcher._compile_for_args)
    dispatcher._compile_for_args = _for_read_only_too(dispatcher, dispatcher._compile_for_args)
    dispatcher._compiler.compile = around_compile(dispatcher._compiler.compile)
    dispatcher.get_call_template = _without_literals(dispatcher.get_call_template)
    return dispatcher


def compile_for(dispatcher: Any, args: tuple[Any, ...]) -> None:
    """Compiles for the types of these arguments, or loads the code from disk."""
    with fork_lock, without_collection():
        dispatcher.compile(tuple([dispatcher.typeof_pyval(_writable(value)) for value in args]))


def _typed(dispatcher: Any) -> Callable[[Any], Any]:
    """numba's type of an argument, for plain arrays (also in tuples) without `numpy.ma`."""
    from numba.core import types
    from numba.np.numpy_support import from_dtype, map_layout

    of_others = dispatcher.typeof_pyval

    def type_of(value: Any) -> Any:
        if type(value) is tuple:
            return types.BaseTuple.from_types([type_of(item) for item in value])
        if type(value) is not np.ndarray or value.dtype.kind not in "biuf" or not value.dtype.isnative:
            return of_others(value)
        kind = types.Array(from_dtype(value.dtype), value.ndim, map_layout(value), not value.flags.writeable)
        dispatcher._types_active_call.add(kind)  # keeps it alive until the end of the call, as numba does
        return kind

    return type_of


def _writable(value: Any) -> Any:
    """The value with writable arrays over the memory of read-only ones, of which only the types are looked at."""
    if type(value) is tuple:
        items = tuple(map(_writable, value))
        return items if any(map(operator.is_not, items, value)) else value
    if type(value) is not np.ndarray or value.flags.writeable or value.dtype.kind not in "biuf":
        return value
    face = value.__array_interface__
    return np.asarray(_Face({**face, "data": (face["data"][0], False)}))


class _Face:
    def __init__(self, interface: dict[str, Any]):
        self.__array_interface__ = interface


def _for_read_only_too(dispatcher: Any, compile_for: Callable[..., Any]) -> Callable[..., Any]:
    """Calls with read-only arrays run the code for writable ones. It is entered for their types too, so that the next call finds
    it at once. (`typeof_pyval` cannot hide the difference: numba keeps its answers for the kernels of all packages.)"""

    def guarded(*args: Any) -> Any:
        stand_ins = _writable(args)
        if stand_ins is args:
            return compile_for(*args)
        kinds, written = (tuple(map(dispatcher.typeof_pyval, values)) for values in (args, stand_ins))
        if written not in dispatcher.overloads:
            answer = compile_for(*stand_ins)
            if written not in dispatcher.overloads:  # a fallback answers
                return answer
        entry = dispatcher.overloads[written].entry_point
        dispatcher._insert([kind._code for kind in kinds], entry, False)
        return entry

    return guarded


def _without_literals(template_for: Callable[..., Any]) -> Callable[..., Any]:
    """Types a call without literal integers. (Literal booleans stay: they choose between two code paths.)"""
    from numba.core import types

    def plain(kind: Any) -> Any:
        return types.unliteral(kind) if isinstance(kind, types.IntegerLiteral) else kind

    def template(args: Any, kws: Any) -> Any:
        return template_for(tuple(map(plain, args)), {name: plain(kind) for name, kind in kws.items()})

    return template


def _one_at_a_time(
    dispatcher: Any, cache: KernelCache | None, message: Callable[[tuple[Any, ...]], bytes | None]
) -> Callable[..., Any]:
    """The slow path of a dispatcher, for new types."""
    compile_now = dispatcher._compile_for_args

    def guarded(*args: Any) -> Any:
        kinds = tuple([dispatcher.typeof_pyval(value) for value in args])
        if background.workers.alive() and cache is not None and not cache.has_file(kinds, dispatcher.targetctx):
            background.compile_elsewhere(functools.partial(message, kinds))
        with fork_lock, without_collection():
            if cache is not None and cache.has_file(kinds, dispatcher.targetctx):
                return dispatcher.compile(kinds)  # numba's own path searches all packages for extensions, for 4 ms
            background.busy()
            try:
                return compile_now(*args)
            finally:
                background.busy()

    return guarded


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Turns off garbage collection: numba creates so many objects that it takes a fifth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
