"""Operators of the top-level namespace."""

from typing import Any


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"ndd.ops has no {name!r}: ndd has no operator classes. Call the function, such as ndd.fn.resize(...) inside a "
        "pipeline or ndd.resize(...) anywhere"
    )
