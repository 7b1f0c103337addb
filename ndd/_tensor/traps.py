"""Warnings about calls that run, and hardly mean what they say: once for each place in the user's code."""

from __future__ import annotations

import sys
import types
import warnings

_told: set[tuple[str, str, int]] = set()


def warn_once(trap: str, text: str, call: tuple[types.CodeType, int] | None = None) -> None:
    """A UserWarning at the user's line, the first time that this line runs into `trap`.

    Args:
        trap: what tells one trap from another, without the values of this call.
        text: a sentence: what came, how it is taken, what to write instead.
        call: the user's code and line, where they are known from before (on another thread); else they are looked up.
    """
    depth = depth_of_user()
    if call is None:
        frame = sys._getframe(depth)
        file, line = frame.f_code.co_filename, frame.f_lineno
    else:
        file, line = call[0].co_filename, call[1]
    if (trap, file, line) in _told:
        return
    if call is None:
        warnings.warn(text, UserWarning, stacklevel=depth + 1)
    else:
        warnings.warn_explicit(text, UserWarning, file, line)
    _told.add((trap, file, line))  # after: where a filter makes errors of warnings, each call is one


def depth_of_user() -> int:
    """How many frames above the one that asks the first one outside ndd is."""
    depth, frame = 0, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "ndd":
        depth, frame = depth + 1, frame.f_back
    return depth
