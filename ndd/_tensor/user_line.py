"""The line of the user's program that called this package: errors name it and warnings point at it."""

from __future__ import annotations

import sys
import types
import warnings

_BETWEEN = "torch.nn.modules.module"  # calls `forward` of our transforms


def user_frame() -> types.FrameType:
    """The innermost frame outside this package, seen from the function that asks."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__", "")
        if module[:4] not in ("ndd", "ndd.") and module != _BETWEEN:
            break
        frame = frame.f_back
    return frame


def warn_user(text: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the user's line."""
    warn_at(user_frame(), text, category)


def warn_at(frame: types.FrameType, text: str, category: type[Warning]) -> None:
    """As `warnings.warn` with the stack level of that frame."""
    known = frame.f_globals.setdefault("__warningregistry__", {})
    module = frame.f_globals.get("__name__", "<string>")
    warnings.warn_explicit(text, category, frame.f_code.co_filename, frame.f_lineno, module, known)
