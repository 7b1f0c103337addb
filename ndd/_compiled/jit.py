"""`@kernel`: numba's nopython compiler, imported at the first call (0.2 s). A kernel is compiled once on each machine.

A kernel releases the GIL and is stored on disk (`kernel_cache.py`). Kernels may call kernels, C functions (`External`) and
intrinsics (`intrinsics.py`). Only one thread at a time imports numba and compiles; a fork waits for it. A kernel with a
`fallback` is compiled by a background thread, while the slower fallback answers (`background.py`).
"""

# numba has no types for its private names.
# pyright: reportPrivateImportUsage=false, reportAttributeAccessIssue=false, reportOptionalCall=false
from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ndd._compiled import dispatcher, kernel_file, kernel_messages, linking, pipeline
from ndd._compiled.background import Fallback, background
from ndd._compiled.kernel_cache import INNER, KernelCache, described, libraries, source_digest, writable_folder
from ndd._execution.compile_notice import compiling
from ndd._execution.errors import raise_signalled
from ndd._execution.fork import fork_lock


class Compiled:
    """An object that kernels may call. It provides numba's object when a caller is compiled."""

    def inner(self) -> Any:
        """A numba dispatcher or intrinsic."""
        raise NotImplementedError

    def in_python(self) -> Callable[..., Any]:
        """A Python function that does the same, for kernels that the interpreter runs."""
        raise NotImplementedError

    def described(self) -> bytes:
        """Its text in the key of a kernel that calls it."""
        return source_digest(sys.modules[type(self).__module__].__file__ or "")

    def as_message(self) -> Any:
        """What pickle makes it of again in a process that compiles (`kernel_messages.py`)."""
        raise NotImplementedError


REPLACED: dict[str, Compiled] = {}
"""Replacements, in kernels, of Python's functions of these names; `intrinsics.py` puts them here."""


class Intrinsic(Compiled):
    """A function whose LLVM code is written by hand.

    Args:
        make: returns numba's function for it, called when a kernel that uses it is compiled.
        python: does the same in Python; None if there is no such function.
    """

    def __init__(self, make: Callable[[], Any], python: Callable[..., Any] | None = None):
        self._make, self._python = make, python

    def inner(self) -> Any:
        """The function that `make` returns."""
        return self._make()

    def in_python(self) -> Callable[..., Any]:
        """The Python function."""
        return self._python or super().in_python()

    def described(self) -> bytes:
        """A hash of the file that defines it."""
        return source_digest(sys.modules[self._make.__module__].__file__ or "")

    def as_message(self) -> Any:
        """A reference: the module that defines it has no kernels of operators, and imports fast."""
        return kernel_messages.place_of(self, self._make.__module__)

    def __call__(self, *args: Any) -> Any:
        return self.in_python()(*args)


class Kernel(Compiled):
    """A function that is compiled when it is first called, or first called by another kernel.

    Attributes:
        urgency: seconds that other work loses while its fallback answers: it is compiled so much earlier.
        leaves: gives the seconds that other code takes for a call which its fallback leaves to it.
        usual: gives arguments of the types that nearly all programs have, of a loop of `early_kernels.py`.
    """

    urgency = 0.0
    leaves: Callable[..., float] | None = None
    usual: Callable[[], tuple[Any, ...]]

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]):
        functools.update_wrapper(self, function)
        self.function = function
        self.options = options
        self._answers: Any = None
        self._compiled: Any = None
        self._inner: Any = None
        self._fallback: Callable[..., Any] | None = None
        self._written: Callable[..., Any] | None = None
        self._text_run: Callable[..., Any] | None = None

    def fallback(self, function: Callable[..., Any] | None = None) -> Any:
        """Declares the function to call while this kernel is compiled in the background (`background.py`), by default the
        kernel's own text in the interpreter. It must compute the same to the last bit.

        Fallbacks are for kernels that take more than 0.3 s to compile: decoders, whose work another library does until then;
        filters and warps, which NumPy or OpenCV computes; and plans and draws for few numbers, whose text the interpreter runs.
        An inner kernel of an interpreted text has one if a loop over elements would be too slow.
        `tests/operator/test_fallbacks.py` compares those of operators with the compiled kernels."""
        self._written, self._fallback = function, function or self.interpreted
        return function or self

    def has_fallback(self) -> bool:
        """Whether a fallback is declared."""
        return self._fallback is not None

    def run_fallback(self, *args: Any) -> Any:
        """Calls the fallback, or the kernel if it has none."""
        return (self._fallback or self)(*args)

    def fallback_if(self, short: Callable[..., bool]) -> None:
        """Declares the kernel's own text as the fallback for calls with `short` arguments. Other calls wait for the
        compiler."""
        self._fallback = lambda *args: (self.interpreted if short(*args) else self.waited_for)(*args)

    def never_interpreted(self) -> None:
        """Declares that this kernel stays compiled if a calling kernel is interpreted: Python's last bits would differ, or it
        would take too long."""
        self._written = self

    def interpreted_as(self, function: Callable[..., Any]) -> None:
        """Declares the function to call if a calling kernel is interpreted."""
        self._written = function

    def interpreted(self, *args: Any) -> Any:
        """Runs the text in Python's interpreter, for few numbers."""
        if self._text_run is None:
            self._text_run = _silent(self._by_python())
        return self._text_run(*args)

    def waited_for(self, *args: Any) -> Any:
        """Waits for the compiler and calls the kernel: for calls whose fallback would take longer."""
        dispatcher.compile_for(self.compiled(), args)
        return self.compiled()(*args)

    def in_python(self) -> Callable[..., Any]:
        """Its text, with those of the kernels that it calls, for the interpreter; or the function that was declared in its
        place."""
        return self._written or self._by_python()

    def _by_python(self) -> Callable[..., Any]:
        return self._copied({name: called.in_python() for name, called in self._called()})

    def compiled(self) -> Any:
        """The numba dispatcher that Python calls."""
        if self._compiled is None:
            with fork_lock:
                if self._compiled is None:
                    self._compiled = self._dispatcher(inner=False)
                    called_kernels.add(self)
        return self._compiled

    def _choose(self) -> Callable[..., Any]:
        """Returns what Python calls: the dispatcher. With NDD_COMPILE=0 in the environment it is the text, which a debugger can
        step through; kernels that call C stay compiled, except for functions of `External.connect`."""
        answers = None
        if os.environ.get("NDD_COMPILE") == "0":
            with contextlib.suppress(NotImplementedError):
                answers = self.in_python()
        self._answers = self.compiled() if answers in (None, self) else _silent(answers)
        return self._answers

    def inner(self) -> Any:
        """The numba dispatcher that kernels call: its code becomes a part of theirs (`linking.py`)."""
        if self._inner is None:
            with fork_lock:
                if self._inner is None:
                    self._inner = self._dispatcher(inner=True)
        return self._inner

    def compile_for_target(self) -> None:
        """Compiles and stores all calls of this process for numba's target processor. That differs from this machine's if the
        package's kernels answer the calls."""
        for kinds in list(self.compiled().overloads):
            self._for_target.compile(kinds)

    @functools.cached_property
    def _for_target(self) -> Any:
        return self._dispatcher(inner=False, packaged=False)

    def _dispatcher(self, inner: bool, packaged: bool = True) -> Any:
        try:
            import numba
        except ImportError as error:
            raise ImportError(f'numba cannot be imported ({error}): pip install "numba>=0.61"') from error

        original: Any = self.function
        if numba.config.DISABLE_JIT:
            raise RuntimeError(
                f"{original.__module__}.{original.__qualname__}: NUMBA_DISABLE_JIT is set, so numba compiles nothing. Set "
                "NDD_COMPILE=0 in its place: Python runs the kernels that it can, for a debugger to step through, and the "
                "others are compiled"
            )
        inlined = "inline" in self.options  # its text becomes a part of its callers': it is not compiled itself
        copy = self._copied(self._inner_ones() if inlined else {})
        text, cache = self._text(), None
        if text is not None:
            name = f"{INNER * inner}{original.__module__}.{original.__qualname__}"
            load = functools.partial(linking.loaded, function=original)
            cache = KernelCache(name, text, linking.parts, load, packaged and not inner)
        return dispatcher.make_dispatcher(
            copy, self.options, inner=inner, cache=cache, fallback=self._with_what_it_calls(),
            message=functools.partial(kernel_messages.packed, self),
            around_compile=functools.partial(self._said_aloud, scope=copy.__globals__, cache=cache),
        )  # fmt: skip

    def _with_what_it_calls(self) -> Fallback | None:
        if self._fallback is None:
            return None
        inside = functools.cache(lambda: frozenset(self._reached({})) - {self})
        return Fallback(self._fallback, self, inside, self.urgency, self.leaves)

    def as_message(self) -> Any:
        """Its function and options, then the values that it names."""
        scope: Any = self.function.__globals__  # type: ignore[attr-defined]
        names = _names(self.function.__code__) & scope.keys()  # type: ignore[attr-defined]
        named = {name: scope[name] for name in sorted(names) if kernel_messages.can_be_sent(scope[name])}
        parts = kernel_messages.function_parts(self.function)
        return _received, (parts, self.options), named, None, None, _name_values

    def _said_aloud(
        self, compile_new: Callable[..., Any], scope: dict[str, Any], cache: KernelCache | None
    ) -> Callable[..., Any]:
        """Compiles for types that are not on disk. Only then the kernels that it calls are looked up."""

        def compiled(kinds: Any, *more: Any) -> Any:
            scope.update(self._inner_ones())
            return compile_new(kinds, *more)

        def watched(kinds: Any, *more: Any) -> Any:
            with compiling(writable_folder(), background.count):
                if cache is None:
                    return compiled(kinds, *more)
                from numba.core.registry import cpu_target

                return cache.compiled_once(kinds, cpu_target.target_context, lambda: compiled(kinds, *more))

        return watched

    def _copied(self, called: dict[str, Any]) -> Any:
        """A copy of the function with other objects in place of the kernels that it calls."""
        original: Any = self.function
        scope = original.__globals__ | called
        name, defaults, closure = original.__name__, original.__defaults__, original.__closure__
        copy = types.FunctionType(original.__code__, scope, name, defaults, closure)
        copy.__module__, copy.__qualname__ = original.__module__, original.__qualname__
        return copy

    def _called(self) -> list[tuple[str, Compiled]]:
        """The kernels and intrinsics that it calls, by name."""
        scope = REPLACED | self.function.__globals__  # type: ignore[attr-defined]
        names = sorted(_names(self.function.__code__))  # type: ignore[attr-defined]
        return [(name, kernel) for name in names if isinstance(kernel := scope.get(name), Compiled)]

    def _text(self) -> bytes | None:
        """Everything that its machine code depends on except the types of its arguments; None if that is unknown."""
        import numba

        if self.function.__closure__:  # type: ignore[attr-defined]
            return None
        parts = [
            f"{libraries()} {numba.config.BOUNDSCHECK}".encode(),
            *[source_digest(module.__file__) for module in (linking, pipeline, kernel_file, dispatcher)],
        ]
        for kernel in self._reached({}):
            code, scope = kernel.function.__code__, kernel.function.__globals__  # type: ignore[attr-defined]
            try:
                parts.append(source_digest(code.co_filename))
            except OSError:  # typed into an interpreter
                return None
            parts.append(code.co_code)  # the file may have changed since it was imported
            # The order of a set's elements differs between processes.
            options = sorted((name, sorted(v) if isinstance(v, set) else v) for name, v in kernel.options.items())
            parts.append(f"{kernel.function.__qualname__} {code.co_firstlineno} {options}".encode())
            parts += [name.encode() + described(scope.get(name)) for name in sorted(_names(code))]
            parts += [c.described() for _, c in kernel._called() if not isinstance(c, Kernel)]
        return b"\0".join(parts)

    def _inner_ones(self) -> dict[str, Any]:
        """The functions that it calls, as numba objects."""
        return {name: called.inner() for name, called in self._called()}

    def _reached(self, reached: dict[int, Kernel]) -> list[Kernel]:
        """This kernel and all kernels that it calls, directly or not."""
        reached[id(self)] = self
        for _, called in self._called():
            if isinstance(called, Kernel) and id(called) not in reached:
                called._reached(reached)
        return list(reached.values())

    def __call__(self, *args: Any) -> Any:
        try:
            return (self._answers or self._choose())(*args)
        except SystemError as error:
            raise_signalled(error)
            raise


called_kernels: weakref.WeakSet[Kernel] = weakref.WeakSet()
"""The kernels that Python has called in this process."""


def _received(parts: Any, options: dict[str, Any]) -> Kernel:
    return Kernel(kernel_messages.function_of(*parts), options)


def _name_values(received: Kernel, named: dict[str, Any]) -> None:
    received.function.__globals__.update(named)  # type: ignore[attr-defined]


def from_template(template: Callable[..., Any], of: Any, suffix: str, options: dict[str, Any], **names: Any) -> Kernel:
    """A kernel of the text of `template`, in which `names` are bound. It is called, and stored, as the function `of` with a suffix.

    A closure would not work, because kernels with closures are not stored on disk.
    """
    return Kernel(template_of(template, of, suffix, **names), options)


def template_of(template: Callable[..., Any], of: Any, suffix: str, **names: Any) -> Callable[..., Any]:
    """The function of such a kernel."""
    function = types.FunctionType(template.__code__, template.__globals__ | names, f"{of.__name__}{suffix}")
    function.__module__, function.__qualname__ = of.__module__, f"{of.__qualname__}{suffix}"
    return function


def _silent(function: Callable[..., Any]) -> Callable[..., Any]:
    """Suppresses NumPy's warnings: compiled kernels do not warn of infinities."""

    def silent(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args)

    return silent


_C_TYPES = {"int32": ctypes.c_int32, "uint32": ctypes.c_uint32, "int64": ctypes.c_int64, "uintp": ctypes.c_size_t}


class External(Compiled):
    """A C function of this process that kernels may call, such as libc's: `External("close", "int32(int32)")`.

    Pointers are `uintp` (`array.ctypes.data`).
    """

    def __init__(self, name: str, signature: str):
        self.name = name
        self.signature = signature
        self._python: Callable[..., Any] | None = None

    def connect(self, function: Any) -> None:
        """Sets the function, from one of ctypes, for compiled code and for kernels that the interpreter runs."""
        from llvmlite import binding

        address = ctypes.cast(function, ctypes.c_void_p).value or 0
        binding.add_symbol(self.name, address)
        result, _, arguments = self.signature.rstrip(")").partition("(")
        kinds = [_C_TYPES[name.strip()] for name in (result, *arguments.split(",")) if name]
        typed = ctypes.CFUNCTYPE(*kinds)(address)
        self._python = lambda *values: typed(*[int(value) for value in values])  # ctypes does not take NumPy's integers

    def in_python(self) -> Callable[..., Any]:
        """The function itself, if it is connected."""
        return self._python or super().in_python()

    def inner(self) -> Any:
        """The object that numba calls."""
        from numba.core import sigutils, types as numba_types

        arguments, result = sigutils.normalize_signature(self.signature)
        return numba_types.ExternalFunction(self.name, result(*arguments))

    def described(self) -> bytes:
        """Its name and signature."""
        return f"{self.name} {self.signature}".encode()

    def as_message(self) -> Any:
        """Its name and signature; the process that compiles has no library with it."""
        return _declared, (self.name, self.signature)

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.name}: only a kernel can call a C function")


def _declared(name: str, signature: str) -> External:
    """The function, which is never called."""
    from llvmlite import binding

    any_function = binding.address_of_symbol("memcpy")  # None until numba is imported, for all of libc's functions
    if any_function is not None and binding.address_of_symbol(name) is None:
        binding.add_symbol(name, any_function)
    return External(name, signature)


def connect_first(externals: Sequence[External], files: Iterable[Path]) -> ctypes.CDLL | None:
    """Connects functions to the first of these library files that has all of them; None if there is none."""
    for file in files:
        try:
            library = ctypes.CDLL(str(file))
            functions = [getattr(library, external.name) for external in externals]
        except (OSError, AttributeError):
            continue
        for external, function in zip(externals, functions, strict=True):
            external.connect(function)
        return library
    return None


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Marks a function as a numba kernel: `@kernel`, or `@kernel(fastmath=True)` with numba's options.

    `light=True` is for code that runs once for each call or sample: headers, plans, loops that only call other kernels. It is
    optimised less, which halves the time to compile. The kernels that it calls are optimised by their own options. It is the
    default with `nogil=False`, which is for few numbers.

    `merged=True` is for code that runs once for each row or pixel: it is optimised as a part of the calling kernels, however
    large it is. This takes a third off the time of resampling; compiling takes longer.
    """
    if function is None:
        return lambda f: Kernel(f, options)
    return Kernel(function, options)
