"""numba's compiler with less work for each kernel. The machine code does the same.

numba counts the references to each array that a variable holds. In a kernel that passes rows to functions this is most of the
code, nearly all of which LLVM removes again. A kernel that allocates nothing needs no counts: its arguments outlive it, and its
other arrays are views of them. `Rewrites` looks for such kernels after types are inferred. They need no rewriting of array
expressions either, which allocate their results.

Passes for closures, generators and `with` are left out for a function that has none, and the life of variables is computed only
where a pass uses it. Some functions that numba calls for each statement are replaced by faster ones (`_changes`).
"""

# numba has no types for its private names.
# pyright: reportPrivateImportUsage=false, reportAttributeAccessIssue=false
from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_VIEWS = {
    "static_getitem", "build_tuple", "cast", "getiter", "iternext", "pair_first", "pair_second", "exhaust_iter", "getattr",
    "phi",
}  # fmt: skip
"""numba's expressions that make views of arrays, and no arrays."""
_CALLS_FOR_VIEWS = {"array.reshape", "array.view", "looked_at", "words"}
"""Functions that do the same: methods, and intrinsics of `intrinsics.py`."""
_REPLACED_EARLY = {"reduce", "array", "stencil", "literal_unroll", "literally", "prange"}
"""Names of functions whose calls numba replaces before it infers types."""


@functools.lru_cache(10_000)
def _is_plain(code: types.CodeType) -> bool:
    """Whether a function is no generator, contains no function or variable of another one, and calls nothing that numba
    replaces before it infers types."""
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE) or code.co_freevars:
        return False
    contains = any([isinstance(constant, types.CodeType) for constant in code.co_consts])
    return not contains and _REPLACED_EARLY.isdisjoint(code.co_names)


@functools.cache
def _allocates() -> Callable[[Any], bool]:
    from numba.core import ir, types

    def is_view(kinds: Any, value: Any) -> bool:
        """Whether an expression whose value holds arrays makes views of other arrays only."""
        if value.op == "call":
            key = getattr(kinds[value.func.name], "typing_key", None)
            return getattr(key, "__name__", key) in _CALLS_FOR_VIEWS
        if value.op == "getitem":
            index = kinds[value.index.name]
            return not any(
                [isinstance(part, types.Array | types.List) for part in (index, *getattr(index, "types", ()))]
            )
        return value.op in _VIEWS or (value.op == "binop" and isinstance(kinds[value.lhs.name], types.BaseTuple))

    views = (
        types.Array, types.ArrayCTypes, types.BaseTuple, types.Optional, types.IteratorType, types.Pair, types.BoundFunction,
    )  # fmt: skip

    def allocates(state: Any) -> bool:
        """Whether a function returns references, or may hold memory that is freed with the last reference to it."""
        kinds, models = state.typemap, state.targetctx.data_model_manager
        counted = {kind for kind in {*kinds.values(), state.return_type} if models[kind].contains_nrt_meminfo()}
        if state.return_type in counted or not all([isinstance(kind, views) for kind in counted]):
            return True
        for block in state.func_ir.blocks.values():
            for statement in block.body:
                if isinstance(statement, ir.DynamicRaise | ir.DynamicTryRaise):
                    return True
                if not isinstance(statement, ir.Assign) or not isinstance(statement.value, ir.Expr):
                    continue
                if kinds[statement.target.name] in counted and not is_view(kinds, statement.value):
                    return True
        return False

    return allocates


class _Passes(NamedTuple):
    left_out: frozenset[Any]
    before: Any
    replacement: Any


@functools.cache
def _passes() -> _Passes:
    """What differs from numba's list of passes: those that plain functions do not need, and a replacement of one, `before`."""
    from numba.core import types
    from numba.core.compiler_machinery import register_pass
    from numba.core.typed_passes import NopythonRewrites
    from numba.core.untyped_passes import (
        FindLiterallyCalls,
        InlineClosureLikes,
        LiteralUnroll,
        MakeFunctionToJitFunction,
    )

    allocates = _allocates()

    @register_pass(mutates_CFG=True, analysis_only=False)
    class Rewrites(NopythonRewrites):
        _name = "ndd_rewrites"

        def run_pass(self, state: Any) -> bool:
            if allocates(state):
                return super().run_pass(state)
            state.targetctx.enable_nrt = False  # of this function only
            # Fields of records have names, which are rewritten too.
            named = any([isinstance(kind, types.StringLiteral) for kind in state.typemap.values()])
            return named and super().run_pass(state)

    left_out = frozenset([InlineClosureLikes, MakeFunctionToJitFunction, FindLiterallyCalls, LiteralUnroll])
    return _Passes(left_out, NopythonRewrites, Rewrites)


def shorter(state: Any, managers: Any) -> Any:
    """numba's lists of passes for a function, without those that it does not need."""
    left_out, before, replacement = _passes()
    for manager in managers:
        if _is_plain(state.func_id.code):
            manager.passes = [each for each in manager.passes if each[0] not in left_out]
        manager.passes = [(replacement if kind is before else kind, text) for kind, text in manager.passes]
        manager.finalize()
    return managers


@contextlib.contextmanager
def without_repetitions(target: Any) -> Iterator[None]:
    """Meanwhile numba looks only into its registries for new definitions, and does not import all that defines some again; and it
    has faster functions for a few of its own."""
    changes = _changes()
    before = [(owner, name, vars(owner).get(name)) for owner, name, _ in changes]
    target.refresh()
    contexts = (target, target.typing_context)
    for context in contexts:
        context.load_additional_registries = functools.partial(_load_again, context, {})
    for change in changes:
        setattr(*change)
    try:
        yield
    finally:
        for owner, name, value in before:
            if value is None:  # it was inherited
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        for context in contexts:
            del context.load_additional_registries


def _load_again(context: Any, loaded: dict[Any, int]) -> None:
    """Installs what was defined since the last time. A registry is a few lists, which only grow."""
    for registry in list(context._registries):
        count = sum([len(each) for each in vars(registry).values() if isinstance(each, list)])
        if loaded.get(registry) != count:
            context.install_registry(registry)
            loaded[registry] = count


@functools.cache
def _changes() -> list[tuple[Any, str, Any]]:
    """numba's methods that take long, and what replaces them."""
    from llvmlite import ir as llvm
    from numba.core import base, errors, event, ir, lowering, ssa, transforms, typeinfer
    from numba.core.postproc import PostProcessor
    from numba.core.runtime.context import NRTContext
    from numba.core.target_extension import Target
    from numba.core.types.abstract import _TypeMetaclass

    analyse, delete, size_of = PostProcessor.run, lowering.Lower.delvar, base.BaseContext.get_abi_sizeof
    start, end = event.start_event, event.end_event

    def run(self: Any, emit_dels: bool = False, **more: Any) -> None:
        """Computes the lives of variables once, and again where deletions are to be inserted."""
        function = self.func_ir
        if emit_dels or function.variable_lifetime is None or not _is_plain(function.func_id.code):
            analyse(self, emit_dels, **more)
        else:
            function.blocks = transforms.canonicalize_cfg(function.blocks)

    def get_meminfos(self: Any, builder: Any, kind: Any, value: Any) -> list[tuple[Any, Any]]:
        """Extracts only the fields that have references in them."""
        models = self._context.data_model_manager
        model = models[kind]
        references = [(kind, model.get_nrt_meminfo(builder, value))] if model.has_nrt_meminfo() else []
        for part, field in model.traverse(builder):
            if models[part].contains_nrt_meminfo():
                references += get_meminfos(self, builder, part, field(value))
        return references

    simple: set[type] = set()

    def list_variables(self: Any, value: Any) -> list[Any]:
        """Calls no function for a variable or a plain value, of which most instructions consist."""
        kind = type(value)
        if kind is dict:
            value = value.values()
        elif kind is not list and kind is not tuple:
            if isinstance(value, ir.Var):
                return [value]
            if isinstance(value, ir.Inst):
                return value.list_vars()
            if isinstance(value, dict | list | tuple):
                return list_variables(self, list(value.values() if isinstance(value, dict) else value))
            simple.add(kind)
            return []
        variables = []
        for part in value:
            kind = type(part)
            if kind is ir.Var:
                variables.append(part)
            elif kind not in simple:
                variables += list_variables(self, part)
        return variables

    def delvar(self: Any, name: str) -> None:
        """Writes no zeros where they prevent nothing from being freed twice."""
        if self.context.enable_nrt or self._disable_sroa_like_opt:
            delete(self, name)
            return
        if name not in self._blk_local_varmap:
            self._singly_assigned_vars.discard(name)
        self._alloca_var(name, self.typeof(name))

    sizes: dict[str, int] = {}

    def get_abi_sizeof(self: Any, kind: Any) -> int:
        """Asks LLVM once for a type of numbers, by parsing a module that has it."""
        if not isinstance(kind, llvm.IntType | llvm.HalfType | llvm.FloatType | llvm.DoubleType):
            return size_of(self, kind)
        name = str(kind)
        if name not in sizes:
            sizes[name] = size_of(self, kind)
        return sizes[name]

    class Context:
        """numba's `new_error_context`, which takes a third of this time as a generator."""

        def __init__(self, text: str, *values: Any, **named: Any):
            self._text, self._values, self._named = text, values, named

        def __enter__(self) -> None:
            pass

        def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
            if isinstance(error, errors.NumbaError):
                named = {name: value for name, value in self._named.items() if name != "errcls_"}
                error.add_context(errors._format_msg(self._text, self._values, named))

    def unless_of_lock(tell: Callable[..., None]) -> Callable[..., None]:
        """Measures no times of LLVM's lock, which each call of LLVM takes."""
        return lambda kind, *more, **named: None if kind == "numba:llvm_lock" else tell(kind, *more, **named)

    silent = logging.Logger("ndd.numba")
    silent.debug = lambda *_: None  # numba calls it twice for each statement

    return [
        (ssa, "_logger", silent),
        (PostProcessor, "run", run),
        (NRTContext, "get_meminfos", get_meminfos),
        (ir.Inst, "_rec_list_vars", list_variables),
        (_TypeMetaclass, "__instancecheck__", type.__instancecheck__),  # no class of types is an abstract one
        (llvm.Type, "__call__", lambda kind, value: llvm.Constant(kind, value)),  # numba's imports `Constant` each time
        (lowering.Lower, "delvar", delvar),
        (lowering, "new_error_context", Context),
        (typeinfer, "new_error_context", Context),
        (base.BaseContext, "get_abi_sizeof", get_abi_sizeof),
        (base, "_has_loc", functools.lru_cache(1000)(base._has_loc)),
        (event, "start_event", unless_of_lock(start)),
        (event, "end_event", unless_of_lock(end)),
        (Target, "inherits_from", classmethod(lambda target, other: other in target.__mro__)),
    ]
