"""The errors of each entry of the reference: those of its docstring, and those that its declaration implies."""

from __future__ import annotations

import importlib
import types
from dataclasses import dataclass
from typing import Any

from docstrings import parsed

from ndd._operator import Operator

WHEN = """## Errors

Every call checks its arguments at once. What only the data can show, such as a damaged file, is raised where the result is first
read; the message then names the line of the call. An error keeps its type. It says which operator, argument, sample and file it is
about.

* `TypeError`: something of the wrong kind, or an argument that does not exist.
* `ValueError`: the right kind, but a value that is not accepted.
* `RuntimeError`: data that do not fit the operator, as in DALI.
* `ImportError`: an optional package is missing. The message has the command that installs it.
* `MemoryError`, or torch's `OutOfMemoryError` on a GPU: not enough memory.

Each entry lists its own errors; those of a class hold for its methods too. An entry without *Errors* raises only Python's
`TypeError` for a wrong call.
"""


@dataclass(frozen=True)
class Cause:
    """What makes a call fail, by the declaration alone."""

    kind: str
    text: str


def causes(op: Operator) -> dict[str, Cause]:
    """What fails in every call of an operator, by a short name."""
    found = {"unknown": Cause("TypeError", "an argument that it does not have")}
    if op.required:
        found["missing"] = Cause("TypeError", "too few inputs")
    if not op.variadic:
        found["surplus"] = Cause("TypeError", "too many inputs")
    shared = [argument.name for argument in op.arguments if not argument.per_sample]
    if shared:
        names = ", ".join(f"`{name}`" for name in shared)
        found["whole"] = Cause("TypeError", f"a Batch for {names}")
    if op.arguments:
        found["value"] = Cause(
            "TypeError", "an argument of another type (`ValueError` for a name that is none of a few)"
        )
    if op.layouts:
        found["layout"] = Cause("ValueError", "another layout, or a number of axes that none of the layouts has")
    if op.inputs or op.variadic:
        found["sizes"] = Cause("ValueError", "batches of different sizes")
    found["batch_size"] = Cause("ValueError", "a negative `batch_size`")
    found["device"] = Cause("ValueError", "an unknown `device`" + ("" if op.runs_on_gpu else ', and `device="gpu"`'))
    if op.random:
        found["rng"] = Cause("ValueError", "an `rng` that is no `RNG`")
    if op.types:
        found["type"] = Cause("RuntimeError", f"an input that is not of type {', '.join(op.types)}")
    if op.dtypes:
        found["dtype"] = Cause("RuntimeError", f"a `dtype` other than {', '.join(op.dtypes)}")
    found["no_gpu"] = Cause("RuntimeError", '`device="gpu"` without a GPU')
    return found


def errors_of(thing: Any, page: str) -> str:
    """The errors of an entry, as Markdown: its own, then those of every operator, or of every name of its module."""
    operator = getattr(thing, "operator", None)
    lines = [parsed(thing).errors]
    if isinstance(operator, Operator):
        listed = causes(operator).values()
        for kind in dict.fromkeys(cause.kind for cause in listed):
            lines.append(f"`{kind}` for " + ", for ".join(c.text for c in listed if c.kind == kind) + ".")
    else:
        lines.append(_of_module(page))
    lines = [line for line in lines if line]
    return "**Errors.**\n\n" + "".join(f"* {_indented(line)}\n" for line in lines) if lines else ""


def _of_module(page: str) -> str:
    try:
        module = importlib.import_module("ndd." + page.replace("-", "."))
    except ImportError:
        return ""
    return parsed(module).errors if isinstance(module, types.ModuleType) else ""


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")
