"""Two signatures side by side: the names, kinds and defaults of parameters."""

from __future__ import annotations

import enum
import inspect
import math
from typing import Any

from ndd._tensor import DType

_UNSET = inspect.Parameter.empty
_KEYWORD, _POSITIONAL = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_ONLY


def compared(function: Any, parameters: str) -> str:
    """ "equal", "equal, and on_error" where ndd takes more by name, or what differs.

    `parameters` is DALI's list as Python text. A default that is `...` there is worked out at the call, and may be
    shown as anything here. None here stands for "not given", which DALI shows for every argument of an operator.
    """
    theirs = [p for p in _signature(eval(f"lambda {parameters}: 0", {"nan": math.nan, "inf": math.inf}))]
    ours = [p for p in _signature(function) if p.kind is not p.VAR_KEYWORD]
    different = _positional(ours, theirs)
    by_name = {p.name: p for p in ours}
    for p in theirs:
        if p.kind in (_POSITIONAL, p.VAR_KEYWORD, p.VAR_POSITIONAL):
            continue
        own = by_name.pop(p.name, None)
        if own is None:
            different.append(f"lacks {p.name}")
        elif own.kind is not p.kind:
            different.append(f"{p.name} is {own.kind.description}, in DALI {p.kind.description}")
        elif not _same_default(own.default, p.default):
            different.append(f"{p.name}={_shown(own.default)}, in DALI {_shown(p.default)}")
    more = sorted(p.name for p in by_name.values() if p.kind not in (_POSITIONAL, p.VAR_POSITIONAL))
    required = [name for name in more if by_name[name].default is _UNSET]
    different += [f"{name} is needed" for name in required]
    if different:
        return "; ".join(different)
    return f"equal, and {', '.join(more)}" if more else "equal"


def _signature(function: Any) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # types of the interpreter itself
        return []
    return parameters[1:] if parameters and parameters[0].name in ("self", "cls") else parameters


def _positional(ours: list[inspect.Parameter], theirs: list[inspect.Parameter]) -> list[str]:
    """Data inputs: their number, the number of required ones, and whether there may be more. Their names cannot be used."""
    counts = []
    for side in (ours, theirs):
        inputs = [p for p in side if p.kind is _POSITIONAL]
        needed = sum(p.default is _UNSET for p in inputs)
        counts.append((len(inputs), needed, any(p.kind is p.VAR_POSITIONAL for p in side)))
    if counts[0] == counts[1]:
        return []
    return [f"inputs (all, required, any number): {counts[0]}, in DALI {counts[1]}"]


def _same_default(own: Any, theirs: Any) -> bool:
    if own is _UNSET or theirs is _UNSET:
        return own is theirs
    return own is None or theirs is ... or _plain(own) == _plain(theirs)


def _plain(value: Any) -> Any:
    """Numbers as 32-bit text, one-element lists as their element, enumerations and element types as their number."""
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, DType):
        value = value.type_id
    if isinstance(value, enum.Enum):
        return f"{float(value.value):.6f}"
    if hasattr(value, "__len__") and len(value) == 1:
        value = value[0]
    if hasattr(value, "__len__"):
        return [_plain(v) for v in value]
    return f"{float(value):.6f}" if isinstance(value, int | float) or hasattr(value, "dtype") else repr(value)


def _shown(value: Any) -> str:
    return "required" if value is _UNSET else repr(value)
