"""Arguments that DALI renamed or dropped, and still takes with a warning."""

from __future__ import annotations

import warnings
from typing import Any


def renamed(operator: str, old: str, old_value: Any, new: str, new_value: Any) -> Any:
    """The value of argument `new`, which may have been given under its old name; TypeError if under both."""
    if old_value is None:
        return new_value
    if new_value is not None:
        raise TypeError(f"{operator}() got `{old}`, the old name of `{new}`, beside `{new}`")
    warnings.warn(f"{operator}: `{old}` is an old name of `{new}`", DeprecationWarning, stacklevel=4)
    return old_value


def ignored(operator: str, name: str, value: Any) -> None:
    """Warns of an argument that has no effect any more."""
    if value is not None:
        warnings.warn(f"{operator}: `{name}` has no effect any more", DeprecationWarning, stacklevel=4)
