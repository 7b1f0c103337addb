"""Code that only kernels call: it is linked into theirs, and made machine code there.

Numba makes machine code of each function, which nobody runs where kernels alone call it, with two wrappers. It is left
out here: for our kernels that kernels call, and for what numba has in its own library (`np.empty`, slices, ...) while it
compiles a kernel of ours. It is optimised before it is linked, as numba does: loops that are only optimised in their
callers are not always made vector code (`noise.gaussian` took twice as long).

What refers to an array is counted without locking (`_COUNTS`): a kernel's arrays are its own while it runs, for it gets a
count of its own for each array that Python hands over. Numba's locked counts took 13 % of the time of decoding, resampling
and normalising, whose loops pass rows around: 8 of 61 ms for 64 photographs.

Between the steps of a compilation it may be broken off (`background.py`).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from ndd._cpu.background import background

_COUNTS = """
declare void @NRT_MemInfo_call_dtor(i8*)

define void @NRT_incref(i8* %array) noinline nounwind {
  %none = icmp eq i8* %array, null
  br i1 %none, label %done, label %one
one:
  %place = bitcast i8* %array to i64*
  %count = load i64, i64* %place
  %more = add i64 %count, 1
  store i64 %more, i64* %place
  br label %done
done:
  ret void
}

define void @NRT_decref(i8* %array) noinline nounwind {
  %none = icmp eq i8* %array, null
  br i1 %none, label %done, label %one
one:
  %place = bitcast i8* %array to i64*
  %count = load i64, i64* %place
  %less = sub i64 %count, 1
  store i64 %less, i64* %place
  %last = icmp eq i64 %less, 0
  br i1 %last, label %free, label %done
free:
  call void @NRT_MemInfo_call_dtor(i8* %array)
  br label %done
done:
  ret void
}
"""
"""Numba's functions of these names; it looks for calls of them, and leaves out those that cancel out."""


class _Numba(NamedTuple):
    library: Any
    whole: Any
    inner: Any
    outer: Any
    result: Any


def options(inner: bool) -> dict[str, Any]:
    """How numba compiles it, or what Python calls."""
    if inner:
        return {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _numba().inner}
    return {"no_cfunc_wrapper": True, "pipeline_class": _numba().outer}


def rebuild(target: Any, *parts: Any) -> Any:
    """As `CompileResult._rebuild`, for inner code. Environments are set where it is linked in."""
    return _numba().result._rebuild(_InnerTarget(target), *parts[:-1], ())._replace(target_context=target)


def rebuild_outer(target: Any, *parts: Any) -> Any:
    """The same for what Python calls."""
    _runtime()
    return _numba().result._rebuild(_Target(target), *parts)._replace(target_context=target)


def reduced(result: Any) -> tuple[Any, ...]:
    """`CompileResult._reduce`, without the modules of numba that loading it would import: only objects that are compiled in
    are looked up in environments."""
    *parts, environments = result._reduce()
    return *parts, tuple([e for e in environments if e.consts])


@functools.cache
def _runtime() -> None:
    """Makes known what compiled code calls: numba's functions for memory, which it makes known with what else it needs to
    compile (`target.refresh()`, 0.3 s)."""
    from llvmlite import binding
    from numba.core.runtime import _nrt_python

    for name, address in _nrt_python.c_helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


@functools.cache
def _numba() -> _Numba:
    """Our ways of what numba has."""
    from llvmlite import binding
    from numba.core import event
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, CompilerBase, CompileResult
    from numba.core.runtime import rtsys

    class Steps(event.Listener):
        def on_start(self, event: Any) -> None:
            background.step()

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:run_pass", Steps())

    class Stepwise(JITCodeLibrary):
        """The last pass alone takes half of the time."""

        def _optimize_final_module(self) -> None:
            background.step()
            super()._optimize_final_module()
            background.step()

        def add_linking_library(self, library: Any) -> None:
            if library is rtsys.library:
                super().add_linking_library(counts(self._codegen))  # the first definition is taken
            super().add_linking_library(library)

    class Library(Stepwise):
        """A module to be linked into others."""

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

        def serialize_using_object_code(self) -> Any:
            """There is none: the module itself."""
            self._ensure_finalized()
            return self.name, self._final_module.as_bitcode()

    class Whole(Stepwise):
        """A module to be run."""

        def serialize_using_object_code(self) -> Any:
            """Without the module, which numba keeps for other ones that it may be linked into: half of what is read."""
            self._ensure_finalized()
            return self.name, self._get_compiled_object()

        def _optimize_final_module(self) -> None:
            super()._optimize_final_module()
            for function in self._final_module.functions:
                if function.name in ("NRT_incref", "NRT_decref") and not function.is_declaration:
                    function.linkage = "internal"  # else numba's own, which are there already, would be called

    @functools.cache
    def counts(codegen: Any) -> Any:
        library = Library(codegen, "counts")
        library.add_llvm_module(binding.parse_assembly(_COUNTS))
        library.finalize()
        return library

    def linked(compiler: Any, func: Any) -> Any:
        """The result has no function that Python can call."""
        state = compiler.state
        state.flags.no_compile = state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        state.library = Library(state.targetctx.codegen(), func.__qualname__)
        result = CompilerBase.compile_extra(compiler, func)
        result = result._replace(entry_point=_entry(result.library, result.fndesc, result.environment))
        state.targetctx.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return result

    class Inner(Compiler):
        compile_extra = linked

    class Outer(Compiler):
        def compile_extra(self, func: Any) -> Any:
            """Under numba's lock: what else it compiles meanwhile is for this function."""
            Compiler.compile_extra = linked
            self.state.library = Whole(self.state.targetctx.codegen(), func.__qualname__)
            self.state.library.enable_object_caching()
            try:
                result = CompilerBase.compile_extra(self, func)
            finally:
                del Compiler.compile_extra
            for env in result._find_referenced_environments():
                result.codegen.set_env(env.env_name, env)
            return result

    return _Numba(Library, Whole, Inner, Outer, CompileResult)


class _Target:
    """What `CompileResult._rebuild` needs of a target."""

    def __init__(self, target: Any):
        self.target = target
        self.typing_context = target.typing_context
        self.real = target.codegen()

    def codegen(self) -> _Target:
        return self

    def unserialize_library(self, kept: tuple[str, bytes]) -> Any:
        library = _numba().whole(self.real, kept[0])
        library.enable_object_caching()
        library._set_compiled_object(kept[1])
        library._finalize_final_module()
        return library

    def get_executable(self, library: Any, fndesc: Any, env: Any) -> Any:
        self.real._engine._defined_symbols.add(fndesc.llvm_cpython_wrapper_name)
        return self.target.get_executable(library, fndesc, env)


class _InnerTarget(_Target):
    """The same for inner code."""

    def unserialize_library(self, kept: tuple[str, bytes]) -> Any:
        from llvmlite import binding

        library = _numba().library(self.real, kept[0])
        library._final_module = binding.parse_bitcode(kept[1])
        library._finalize_final_module()
        return library

    def get_executable(self, library: Any, fndesc: Any, env: Any) -> Any:
        return _entry(library, fndesc, env)


def _entry(library: Any, fndesc: Any, env: Any) -> Any:
    """By what numba finds the code: a function without an address, as it makes for code without a wrapper."""
    from numba import _dynfunc

    name = fndesc.qualname.split(".")[-1]
    return _dynfunc.make_function(fndesc.lookup_module(), name, "", 0, env, (library,))
