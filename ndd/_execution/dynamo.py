"""`torch.compile` treats calls, values and readers of ndd as opaque: it neither traces into them nor compiles parts of them.

Dynamo traces every Python function unless its file is on a list. The list is in a module that takes seconds to import, so
our entry is added when other code imports that module. Our functions also carry a mark for Dynamo's interpreter hook:
it skips them and whatever they call (kernels being compiled, other libraries). Without Dynamo neither costs anything.
"""

# torch has no public name for this.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import contextlib
import functools
import importlib.util
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

OPERATOR_FILE = "<ndd operator "  # the beginning of the "file" names of functions that `_operator/declare.py` makes
_PACKAGE = str(Path(__file__).parent.parent)
_RULES = "torch._dynamo.trace_rules"


def keep_dynamo_out() -> None:
    """Tells Dynamo now, or as soon as it is imported."""
    if _RULES in sys.modules:
        _tell(sys.modules[_RULES])
    else:
        sys.meta_path.insert(0, _DynamoImport())


def mark_as_skipped(code: types.CodeType) -> None:
    """Marks code that Dynamo skips, with all that it calls."""
    mark = _marker()
    if mark is not None:
        mark(code)


class _DynamoImport:
    """An import hook that finds no module, but notices when Dynamo's is imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != _RULES:
            return None
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def executed(module: types.ModuleType) -> None:
                execute(module)
                _tell(module)

            spec.loader.exec_module = executed  # type: ignore[method-assign]
        return spec


def _tell(rules: Any) -> None:
    with contextlib.suppress(AttributeError):  # this torch has its list elsewhere; it traces as before
        rules.SKIP_DIRS += [_PACKAGE + "/", OPERATOR_FILE]
        rules._recompile_re()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "ndd":
            for code in _codes(module):
                mark_as_skipped(code)


def _codes(module: types.ModuleType) -> Iterator[types.CodeType]:
    """The code of the functions and methods that a module defines."""
    for value in list(vars(module).values()):
        members = list(vars(value).values()) if isinstance(value, type) else [value]
        for member in members:
            if isinstance(member, property):
                yield from (f.__code__ for f in (member.fget, member.fset) if isinstance(f, types.FunctionType))
                continue
            function = getattr(member, "__func__", member)
            if isinstance(function, types.FunctionType) and function.__code__.co_filename.startswith(_PACKAGE):
                yield function.__code__


@functools.cache
def _marker() -> Callable[[types.CodeType], None] | None:
    try:  # a torch to come may lack them
        from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy
    except ImportError:
        return None
    strategy = _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP)
    return functools.partial(_set_strategy, set_code_exec_strategy, strategy)


def _set_strategy(function: Callable[[types.CodeType, Any], None], strategy: Any, code: types.CodeType) -> None:
    function(code, strategy)
