"""PyAV (FFmpeg), for video and for sound that libsndfile cannot read. The only importer of av."""

from __future__ import annotations

import threading
from typing import Any

_TAKES_ANY = 19  # from this version on PyAV accepts any metadata, and has no argument for it

_import_lock = threading.Lock()


def library() -> Any:
    """The module av, or None where it is not installed."""
    with _import_lock:
        try:
            import av
        except ImportError:
            return None
    return av


def opened(file: Any, **options: Any) -> Any:
    """The open container of a path or file object. Titles and the like may hold any bytes: that they are not UTF-8 is no
    error."""
    av = library()
    return av.open(file, **options, **any_metadata(av))


def any_metadata(av: Any) -> dict[str, Any]:
    """The arguments of `av.open` for that."""
    return {"metadata_errors": "replace"} if int(av.__version__.split(".")[0]) < _TAKES_ANY else {}
