"""PyAV (FFmpeg), for video and for sound that libsndfile cannot read. The only importer of av."""

from __future__ import annotations

import threading
from typing import Any

_TAKES_ANY = 19  # from this version on PyAV accepts any metadata, without an argument

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
    """The open container of a path or file object. Metadata such as titles may hold any bytes, not only UTF-8."""
    av = library()
    return av.open(file, **options, **any_metadata(av))


def any_metadata(av: Any) -> dict[str, Any]:
    """The arguments of `av.open` that allow any bytes in metadata."""
    return {"metadata_errors": "replace"} if int(av.__version__.split(".")[0]) < _TAKES_ANY else {}
