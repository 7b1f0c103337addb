"""The `stubs` command: writes the stubs of every module that has operators."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from types import ModuleType

import ndd
from ndd.stubs.module import stub_of

COMMAND = "python -m ndd stubs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m ndd stubs`."""
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a stub is not up to date")


def run(args: argparse.Namespace) -> int:
    """Writes the stubs that have changed, and names them."""
    changed = stale()
    for path, text in changed.items():
        if not args.check:
            path.write_text(text, encoding="utf-8")
        print(path)
    return 1 if args.check and changed else 0


def stale() -> dict[Path, str]:
    """The stubs that differ from the sources, with the correct text."""
    wanted = {Path(str(m.__file__)).with_suffix(".pyi"): stub_of(m) for m in modules()}
    return {p: t for p, t in wanted.items() if not p.exists() or p.read_text(encoding="utf-8") != t}


def modules() -> list[ModuleType]:
    """The public modules with something that only a stub can type: operators, functions of elements, readers."""
    packages = [ndd]
    for module in packages:
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if isinstance(value, ModuleType) and value.__name__.startswith("ndd.") and value not in packages:
                packages.append(value)
    packages.append(importlib.import_module("ndd._tensor.arithmetic"))
    return [m for m in packages if m.__name__ not in _TYPED and not m.__name__.startswith("ndd.auto_aug.")]


# Modules without operators of their own, and `fn`, whose functions take the nodes of a pipeline and are made on demand.
_TYPED = ("ndd.types", "ndd.io", "ndd.fn", "ndd.tfrecord", "ndd.auto_aug", "ndd.capture", "ndd.checkpoint")
