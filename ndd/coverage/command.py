"""The `coverage` command: the public names of DALI's dynamic mode, and how well ndd supports each."""

from __future__ import annotations

import argparse
from pathlib import Path

from ndd.coverage import torchvision
from ndd.coverage.lines import DEFAULT, report
from ndd.coverage.operator_index import index
from ndd.coverage.table import Row, own_operators, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m ndd coverage`."""
    parser.add_argument("--missing", action="store_true", help="only what is not here, or differs")
    parser.add_argument("--torchvision", action="store_true", help="list torchvision's names instead of DALI's")
    parser.add_argument("--index", metavar="FILE.md", type=Path, help="write the index of the operators instead")
    parser.add_argument(
        "--lines", metavar="OPERATOR", nargs="*",
        help=f"count each operator's own lines instead, tests and cases with them; default: {' '.join(DEFAULT)}",
    )  # fmt: skip
    parser.add_argument("--all", action="store_true", help="with --lines: all operators")
    parser.add_argument(
        "--root", metavar="DIR", type=Path, help="with --lines: the checkout to count; default: this one"
    )


def run(args: argparse.Namespace) -> int:
    """Prints a line for each name, then the counts. Exit code 0: this is a list, not a check."""
    if args.index is not None:
        args.index.write_text(index(args.index.parent), encoding="utf-8")
        return 0
    if args.lines is not None:
        print(report(args.root or Path(__file__).parent.parent.parent, args.lines, args.all))
        return 0
    if args.torchvision:
        print("\n".join(torchvision.report(args.missing)))
        return 0
    rows = table()
    width = max(len(row.name) for row in rows)
    for row in rows:
        if not args.missing or not row.complete:
            print(line(row, width))
    print(torchvision.report(args.missing)[-1])
    print(summary(rows))
    return 0


def line(row: Row, width: int) -> str:
    """`flip   DALI: cpu gpu  ndd: cpu gpu  signature: equal  tested: with DALI`."""
    head = f"{row.name:<{width}}  DALI: {row.kind:<8}  ndd: "
    if not row.there:
        return f"{head}-"
    signature = "" if row.signature is None else f"  signature: {row.signature}"
    return f"{head}{row.devices or row.kind:<8}{signature}  tested: {row.tested}"


def summary(rows: list[Row]) -> str:
    """The numbers of names, signatures and operators that are here: three lines."""
    tops = [row for row in rows if row.top]
    operators = [row for row in tops if row.devices]
    both = sum(row.devices == "cpu gpu" for row in operators)
    with_dali = sum(row.tested.startswith("with DALI") for row in operators)
    no_tests = any(row.tested == "?" for row in operators)  # installed without a checkout
    tested = "" if no_tests else f"{with_dali} tested with DALI beside them, "
    equal = [row for row in rows if row.there and row.signature is not None]
    return "\n".join(
        (
            f"{_count(tops)} of {len(tops)} functions, classes, readers and types of DALI's dynamic mode, "
            f"{_count(rows)} of {len(rows)} public names with their members",
            f"{sum(row.signature.startswith('equal') for row in equal)} of {len(equal)} signatures equal",
            f"{len(operators)} operators, {both} of them on CPU and GPU, {tested}{len(own_operators())} beyond DALI's",
        )
    )


def _count(rows: list[Row]) -> int:
    return sum(row.there and not row.lacks for row in rows)
