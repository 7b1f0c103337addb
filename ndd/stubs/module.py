"""The stub of one module: its imports and signatures from the source, its operators from the registry."""

from __future__ import annotations

import ast
import collections.abc
import inspect
import sys
import typing
from types import ModuleType
from typing import Any

from ndd._operator import Operator
from ndd._tensor.device import DeviceLike
from ndd.readers import Reader, options
from ndd.stubs.annotation import Names, default, plain
from ndd.stubs.overloads import (
    definition,
    elementwise_overloads,
    imread_overloads,
    operator_overloads,
    overloaded,
    wrapped,
)

_HEAD = "# Written by `python -m ndd stubs`. Do not edit."
_ELEMENTWISE = "ndd.math"
_TYPED_APART = {"PerSample": "ndd._typing"}  # where type checkers find another thing than Python does


def stub_of(module: ModuleType) -> str:
    """The text of the stub: the module's exports, or all its definitions if it has no `__all__`."""
    tree = ast.parse(inspect.getsource(module))
    exported = getattr(module, "__all__", None)
    defined = [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name[0] != "_"]
    public = exported or defined
    names = Names(frozenset({"bool"} & set(public)))
    written = {name: _lines(module, name, names) for name in public}
    for node in [n for top in tree.body for n in (top.body if isinstance(top, ast.If) else [top])]:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                here = alias.asname or alias.name
                if here in public and not written[here]:
                    names.add(_TYPED_APART.get(here) or node.module or "", alias.name, alias.asname)
    body = [line for lines in written.values() for line in lines]
    listed = [] if exported is None else [wrapped("__all__ = [", [repr(name) for name in exported], "]")]
    return "\n\n".join([_HEAD, "\n".join(names.lines()), *listed, "\n".join(body)]) + "\n"


def _lines(module: ModuleType, name: str, names: Names) -> list[str]:
    """A name's definition; nothing for names that are typed where they are imported from."""
    value = getattr(module, name)
    if isinstance(value, str):
        return [f"{name}: str"]
    if isinstance(getattr(value, "operator", None), Operator):
        return operator_overloads(name, value, names)
    if inspect.isfunction(value):
        if name == "imread":
            return imread_overloads(name, value, names)
        if name == "operator":
            return _decorator(name, value, names)
        if value.__module__ == _ELEMENTWISE:
            return elementwise_overloads(name, value, names, names.add("ndd._tensor", "Tensor"))
        if value.__module__ == module.__name__:
            return [definition(name, *_as_declared(value, names))]
    if inspect.isclass(value):
        if issubclass(value, Reader) and value is not Reader:
            return _reader(name, value, names)
        if value.__module__ == module.__name__:
            return _methods(name, value, names)
    return []


def _as_declared(function: Any, names: Names) -> tuple[list[inspect.Parameter], str]:
    """The parameters and the result of a function or of a constructor, from its annotations."""
    signature = inspect.signature(function, eval_str=True)
    parameters = [
        p.replace(
            annotation=plain(_evaluated(p.annotation, function.__module__), names),
            default=p.default if p.default is p.empty else default(p.default, names),
        )
        for p in signature.parameters.values()
    ]
    return parameters, plain(signature.return_annotation, names)


def _evaluated(annotation: Any, module: str) -> Any:
    """An annotation that is still a text, from a signature of a reader's own arguments and shared ones."""
    if not isinstance(annotation, str):
        return annotation
    shared = {**vars(typing), **vars(collections.abc), "DeviceLike": DeviceLike, **vars(options)}
    return eval(annotation, {**shared, **vars(sys.modules[module])})


def _reader(name: str, reader: type[Reader], names: Names) -> list[str]:
    """A reader with the whole signature of its constructor, which is put together when the class is made."""
    base = names.add(reader.__module__, reader.__name__, f"_{name}")
    parameters, _ = _as_declared(reader, names)
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [f"class {name}({base}):", *_indented(definition("__init__", [this, *parameters], "None"))]


def _methods(name: str, kind: type, names: Names) -> list[str]:
    """`Arithmetic`: each method is an operation on elements, and returns the type it is called on, or a Batch."""
    lines = ["# `==` gives a value, not a bool.", "# pyright: reportIncompatibleMethodOverride=false", f"class {name}:"]
    for method, value in vars(kind).items():
        if inspect.isfunction(value):
            for text in elementwise_overloads(method, value, names, names.add("typing_extensions", "Self")):
                lines += _indented(text)
    return lines


def _decorator(name: str, function: Any, names: Names) -> list[str]:
    """`@ndd.operator`, bare and with options."""
    taken = f"{names.add('collections.abc', 'Callable')}[{names.add('ndd._typing', 'P')}, {names.add('typing', 'Any')}]"
    base = f"{names.add('ndd._typing', 'Declared')}[P]"
    (declared, *options), _ = _as_declared(function, names)
    bare = declared.replace(annotation=taken, default=inspect.Parameter.empty, kind=inspect.Parameter.POSITIONAL_ONLY)
    forms = [definition(name, [bare], base), definition(name, options, f"Callable[[{taken}], {base}]")]
    return overloaded(forms, names)


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.split("\n")]
