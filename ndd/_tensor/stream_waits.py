"""Who watches torch's streams wait on a GPU for values of ndd: a profile that is on (`ndd.profiling`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

begins: Callable[[Any], Any] | None = None
"""Called with a stream that is about to wait; `end(stream)` of what it gives is called when that is queued."""
