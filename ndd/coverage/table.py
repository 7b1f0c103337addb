"""DALI's public names, one by one: whether ndd has them, on which devices, with the same parameters, and with which tests."""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path
from typing import Any

from ndd._operator import Operator, all_operators
from ndd.coverage.evidence import Evidence
from ndd.coverage.signature import compared

_NAMES = Path(__file__).parent / "dali_names.txt"
_MEMBERS = ("method", "property", "member", "disabled")
_OPERATORS = ("cpu", "gpu", "cpu gpu")


@dataclasses.dataclass(frozen=True)
class Row:
    """One name. `kind` describes it in DALI: its devices for an operator, otherwise function, class, reader, dtype, ..."""

    name: str
    kind: str
    there: bool
    devices: str  # of ndd's operator; "" for other names
    signature: str | None  # "equal", or the differences; None for names that are not called
    tested: str

    @property
    def top(self) -> bool:
        """Whether it is a name of its own, not a member of a class or a module."""
        return self.kind not in (*_MEMBERS, "module")

    @property
    def lacks(self) -> bool:
        """Whether a device is missing here."""
        return self.there and self.kind in _OPERATORS and not set(self.kind.split()) <= set(self.devices.split())

    @property
    def complete(self) -> bool:
        """Whether nothing is to be said against it."""
        equal = self.signature is None or self.signature.startswith("equal")
        return self.there and not self.lacks and equal and self.tested != "-"


def table() -> list[Row]:
    """All names, in alphabetical order."""
    evidence = Evidence()
    return [_row(*entry, evidence) for entry in names()]


def names() -> list[tuple[str, str, str | None]]:
    """(name, kind or devices, parameters as Python text or None) of each of DALI's public names."""
    rows = []
    for line in _NAMES.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            head, bracket, parameters = line.partition(" (")
            name, kind = head.split(" ", 1)
            rows.append((name, kind, parameters[:-1] if bracket else None))
    return rows


def operator_names() -> list[str]:
    """The names of DALI's operators, in alphabetical order."""
    return [name for name, kind, _ in names() if kind in _OPERATORS]


def _row(name: str, kind: str, parameters: str | None, evidence: Evidence) -> Row:
    public = find(name)
    if kind == "disabled":  # `__hash__ = None`
        there = public is None and find(name.rpartition(".")[0]) is not None
        return Row(name, kind, there, "", None, evidence.of_name(name))
    if public is None:
        return Row(name, kind, False, "", None, "-")
    operator = getattr(public, "operator", None)
    signature = None if parameters is None else compared(public, parameters)
    if not isinstance(operator, Operator):
        return Row(name, kind, True, "", signature, "" if kind == "module" else evidence.of_name(name))
    return Row(name, kind, True, devices(operator), signature, evidence.of_operator(name, operator))


def devices(operator: Any) -> str:
    """The devices on which an operator of ndd runs: "cpu", "gpu" or "cpu gpu"."""
    return "cpu gpu" if operator.runs_on_gpu else "cpu"


def own_operators() -> list[str]:
    """Operators of ndd that DALI has not."""
    known = {name for name, _, _ in names()}
    own = [name for name, operator in all_operators().items() if operator.module.startswith("ndd.")]
    return [name for name in own if name not in known and not name.split(".")[-1].startswith("_")]


def find(name: str) -> Any:
    """The public object `ndd.<name>`, or None."""
    value: Any = importlib.import_module("ndd")
    path = "ndd"
    for part in name.split("."):
        path = f"{path}.{part}"
        step = getattr(value, part, None)
        if step is None:
            try:
                step = importlib.import_module(path)
            except ImportError:
                return None
        value = step
    return value
