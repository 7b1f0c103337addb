"""Every declared operator by name, for registry-wide tests, the coverage table and benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ndd._operator.operator import Operator

_operators: dict[str, Operator] = {}


def add(op: Operator) -> None:
    """Lists an operator of this package under its public path, and a user's operator under its module."""
    _operators[public_path(op)] = op


def public_path(op: Operator) -> str:
    """`flip`, `random.uniform`, `experimental.median_blur`; for operators outside ndd `module.name`."""
    module = op.module
    if not module.startswith("ndd."):
        return f"{module}.{op.name}"
    for inner in ("io.file", "experimental.decoders"):
        if module == f"ndd.{inner}":
            return f"{inner}.{op.name}"
    part = module.removeprefix("ndd.").partition(".")[0]
    return op.name if part in ("ops", "imread", "_operator") else f"{part}.{op.name}"


def all_operators() -> dict[str, Operator]:
    """The operators by public path, sorted."""
    return dict(sorted(_operators.items()))
