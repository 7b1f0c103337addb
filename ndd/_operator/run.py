"""The old contract's way to the call that runs. Goes when the last plan that uses it has."""

from __future__ import annotations

import threading
from typing import Any

now = threading.local()


def current_invocation() -> Any:
    """The call that runs on this thread."""
    return now.job
