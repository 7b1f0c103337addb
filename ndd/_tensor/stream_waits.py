"""The hook for a profile (`ndd.profiling`) that watches torch's streams wait on a GPU for values of ndd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

begins: Callable[[Any], Any] | None = None
"""Called with a stream that is about to wait. It returns an object whose `end(stream)` is called when the wait is queued."""
