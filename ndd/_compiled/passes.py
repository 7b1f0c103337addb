"""Numba's passes over the text of a kernel: those that kernels need. They take two thirds of the time of all.

Numba has 27 passes, for all of Python that it knows. Kernels have no closures, no `with` and no literals to unroll, and
arrays hardly meet in their expressions. So

* passes that would find nothing to do, and the analysis that follows each pass, are left out;
* a kernel that makes no arrays counts no references: it borrows those that it is given;
* the type of `a + b` is looked up once for each pair of types in a process, not once for each `+`.

What these passes do not compile is given to all of numba's (`linking.py`).
"""

# What numba keeps private is not in its types.
# pyright: reportPrivateImportUsage=false, reportAttributeAccessIssue=false
from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

from ndd._compiled.background import background

_LEFT_OUT = {
    "WithLifting", "InlineClosureLikes", "MakeFunctionToJitFunction", "FindLiterallyCalls", "LiteralUnroll",
    "LiteralPropagationSubPipelinePass", "InlineOverloads", "IRLegalization", "DumpParforDiagnostics",
}  # fmt: skip
_OPERATORS = frozenset(function for function in vars(operator).values() if callable(function))
_BORROWING = {"build_tuple", "cast", "phi", "exhaust_iter", "iternext", "getiter", "pair_first", "getattr"}
_METHODS_OF_VIEWS = {"array.reshape", "array.view"}


@functools.cache
def passes_for_kernels() -> Callable[[Any], list[Any]]:
    """The function that gives the list of passes for the state of a compilation, as `CompilerBase.define_pipelines` does."""
    from numba.core import typed_passes
    from numba.core.compiler import DefaultPassBuilder
    from numba.core.compiler_machinery import PassManager, register_pass
    from numba.core.transforms import canonicalize_cfg

    with_types, lower = _typing_context(), _lower()

    @register_pass(mutates_CFG=True, analysis_only=False)
    class Lowering(typed_passes.NativeLowering):
        """Writes LLVM's code."""

        _name = "lowering"

        @property
        def lowering_class(self) -> Any:
            return lower

    class Passes(PassManager):
        """Runs passes without numba's events, timers and analyses."""

        def _runPass(self, index: int, pss: Any, internal_state: Any) -> None:
            background.step()
            pss.analysis = self._analysis
            pss.run_initialization(internal_state)
            if pss.run_pass(internal_state) and index < self.typing:
                internal_state.func_ir.blocks = canonicalize_cfg(internal_state.func_ir.blocks)
            pss.run_finalizer(internal_state)

    counts, array_expressions = _passes_over_types()
    own = {"NopythonRewrites": array_expressions, "AnnotateTypes": counts, "NativeLowering": Lowering}

    def passes(state: Any) -> list[Any]:
        state.typingctx = with_types(state.typingctx)
        chosen = Passes("nopython")
        for each, description in DefaultPassBuilder.define_nopython_pipeline(state).passes:
            if each.__name__ not in _LEFT_OUT:
                chosen.add_pass(own.get(each.__name__, each), description)
        chosen.typing = [each.__name__ for each, _ in chosen.passes].index("NopythonTypeInference")
        chosen.finalize()
        return [chosen]

    return passes


def _typing_context() -> Callable[[Any], Any]:
    """Makes a typing context of numba's one that also remembers the types of operators."""
    from numba.core import types
    from numba.core.typing.context import Context

    signatures: dict[tuple[Any, Any], Any] = {}

    class Remembering(Context):
        def __init__(self, context: Any):
            self.__dict__ = context.__dict__  # the same one, where new functions are added

        def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
            called = func.key[0] if isinstance(func, types.Function) else func
            if kws or called not in _OPERATORS:
                return super().resolve_function_type(func, args, kws)
            signature = signatures.get((func, args))
            if signature is None:
                signature = signatures[func, args] = super().resolve_function_type(func, args, kws)
            return signature

    return Remembering


def _passes_over_types() -> tuple[Any, Any]:
    """The passes `Counts` and `ArrayExpressions`."""
    from numba.core import ir, typed_passes, types
    from numba.core.compiler_machinery import FunctionPass, register_pass
    from numba.core.ir_utils import check_and_legalize_ir
    from numba.core.runtime.context import NRTContext

    class Uncounted(NRTContext):
        """Writes no code that counts references."""

        def _call_incref_decref(self, *_: Any) -> None:
            pass

    def expressions(state: Any) -> Iterator[tuple[Any, Any]]:
        """All expressions, with their types."""
        for block in state.func_ir.blocks.values():
            for each in block.find_insts(ir.Assign):
                if isinstance(each.value, ir.Expr):
                    yield each.value, state.typemap[each.target.name]

    def has_counts(state: Any, kind: Any) -> bool:
        return state.targetctx.data_model_manager[kind].contains_nrt_meminfo()

    def borrows(state: Any, value: Any, kind: Any) -> bool:
        """Whether an expression of this type, which has arrays, makes none of them."""
        if value.op in ("getitem", "static_getitem"):
            index = value.index if value.op == "getitem" else value.index_var
            return (
                index is None or isinstance(state.typemap[value.value.name], types.BaseTuple) or is_view(state, index)
            )
        if value.op == "call":
            called = state.typemap[value.func.name]
            key = getattr(called, "typing_key", None)
            if isinstance(called, types.BoundFunction):
                return key in _METHODS_OF_VIEWS
            return getattr(key, "owns_nothing", False)
        if value.op == "binop":
            return isinstance(kind, types.BaseTuple)  # the sum of two tuples
        return value.op in _BORROWING

    def is_view(state: Any, index: Any) -> bool:
        kind = state.typemap[index.name]
        parts = kind.types if isinstance(kind, types.BaseTuple) else [kind]
        return all([isinstance(part, types.Integer | types.SliceType | types.EllipsisType) for part in parts])

    @register_pass(mutates_CFG=False, analysis_only=False)
    class Counts(FunctionPass):
        """Puts the ends of variables into the text, where numba releases them; or leaves out what counts references."""

        _name = "counts"

        def __init__(self) -> None:
            super().__init__()

        def run_pass(self, state: Any) -> bool:
            counted = [(value, kind) for value, kind in expressions(state) if has_counts(state, kind)]
            makes = any([not borrows(state, value, kind) for value, kind in counted])
            if makes or has_counts(state, state.return_type) or state.func_ir.is_generator:
                check_and_legalize_ir(state.func_ir, flags=state.flags)
            else:
                state.targetctx = state.targetctx.subtarget(enable_nrt=False)
                state.targetctx.nrt = Uncounted(state.targetctx, True)
            return True

    @register_pass(mutates_CFG=True, analysis_only=False)
    class ArrayExpressions(typed_passes.NopythonRewrites):
        """Makes one loop of an expression of arrays, where there are any."""

        _name = "array_expressions"

        def run_pass(self, state: Any) -> bool:
            arrays = [(value, kind) for value, kind in expressions(state) if isinstance(kind, types.Array)]
            return any([not borrows(state, *each) for each in arrays]) and super().run_pass(state)

    return Counts, ArrayExpressions


def _lower() -> Any:
    """The class that writes LLVM's code for numba's text."""
    from numba.core import lowering

    class Lower(lowering.Lower):
        """Does not look at what a variable held before, unless that is a reference."""

        def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
            if name in self._singly_assigned_vars or self.flags.debuginfo or self._is_counted(name):
                super().storevar(value, name, argidx)
            else:
                self.builder.store(value, self.getvar(name))

        def delvar(self, name: str) -> None:
            if self._is_counted(name):
                super().delvar(name)

        def _is_counted(self, name: str) -> bool:
            model = self.context.data_model_manager[self.typeof(name)]
            return self.context.enable_nrt and model.contains_nrt_meminfo()

    return Lower
