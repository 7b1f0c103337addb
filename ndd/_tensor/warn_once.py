"""Warnings about calls that are valid but probably a mistake, once for each place in the user's code."""

from __future__ import annotations

import types
import warnings

from ndd._tensor.user_line import user_frame, warn_at

_told: set[tuple[str, str, int]] = set()


def warn_once(trap: str, text: str, call: tuple[types.CodeType, int] | None = None) -> None:
    """Warns with a UserWarning at the user's line, the first time that this line runs into `trap`.

    Args:
        trap: a name of the mistake, without the values of this call.
        text: a sentence: the value, its interpretation, and what to write instead.
        call: the user's code and line, if they were recorded on another thread; default: they are looked up.
    """
    frame = user_frame()
    file, line = (frame.f_code.co_filename, frame.f_lineno) if call is None else (call[0].co_filename, call[1])
    if (trap, file, line) in _told:
        return
    if call is None:
        warn_at(frame, text, UserWarning)
    else:
        warnings.warn_explicit(text, UserWarning, file, line)
    _told.add((trap, file, line))  # after the warning: where a filter turns it into an error, each call raises
