"""Inner kernels: their code is linked into that of their callers, and compiled to machine code there.

numba generates machine code and two wrappers for each function, which are never run if only kernels call it. They are left out
here, for inner kernels of ours and for functions of numba's own library (`np.empty`, slices, ...) while it compiles a kernel of
ours. The code is optimised before it is linked, as in numba: loops that are only optimised in their callers do not always
become vector code (`noise.gaussian` took twice as long).

References to arrays are counted without locking (`_COUNTS`): a kernel's arrays are its own while it runs, because it holds a
reference to each array that Python passes. numba's locked counts took 13 % of the time of decoding, resampling and normalising,
whose loops pass rows to functions: 8 of 61 ms for 64 photographs.

A compilation may be interrupted between its steps (`background.py`).
"""

# numba has no types for its private names.
# pyright: reportPrivateImportUsage=false, reportAttributeAccessIssue=false, reportAssignmentType=false
from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ndd._compiled import pipeline
from ndd._compiled.background import background

_LARGE, _LARGE_TO_LIGHT = 8000, 4000  # bytes of bitcode: a function of five lines has 3000 to 5000
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
"""Replacements for numba's functions of these names, whose calls it removes in pairs that cancel out."""


class _Numba(NamedTuple):
    library: Any
    whole: Any
    inner: Any
    outer: Any
    compile_result: Any
    descriptor: Any
    environment: Any


def options(inner: bool) -> dict[str, Any]:
    """numba's options for inner kernels, or for kernels that Python calls. Functions may have the attributes `light` and
    `merged`, which are options of `jit.kernel`."""
    if inner:
        return {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _numba().inner}
    return {"no_cfunc_wrapper": True, "pipeline_class": _numba().outer}


def parts(result: Any) -> tuple[dict[str, Any], bytes] | None:
    """A compilation result for a file: the fields of the header, and the code. None if a file cannot hold it, because it uses
    Python objects other than element types, or returns a type without a form here."""
    descriptor, library, own = result.fndesc, result.library, result.environment
    others = [other for other in result._find_referenced_environments() if other is not own]
    if library.has_dynamic_globals or result.reload_init or any([other.consts for other in others]):
        return None
    try:
        kind, constants = _form(result.signature.return_type), [_form(constant) for constant in own.consts]
    except TypeError:
        return None
    symbols = {
        "library": library.name,
        "function": descriptor.mangled_name,
        "environment": descriptor.env_name,
        "inline": bool(descriptor.inline),
    }
    return {"result": kind, "constants": constants, "format": library.format, "symbols": symbols}, library.code()


def loaded(target: Any, arguments: tuple[Any, ...], header: dict[str, Any], code: Any, *, function: Any) -> Any:
    """Rebuilds the compilation result of a function for arguments of these types. numba itself uses `pickle`."""
    numba, symbols = _numba(), header["symbols"]
    result = _type(header["result"])
    descriptor = numba.descriptor(
        native=True, modname=function.__module__, qualname=function.__qualname__, unique_name=function.__qualname__,
        doc=function.__doc__ or "", typemap=None, restype=result, calltypes=None, args=_names_of_arguments(function), kws=(),
        argtypes=arguments, inline=symbols["inline"], mangler=lambda *_, **__: symbols["function"],
        env_name=symbols["environment"],
    )  # fmt: skip
    environment = numba.environment.from_fndesc(descriptor)
    environment.consts[:] = environment.consts or [_type(constant) for constant in header["constants"]]
    library = {"object": numba.whole, "bitcode": numba.library}[header["format"]](target.codegen(), symbols["library"])
    library.load(bytes(code))
    return numba.compile_result(
        typing_context=target.typing_context,
        target_context=target,
        entry_point=library.entry(target, descriptor, environment),
        type_annotation="",
        signature=result(*arguments),
        objectmode=False,
        lifted=(),
        fndesc=descriptor,
        library=library,
        environment=environment,
        reload_init=[],
        referenced_envs=(),
    )


def _names_of_arguments(function: Any) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)]


_SCALARS = (
    "none", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
)  # fmt: skip


def _form(kind: Any) -> Any:
    """A numba type in JSON: its name, `{"literal": 3}`, `{"optional": form}`, `{"tuple": [form, ...]}`, or `{"array": [form,
    dimensions, layout, writable, aligned]}`; a NumPy element type: `{"dtype": name}`. TypeError for others."""
    from numba import types

    form: Any = str(kind)
    if isinstance(kind, types.IntegerLiteral | types.BooleanLiteral):
        form = {"literal": kind.literal_value}
    elif isinstance(kind, types.Optional):
        form = {"optional": _form(kind.type)}
    elif isinstance(kind, types.Tuple | types.UniTuple):
        form = {"tuple": [_form(part) for part in kind.types]}
    elif isinstance(kind, np.dtype):
        form = {"dtype": kind.str}
    elif isinstance(kind, types.Array):
        form = {"array": [_form(kind.dtype), kind.ndim, kind.layout, kind.mutable, kind.aligned]}
    elif form not in _SCALARS:
        raise TypeError(f"no form for {kind}")
    if _type(form) != kind:
        raise TypeError(f"{form} says less than {kind}")
    return form


def _type(form: Any) -> Any:
    from numba import types

    if isinstance(form, str):
        if form not in _SCALARS:
            raise TypeError(f"no type is named {form!r}")
        return types.boolean if form == "bool" else getattr(types, form)
    ((name, value),) = form.items()
    if name == "literal":
        return types.literal(value)
    if name == "optional":
        return types.Optional(_type(value))
    if name == "dtype":
        return np.dtype(value)
    if name == "tuple":
        return types.BaseTuple.from_types([_type(part) for part in value])
    element, dimensions, layout, writable, aligned = value
    return types.Array(_type(element), dimensions, layout, readonly=not writable, aligned=aligned)


@functools.cache
def _runtime() -> None:
    """Registers the functions that compiled code calls: numba's functions for memory, which numba registers only with
    everything that it needs to compile (`target.refresh()`, 0.3 s)."""
    from llvmlite import binding
    from numba.core.runtime import _nrt_python

    for name, address in _nrt_python.c_helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


@functools.cache
def _numba() -> _Numba:
    """Our subclasses of numba's classes."""
    from llvmlite import binding
    from llvmlite.binding import newpassmanagers
    from numba import _dynfunc
    from numba.core import event
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, CompilerBase, compile_result
    from numba.core.environment import Environment
    from numba.core.funcdesc import PythonFunctionDescriptor
    from numba.core.registry import cpu_target
    from numba.core.runtime import rtsys

    class Steps(event.Listener):
        def on_start(self, event: Any) -> None:
            background.step()

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:run_pass", Steps())

    @contextlib.contextmanager
    def lightly(codegen: Any, passes: str) -> Iterator[None]:
        """Sets numba's passes over a module, or over each function, to LLVM's first level, without vector code."""
        full = getattr(codegen, passes)
        light_options = {"opt": 1, "loop_vectorize": False, "slp_vectorize": False}
        setattr(codegen, passes, lambda *module, **options: full(*module, **(options or light_options)))
        try:
            yield
        finally:
            delattr(codegen, passes)

    def first_passes(codegen: Any) -> Any:
        """A function that moves variables of a module to registers; None if llvmlite is older than 0.45."""
        manager = newpassmanagers.create_new_module_pass_manager()
        if not hasattr(manager, "add_sroa_pass"):
            return None
        manager.add_sroa_pass()
        manager.add_simplify_cfg_pass()
        options = newpassmanagers.create_pipeline_tuning_options(1)
        builder = newpassmanagers.create_pass_builder(codegen._tm, options)
        return lambda module: manager.run(module, builder)

    resolved: dict[Any, Any] = {}

    @contextlib.contextmanager
    def calls_resolved_once(typing: Any) -> Iterator[None]:
        """Meanwhile what a call of a function with types of arguments gives is looked up once. Numba looks all calls of a function
        up anew each time that it goes over the function, which takes a tenth of the time to compile."""
        resolve = typing.resolve_function_type

        def remembered(function: Any, arguments: Any, named: Any) -> Any:
            call = function, tuple(arguments), tuple(sorted(dict(named or {}).items()))
            try:
                result = resolved.get(call)
            except TypeError:  # numba has functions that cannot be a key
                return resolve(function, arguments, named)
            if result is None:
                result = resolve(function, arguments, named)
                if result is not None:
                    resolved[call] = result
            return result

        typing.resolve_function_type = remembered
        try:
            yield
        finally:
            del typing.resolve_function_type

    class Stepwise(JITCodeLibrary):
        """A library that can be interrupted between its passes; the last pass by itself takes half of the time."""

        light = merged = False  # numba's own functions are neither
        _optimized: tuple[Any, ...] = ()

        def finalize(self) -> None:
            """Links large modules after the optimisation: they are already optimised, and should not be inlined."""
            large = [other for other in self._linking_libraries if isinstance(other, Library) and other.is_large(self)]
            self._optimized = tuple(dict.fromkeys(large))
            self._linking_libraries = [other for other in self._linking_libraries if other not in self._optimized]
            super().finalize()

        def _optimize_functions(self, ll_module: Any) -> None:
            """Skipped but for the use of registers: the passes after linking achieve more in less time."""
            first = first_passes(self._codegen)
            if first is None:
                with lightly(self._codegen, "_function_pass_manager"):
                    super()._optimize_functions(ll_module)
            else:
                ll_module.data_layout = self._codegen._data_layout
                first(ll_module)

        def _optimize_final_module(self) -> None:
            background.step()
            with lightly(self._codegen, "_module_pass_manager") if self.light else contextlib.nullcontext():
                super()._optimize_final_module()
            for other in self._optimized:
                self._final_module.link_in(other._get_module_for_linking(), preserve=True)
            background.step()

        def add_linking_library(self, library: Any) -> None:
            if library is rtsys.library:
                super().add_linking_library(counts(self._codegen))  # the first definition wins
            super().add_linking_library(library)

    class Library(Stepwise):
        """A module to be linked into others. Environments are set where it is linked in."""

        format = "bitcode"

        def is_large(self, caller: Stepwise) -> bool:
            """Whether LLVM would rarely inline its functions, and need not (`jit.kernel`)."""
            return not self.merged and len(self._final_module.as_bitcode()) > (
                _LARGE_TO_LIGHT if caller.light else _LARGE
            )

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

        def code(self) -> bytes:
            """The module itself."""
            self._ensure_finalized()
            return self._final_module.as_bitcode()

        def load(self, code: bytes) -> None:
            """Loads the module in place of compiling it."""
            self._final_module = binding.parse_bitcode(code)
            self._finalize_final_module()

        def entry(self, target: Any, descriptor: Any, environment: Any) -> Any:
            """numba's entry for the code: a function without an address, as numba creates for code without a wrapper."""
            name = descriptor.qualname.split(".")[-1]
            return _dynfunc.make_function(descriptor.lookup_module(), name, "", 0, environment, (self,))

    class Whole(Stepwise):
        """A module to be run."""

        format = "object"

        def code(self) -> bytes:
            """The code without the module, which numba stores so that others can link it."""
            self._ensure_finalized()
            return self._get_compiled_object()

        def load(self, code: bytes) -> None:
            """Loads the module in place of compiling it."""
            _runtime()
            self.enable_object_caching()
            self._set_compiled_object(code)
            self._finalize_final_module()

        def entry(self, target: Any, descriptor: Any, environment: Any) -> Any:
            """The function that Python calls."""
            self._codegen._engine._defined_symbols.add(descriptor.llvm_cpython_wrapper_name)
            return target.get_executable(self, descriptor, environment)

        def _optimize_final_module(self) -> None:
            super()._optimize_final_module()
            for function in self._final_module.functions:
                if function.name in ("NRT_incref", "NRT_decref") and not function.is_declaration:
                    function.linkage = "internal"  # otherwise numba's functions of these names would be called

    @functools.cache
    def counts(codegen: Any) -> Any:
        library = Library(codegen, "counts")
        library.add_llvm_module(binding.parse_assembly(_COUNTS))
        library.finalize()
        return library

    def library_of(kind: Any, compiler: Any, func: Any) -> Any:
        library = kind(compiler.state.targetctx.codegen(), func.__qualname__)
        library.light, library.merged = getattr(func, "light", False), getattr(func, "merged", False)
        return library

    def linked(compiler: Any, func: Any) -> Any:
        """Compiles to a result without a function that Python can call."""
        state = compiler.state
        state.flags.no_compile = state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        state.library = library_of(Library, compiler, func)
        result = CompilerBase.compile_extra(compiler, func)
        result = result._replace(entry_point=result.library.entry(state.targetctx, result.fndesc, result.environment))
        state.targetctx.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return result

    class Shorter(Compiler):
        def define_pipelines(self) -> Any:
            return pipeline.shorter(self.state, super().define_pipelines())

    class Inner(Shorter):
        compile_extra = linked

    class Outer(Shorter):
        def compile_extra(self, func: Any) -> Any:
            """Runs under numba's lock: everything that it compiles meanwhile is for this function."""
            Compiler.compile_extra = linked
            self.state.library = library_of(Whole, self, func)
            self.state.library.enable_object_caching()
            try:
                with calls_resolved_once(self.state.typingctx), pipeline.without_repetitions(cpu_target.target_context):
                    result = CompilerBase.compile_extra(self, func)
            finally:
                del Compiler.compile_extra
            for env in result._find_referenced_environments():
                result.codegen.set_env(env.env_name, env)
            return result

    return _Numba(Library, Whole, Inner, Outer, compile_result, PythonFunctionDescriptor, Environment)
