"""The operator classes of pipeline mode: `ndd.ops.Resize(size=...)(images)` is `ndd.fn.resize(images, size=...)`.

The class of a function has its name in DALI's capitals, in the same part: `ops.readers.File`, `ops.random.CoinFlip`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ndd.pipeline.functions import OLD_NAMES, Namespace, fn
from ndd.pipeline.node import DataNode

# Arguments that a constructor takes by position.
_BY_PLACE = {
    "external_source": ("source", "num_outputs"),
    "python_function": ("function", "num_outputs", "device", "batch_processing"),
    "torch_python_function": ("function", "num_outputs", "device", "batch_processing"),
    "dl_tensor_python_function": ("function", "num_outputs", "device", "synchronize_stream", "batch_processing"),
    "numba_function": ("run_fn", "out_types", "in_types", "outs_ndim", "ins_ndim", "setup_fn", "device"),
}


class OperatorClass:
    """An operator with some of its arguments, called with its inputs and the others.

    Every call has its own reader, generator or source. KeyError for an argument that the operator does not have, ValueError
    for one that is given in the constructor and in the call.

    >>> import ndd
    >>> with ndd.Pipeline(batch_size=2) as pipe:
    ...     source = ndd.ops.ExternalSource([[1, 2], [3, 4]])
    ...     to_float = ndd.ops.Cast(dtype=ndd.types.FLOAT)
    ...     pipe.set_outputs(to_float(source()))
    >>> pipe.run()[0].as_array().tolist()
    [1.0, 2.0]
    """

    function: Callable[..., Any]

    def __init__(self, *by_place: Any, **arguments: Any):
        names = _BY_PLACE.get(self.function.__name__, ())
        if len(by_place) > len(names):
            raise TypeError(f"ops.{type(self).__name__}: expected arguments by name, got {by_place!r}")
        self.arguments = {**dict(zip(names, by_place, strict=False)), **arguments}
        form = getattr(self.function, "form", None)
        if form is not None:
            form.check_names(f"ops.{type(self).__name__}", self.arguments)

    @property
    def device(self) -> str:
        """The device that was given; default "cpu"."""
        return self.arguments.get("device") or "cpu"

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """The node of the operator, or its nodes."""
        twice = [name for name in arguments if name in self.arguments]
        if twice:
            raise ValueError(
                f"ops.{type(self).__name__}: the constructor got {twice[0]!r}, so the call cannot change it"
            )
        return type(self).function(*inputs, **{**self.arguments, **arguments})


def operator_class(function: Callable[..., Any], name: str) -> type[OperatorClass]:
    """The class of a function of `fn`. Its constructor has the function's arguments; the call has its inputs."""
    by_place = _BY_PLACE.get(function.__name__, ())
    inputs = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
    parameters = [p for p in inspect.signature(function).parameters.values() if p.kind not in inputs]
    parameters = [p.replace(kind=p.POSITIONAL_OR_KEYWORD) if p.name in by_place else p for p in parameters]
    signature = inspect.Signature(sorted(parameters, key=lambda p: (p.kind, p.default is not p.empty)))
    attributes = {"function": staticmethod(function), "__doc__": function.__doc__, "__signature__": signature}
    return type(name, (OperatorClass,), attributes)


class ClassNamespace:
    """`ops` or a part of it, such as `ops.readers`."""

    def __init__(self, functions: Namespace, path: str):
        self._functions = functions
        self._path = path
        self.__name__ = f"ops.{path}" if path else "ops"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        prefix = f"{self._path}." if self._path else ""
        old = [n.removeprefix(prefix) for n in OLD_NAMES if n.startswith(prefix)]
        known = [*dir(self._functions), *(n for n in old if "." not in n)]
        if self._path.startswith("experimental"):  # fn.experimental still has functions that are no longer experimental
            now: Any = fn
            for part in self._path.split(".")[1:]:
                now = getattr(now, part, None)
            known += dir(now) if isinstance(now, Namespace) else []
        wanted = name.lower()
        match = next((n for n in known if n == name or (name != wanted and n.replace("_", "") == wanted)), None)
        value = getattr(self._functions, match) if match is not None else None
        if isinstance(value, Namespace):
            value = ClassNamespace(value, f"{self._path}.{name}" if self._path else name)
        elif value is None or name == wanted:
            raise AttributeError(f"{self.__name__} has no {name!r}: fn has no function of that name")
        else:
            value = operator_class(value, name)
        setattr(self, name, value)
        return value


def compose(operators: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """A chain of operators as one: each takes the result of the one before on its own device."""
    steps = list(operators)

    def run(*inputs: Any, **arguments: Any) -> Any:
        for step in steps:
            if getattr(step, "device", "cpu") == "gpu":
                inputs = tuple([value.gpu() if isinstance(value, DataNode) else value for value in inputs])
            results = step(*inputs, **arguments)
            inputs, arguments = tuple(results) if isinstance(results, list | tuple) else (results,), {}
        return inputs[0] if len(inputs) == 1 else list(inputs)

    return steps[0] if len(steps) == 1 else run


ops = ClassNamespace(fn, "")
ops.Compose = compose  # type: ignore[attr-defined]

__all__ = ["ClassNamespace", "OperatorClass", "compose", "operator_class", "ops"]
