"""numba's compiler with less work for each kernel. The machine code does the same.

numba counts the references to each array that a variable holds. In a kernel that passes rows to functions this is most of the
code, nearly all of which LLVM removes again. A kernel that allocates nothing needs no counts: its arguments outlive it, and its
other arrays are views of them. `NotCounted` looks for such kernels after types are inferred.

Passes for closures, generators and `with` are left out for a function that has none, and the life of variables is computed only
where a pass uses it.
"""

# numba has no types for its private names.
# pyright: reportPrivateImportUsage=false, reportAttributeAccessIssue=false
from __future__ import annotations

import contextlib
import functools
import inspect
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
    added: Any


@functools.cache
def _passes() -> _Passes:
    """What differs from numba's list of passes: those that plain functions do not need, and one more, after `before`."""
    from numba.core.compiler_machinery import AnalysisPass, register_pass
    from numba.core.typed_passes import IRLegalization
    from numba.core.untyped_passes import (
        FindLiterallyCalls,
        InlineClosureLikes,
        LiteralUnroll,
        MakeFunctionToJitFunction,
    )

    allocates = _allocates()

    @register_pass(mutates_CFG=False, analysis_only=True)
    class NotCounted(AnalysisPass):
        _name = "ndd_not_counted"

        def __init__(self) -> None:
            AnalysisPass.__init__(self)

        def run_pass(self, state: Any) -> bool:
            if not allocates(state):
                state.targetctx.enable_nrt = False  # of this function only
            return False

    left_out = frozenset([InlineClosureLikes, MakeFunctionToJitFunction, FindLiterallyCalls, LiteralUnroll])
    return _Passes(left_out, IRLegalization, NotCounted)


def shorter(state: Any, managers: Any) -> Any:
    """numba's lists of passes for a function, without those that it does not need."""
    left_out, before, added = _passes()
    for manager in managers:
        if _is_plain(state.func_id.code):
            manager.passes = [each for each in manager.passes if each[0] not in left_out]
        manager.add_pass_after(added, before)
        manager.finalize()
    return managers


@contextlib.contextmanager
def without_repetitions(target: Any) -> Iterator[None]:
    """Meanwhile numba looks only into its registries for new definitions, and does not import all that defines some again; and it
    has faster functions for a few of its own."""
    changes = _changes()
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    target.refresh()
    contexts = (target, target.typing_context)
    for context in contexts:
        context.load_additional_registries = functools.partial(_load_again, context)
    for change in changes:
        setattr(*change)
    try:
        yield
    finally:
        for change in before:
            setattr(*change)
        for context in contexts:
            del context.load_additional_registries


def _load_again(context: Any) -> None:
    for registry in list(context._registries):
        context.install_registry(registry)


@functools.cache
def _changes() -> list[tuple[Any, str, Callable[..., Any]]]:
    """numba's methods that take long, and what replaces them."""
    from numba.core import ir, transforms
    from numba.core.postproc import PostProcessor
    from numba.core.runtime.context import NRTContext

    analyse = PostProcessor.run

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

    simple = {str, int, bool, float, type(None), ir.Loc, ir.Scope}

    def list_variables(self: Any, value: Any) -> list[Any]:
        """Calls no function for a variable or a plain value, of which most instructions consist."""
        if isinstance(value, ir.Var):
            return [value]
        if isinstance(value, ir.Inst):
            return value.list_vars()
        if not isinstance(value, dict | list | tuple):
            return []
        variables = []
        for part in value.values() if isinstance(value, dict) else value:
            kind = type(part)
            if kind is ir.Var:
                variables.append(part)
            elif kind not in simple:
                variables += list_variables(self, part)
        return variables

    return [
        (PostProcessor, "run", run),
        (NRTContext, "get_meminfos", get_meminfos),
        (ir.Inst, "_rec_list_vars", list_variables),
    ]
