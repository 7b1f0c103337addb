"""What PyAV is told about the metadata of a file: a title may have any bytes."""

from __future__ import annotations

from typing import Any

_TAKES_ANY = 19  # PyAV from this version on, which has no argument for it any more


def any_metadata(av: Any) -> dict[str, Any]:
    """Arguments of `av.open` so that bytes that are no UTF-8 are no error. `av` is the module."""
    return {"metadata_errors": "replace"} if int(av.__version__.split(".")[0]) < _TAKES_ANY else {}
