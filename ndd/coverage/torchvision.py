"""The names of torchvision's transforms and functionals beside those of `ndd.torchvision.v2`."""

from __future__ import annotations

import enum
import inspect
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

_NAMES = Path(__file__).parent / "torchvision_names.txt"


def listed(v2: Any) -> list[str]:
    """A line for each public name of a module like `torchvision.transforms.v2`: name, kind, parameters in brackets."""
    return [f"{name} {kind}{parameters}" for name, kind, parameters in _described(v2)]


def _described(v2: Any) -> Iterator[tuple[str, str, str]]:
    for prefix, module in (("", v2), ("functional.", v2.functional)):
        for name, value in sorted(vars(module).items()):
            if name[0] == "_" or isinstance(value, types.ModuleType) or name == "annotations":
                continue
            kind = "class" if isinstance(value, type) else "function"
            enumeration = isinstance(value, type) and issubclass(value, enum.Enum)
            yield f"{prefix}{name}", kind, "" if enumeration else f" {_parameters(value)}"


def _parameters(value: Any) -> str:
    """Names and defaults, as text that is the same for both libraries."""
    shown = []
    for p in inspect.signature(value).parameters.values():
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        shown.append(f"{stars}{p.name}" + ("" if p.default is p.empty else f"={_default(p.default)}"))
    return f"({', '.join(shown)})"


def _default(value: Any) -> str:
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, float | int) and not isinstance(value, bool):
        return f"{float(np.float64(value)):g}"
    return repr(value)


def names() -> list[str]:
    """The lines of torchvision's own names, of the release in the list."""
    return [line for line in _NAMES.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]


def _compared(own: str, theirs: str) -> str:
    """ "equal", "equal, and same_on_batch=False" where ndd takes more after, or ndd's parameters."""
    if own == theirs:
        return "equal"
    more = own[:-1].removeprefix(theirs[:-1])
    added = more.removeprefix(", ")
    if more != own[:-1] and all("=" in part for part in added.split(", ")):
        return f"equal, and {added}"
    return own.partition(" (")[2][:-1]


def report(missing: bool) -> list[str]:
    """A line for each name (with `missing` for those that ndd lacks or that differ), and the counts."""
    from ndd.torchvision import v2

    # `same_on_batch` of random transforms is ours, and comes by name alone.
    ours = {
        line.split(" ")[0]: re.sub(r"(, )?same_on_batch=0\b|(, )?same_on_batch=False", "", line) for line in listed(v2)
    }
    lines, there, equal = [], 0, 0
    theirs = names()
    for line in theirs:
        name, kind = line.split(" ")[:2]
        own = ours.get(name)
        state = "-" if own is None else f"here  signature: {_compared(own, line)}"
        there += own is not None
        alike = state.startswith("here  signature: equal")
        equal += alike
        if not missing or not alike:
            lines.append(f"{name:<44} torchvision: {kind:<8}  ndd: {state}")
    counts = f"{there} of {len(theirs)} transforms and functionals of torchvision, {equal} of {there} signatures equal"
    return [*lines, counts]
