"""How annotations and defaults are written in a stub, and the imports that they need."""

from __future__ import annotations

import collections.abc
import enum
import inspect
import math
import sys
import types
import typing
from typing import Any

from ndd._tensor import DType
from ndd._tensor.device import DeviceLike
from ndd._tensor.dtype import ALL

_UNIONS = (typing.Union, types.UnionType)
_VECTORS = (list, tuple, collections.abc.Sequence)
_DTYPE_NAMES = {value: name for name, value in vars(sys.modules[DType.__module__]).items() if value in ALL}


class Names:
    """The imports of one stub. `shadowed` are the names of builtins that the module gives another meaning."""

    def __init__(self, shadowed: frozenset[str] = frozenset()):
        self._shadowed = shadowed
        self._imports: dict[str, dict[str, str]] = {}  # module: {name here: name there}
        self._here: set[str] = set()

    def add(self, module: str, name: str, alias: str | None = None) -> str:
        """Imports a name, unless it is there already; returns its name here."""
        here = alias or name
        if here not in self._here:
            self._here.add(here)
            self._imports.setdefault(module, {})[here] = name
        return here

    def of(self, kind: type) -> str:
        """The name of a class here."""
        first, _, rest = kind.__qualname__.partition(".")
        if kind.__module__ == "builtins":
            local = self.add("builtins", first, f"_{first}") if first in self._shadowed else first
        else:
            local = self.add(kind.__module__, first)
        return f"{local}.{rest}" if rest else local

    def lines(self) -> list[str]:
        """The import statements."""
        imports = []
        for module, names in sorted(self._imports.items()):
            listed = [there if here == there else f"{there} as {here}" for here, there in sorted(names.items())]
            line = f"from {module} import {', '.join(listed)}"
            if len(line) > 120:
                line = "\n    ".join([f"from {module} import (", *[f"{name}," for name in listed]]) + "\n)"
            imports.append(line)
        return imports


def plain(annotation: Any, names: Names) -> str:
    """An annotation as it stands."""
    if annotation is inspect.Parameter.empty or annotation is Any:
        return names.add("typing", "Any")
    if annotation is None or annotation is type(None):
        return "None"
    if annotation == DeviceLike:
        return names.add("ndd._tensor.device", "DeviceLike")
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in _UNIONS:
        return united([plain(a, names) for a in _members(arguments)])
    if origin is typing.Literal:
        return f"{names.add('typing', 'Literal')}[{', '.join(default(a, names) for a in arguments)}]"
    if origin is collections.abc.Callable:
        *taken, result = [a if a is ... else plain(a, names) for a in _flat(arguments)]
        listed = "..." if taken == [...] else f"[{', '.join(taken)}]"
        return f"{names.add('collections.abc', 'Callable')}[{listed}, {result}]"
    if origin is not None:
        return f"{names.of(origin)}[{', '.join('...' if a is ... else plain(a, names) for a in arguments)}]"
    if isinstance(annotation, type):
        return names.of(annotation)
    raise TypeError(f"no way to write the annotation {annotation!r} in a stub: see ndd/stubs/annotation.py")


def accepted(annotation: Any, names: Names, batch: bool) -> list[str]:
    """The types that an operator takes for an argument, as the members of a union: more than its annotation says, as
    `_operator/arguments.py` converts. `batch`: whether they include a value for each sample."""
    kind = getattr(annotation, "kind", None)
    if type(annotation).__name__ == "PerSample":
        handles = [names.add("ndd._typing", "Array"), *([names.add("ndd._tensor", "Batch")] if batch else [])]
        return [*accepted(kind, names, batch), *handles]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in _UNIONS and annotation != DeviceLike:
        return [text for a in _members(arguments) for text in accepted(a, names, batch)]
    if origin in _VECTORS or annotation in _VECTORS:
        element = arguments[0] if arguments else Any
        element_type = accepted(element, names, batch)
        sequence = names.add("collections.abc", "Sequence")
        inner = (
            [*element_type, f"{sequence}[{united(element_type)}]"] if element is float else element_type
        )  # a matrix as a list of its rows
        return [
            *element_type,
            f"{sequence}[{united(inner)}]",
            *([] if element is str else [names.add("ndd._typing", "Array")]),
        ]
    if annotation is DType:
        return [names.add("ndd._typing", "DTypeLike")]
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        values = tuple(member.value for member in annotation)
        return [names.of(annotation), "int" if issubclass(annotation, int) else plain(typing.Literal[values], names)]
    return [plain(annotation, names)]


def _members(arguments: tuple[Any, ...]) -> list[Any]:
    """The members of a union, with those of DeviceLike as one: they are names of classes that are not imported."""
    device = typing.get_args(DeviceLike)
    if not set(device) <= set(arguments):
        return list(arguments)
    return [DeviceLike, *(a for a in arguments if a not in device)]


def united(options: list[str]) -> str:
    """The union of these, None at the end."""
    return " | ".join(sorted(dict.fromkeys(options), key=lambda option: option == "None"))


def _flat(arguments: tuple[Any, ...]) -> list[Any]:
    """The parameters and the result of a Callable in one list."""
    taken, result = arguments
    return [*(taken if isinstance(taken, list) else [taken]), result]


def default(value: Any, names: Names) -> str:
    """A default, or a member of a Literal; `...` for values without a short text."""
    if isinstance(value, enum.Enum):
        return f"{names.of(type(value))}.{value.name}"
    if isinstance(value, DType):
        return names.add("ndd._tensor.dtype", _DTYPE_NAMES[value])
    if isinstance(value, tuple):
        return repr(value) if all(isinstance(v, int | float | str) for v in value) else "..."
    if value is None or isinstance(value, int | str) or (isinstance(value, float) and math.isfinite(value)):
        return repr(value)
    return "..."
