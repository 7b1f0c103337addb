"""OpenCV, imported at the first use (0.12 s) and kept to one thread: ndd's own pool spreads the samples."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def opencv() -> Any:
    """The module cv2, or None where it is not installed."""
    try:
        import cv2
    except ImportError:
        return None
    return cv2


@functools.cache
def single_threaded() -> Any:
    """cv2 with its own threads switched off; ImportError, with what to install, where it is missing."""
    cv2 = opencv()
    if cv2 is None:
        raise ImportError('OpenCV is missing: pip install "opencv-python-headless>=5"')
    cv2.setNumThreads(1)
    return cv2
