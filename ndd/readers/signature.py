"""A reader's signature and docstring: its own arguments (of `_open`) and the ones that all readers share (`Options`).

`compose` joins both when a reader class is defined; `bound` separates the arguments of a call again.
"""

from __future__ import annotations

import inspect
import os
import re
import types
import typing
from functools import cache
from typing import Any, Literal, get_args, get_origin

from ndd._operator.naming import did_you_mean
from ndd._tensor.device import DeviceLike
from ndd._tensor.dtype import DType, dtype as to_dtype
from ndd._tensor.secrets import without_secrets
from ndd.readers.definition import Definition
from ndd.readers.options import Options, plain

_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_FIRST = ("max_batch_size", "name", "device", "num_inputs")  # may be passed by position
# The others stand in alphabetical order, as in DALI.
_LAST = ("enable_checkpointing", "shuffle", "sampler", "shard", "on_error")
_OF_EPOCHS = ("shuffle_after_epoch", "shuffle_after_epoch_seed")
_SHARED = inspect.signature(Options, eval_str=True).parameters


def compose(reader: Any) -> None:
    """Sets the `__signature__` and the docstring of a reader class. Raises TypeError if its `_open` has parameters that are not
    keyword-only, or that all readers share."""
    abstract = reader._open is Definition._open
    own = [] if abstract else list(_evaluated(reader._open).parameters.values())[1:]
    shared = [name for name in _SHARED if reader._has_epoch_shuffle or name not in _OF_EPOCHS]
    for parameter in own:
        if parameter.kind is not _KEYWORD or parameter.name in shared:
            raise TypeError(
                f"{reader.__name__}._open: expected keyword-only parameters (after a *), got {parameter.name!r}"
            )
    parameters = {p.name: p.replace(annotation=_or_none(p)) for p in own}
    for name in shared:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if name in _FIRST else _KEYWORD
        parameters[name] = _SHARED[name].replace(kind=kind, annotation=_or_none(_SHARED[name]))
    first = (*reader._leading, *_FIRST)
    for name in reader._leading:
        parameters[name] = parameters[name].replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
    last = (*_LAST[:1], *reader._not_in_dali, *_LAST[1:])
    middle = sorted((n for n in parameters if n not in (*first, *last)), key=str.lower)
    reader.__signature__ = inspect.Signature([parameters[n] for n in (*first, *middle, *last)])
    if reader.__dict__.get("__doc__"):
        reader.__doc__ = _with_shared(inspect.cleandoc(reader.__doc__), shared)


def bound(reader: Any, positional: Any, arguments: Any, partial: bool = False) -> tuple[Options, dict[str, Any]]:
    """The arguments of a call, separated into the shared options and the reader's own. None stands for the default, as in DALI;
    values of ndd and NumPy are converted to Python's. With `partial`, required arguments may be missing."""
    signature: inspect.Signature = reader.__signature__
    try:
        by_name = (signature.bind_partial if partial else signature.bind)(*positional, **arguments).arguments
    except TypeError as error:
        wrong = next((name for name in arguments if name not in signature.parameters), "")
        raise TypeError(f"{reader._display}: {error}{did_you_mean(wrong, signature.parameters)}") from None
    shared: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        value = plain(by_name.get(name))
        if value is None:
            value = parameter.default
            if value is parameter.empty:
                if name in by_name:
                    raise TypeError(f"{reader._display}: {name} is required, got None")
                continue
        else:
            value = _converted(reader._display, name, value, parameter.annotation)
        (shared if name in _SHARED else own)[name] = value
    return reader._options_type(**shared), own


def _evaluated(function: Any) -> inspect.Signature:
    """A signature with its annotations evaluated, or as texts if only a type checker can evaluate them."""
    try:
        return inspect.signature(function, eval_str=True)
    except (NameError, TypeError):
        return inspect.signature(function)


def _or_none(parameter: inspect.Parameter) -> Any:
    """Allows None for every parameter with a default, for which it stands."""
    kind = parameter.annotation
    if parameter.default is parameter.empty or isinstance(kind, str) or kind in (parameter.empty, Any, DeviceLike):
        return kind
    return kind | None


def _converted(reader: str, name: str, value: Any, hint: Any) -> Any:
    """A value converted to its annotation: bool, int, float, element types and literal texts; others are returned unchanged."""
    kinds = get_args(hint) if get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    kinds = [kind for kind in kinds if kind is not type(None)]
    kind = kinds[0] if len(kinds) == 1 else None
    if kind is bool:
        return bool(value)
    if kind is int:
        return _number(reader, name, value)
    if kind is str and not isinstance(value, str):
        raise TypeError(f"{reader}: {name}: expected a string, got {value!r}")
    if kind is DType:
        try:
            return to_dtype(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{reader}: {name}: {error}") from None
    if kind is float:
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{reader}: {name}: expected a number, got {value!r}") from None
    if _literal(kind) and value not in get_args(kind) and name not in _SHARED:  # `Options` checks its own
        allowed = ", ".join(map(repr, get_args(kind)))
        raise RuntimeError(f"{reader}: {name}: expected one of {allowed}, got {value!r}")
    return value


def _literal(hint: Any) -> bool:
    return get_origin(hint) is Literal


def _number(reader: str, name: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or (number != value and not isinstance(value, str)):
        first = name == "max_batch_size" and isinstance(value, str)
        advice = ", the first argument; paths are given by name, as in file_root=..." if first else ""
        raise ValueError(f"{reader}: {name}: expected an integer, got {value!r}{advice}")
    return number


def _with_shared(text: str, shared: list[str]) -> str:
    """A reader's docstring, with the texts of the shared arguments after its own arguments."""
    lines = "\n".join(f"    {line}" for name, line in _documented().items() if name in shared)
    if re.search(r"^Args:$", text, re.MULTILINE) is None:
        return f"{text}\n\nArgs:\n{lines}"
    start = text.index("\nArgs:\n") + len("\nArgs:\n")
    end = text.find("\n\n", start)
    end = len(text) if end < 0 else end
    return f"{text[:end].rstrip()}\n{lines}{text[end:]}"


@cache
def _documented() -> dict[str, str]:
    """The text of each argument in the docstring of `Options`, indented by one more level."""
    text = inspect.cleandoc(Options.__doc__ or "").partition("Attributes:\n")[2]
    entries = re.findall(r"^    (\w+): ((?:.*\n?)(?:        .*\n?)*)", text, re.MULTILINE)
    return {name: f"{name}: {text.rstrip()}" for name, text in entries}


def shown(kind: Any, own: dict[str, Any]) -> str:
    """A reader with its own arguments that differ from their defaults: "File(file_root='photos')"."""
    parameters = kind.__signature__.parameters
    shown_arguments = (
        f"{name}={without_secrets(_short(value))}"
        for name, value in own.items()
        if value is not parameters[name].default
    )
    return f"{kind.__name__}({', '.join(shown_arguments)})"


def _short(value: Any) -> str:
    """The text of an argument's value; of a long list, its length."""
    if isinstance(value, list | tuple) and len(value) > 3:
        return f"[{value[0]!r}, ...] ({len(value)})"
    return repr(os.fspath(value) if isinstance(value, os.PathLike) else value)
