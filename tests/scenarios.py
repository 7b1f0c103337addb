"""Scenarios: the same code with ndd and with DALI's dynamic mode, and what came of each of its steps."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

Scenario = Callable[[Any, Callable[[Callable[[], Any]], None]], None]


def outcomes(scenario: Scenario, package: Any) -> list[Any]:
    """What each `do(call)` of `scenario(package, do)` gave: a plain value, or the type of its error; with warnings."""
    result: list[Any] = []

    def do(call: Callable[[], Any]) -> None:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                arguments = plain(call())
            except Exception as error:  # a JSONDecodeError is a ValueError as well
                arguments = ValueError if isinstance(error, ValueError) else type(error)
        about = [w for w in told if "epoch before was not finished" not in str(w.message)]
        result.append((arguments, [w.category for w in about if w.category is UserWarning]))

    scenario(package, do)
    return result


def plain(value: Any) -> Any:
    """Values as what can be compared: kind, element type, layout and numbers."""
    if type(value) in (tuple, list):
        return [plain(v) for v in value]
    if hasattr(value, "tensors"):
        return ("batch", str(value.dtype), value.layout, [np.asarray(t).tolist() for t in value])
    if hasattr(value, "evaluate"):
        return ("tensor", str(value.dtype), value.layout, np.asarray(value).tolist())
    return value
