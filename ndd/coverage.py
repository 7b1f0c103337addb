"""The `coverage` command: the public names of DALI's dynamic mode, and which of them ndd has, on which devices."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import Any

_NAMES = Path(__file__).parent / "dali_names.txt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m ndd coverage`."""
    parser.add_argument("--missing", action="store_true", help="only what is not here yet")


def run(args: argparse.Namespace) -> int:
    """Prints a line for each name; the last line counts. Exit code 0: this is a list, not a check."""
    rows = list(table())
    width = max(len(name) for name, *_ in rows)
    for name, theirs, ours in rows:
        if not args.missing or lacks(theirs, ours):
            print(f"{name:<{width}}  DALI: {theirs:<8} ndd: {ours or '-'}")
    whole = sum(not lacks(theirs, ours) for _, theirs, ours in rows)
    print(f"{whole} of {len(rows)} public names of DALI's dynamic mode, {len(own_operators(rows))} operators beyond it")
    return 0


def table() -> list[tuple[str, str, str]]:
    """(name, devices in DALI, devices in ndd or "" if it is not here), sorted by name."""
    rows = []
    for line in _NAMES.read_text().splitlines():
        if line and not line.startswith("#"):
            name, theirs = line.split(" ", 1)
            rows.append((name, theirs, devices(name, theirs)))
    return rows


def devices(name: str, kind: str) -> str:
    """The devices on which ndd has `name`; its kind where that is no operator."""
    found = find(name)
    if found is None:
        return ""
    operator = getattr(found, "operator", None)
    if operator is None:
        return kind
    on_cpu = operator.cpu is not None or operator.views is not None
    on_gpu = not operator.cpu_only and (operator.cuda is not None or operator.cuda_source or operator.views is not None)
    return " ".join(d for d, there in (("cpu", on_cpu), ("gpu", on_gpu)) if there)


def lacks(theirs: str, ours: str) -> bool:
    """Whether a device, or all of it, is missing here."""
    return not set(theirs.split()) <= set(ours.split())


def own_operators(rows: list[tuple[str, str, str]]) -> list[str]:
    """Operators of ndd that DALI has not."""
    from ndd._operator import all_operators

    known = {name for name, *_ in rows}
    return [name for name in all_operators() if name not in known and not name.split(".")[-1].startswith("_")]


def find(name: str) -> Any:
    """The public object `ndd.<name>`, or None."""
    found: Any = importlib.import_module("ndd")
    path = "ndd"
    for part in name.split("."):
        path = f"{path}.{part}"
        step = getattr(found, part, None)
        if step is None:
            try:
                step = importlib.import_module(path)
            except ImportError:
                return None
        found = step
    return found
