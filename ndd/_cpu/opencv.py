"""OpenCV, imported at the first use (0.12 s) and limited to one thread, because ndd's own threads share the samples."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def opencv() -> Any:
    """The module cv2, or None if it is not installed."""
    try:
        import cv2
    except ImportError:
        return None
    return cv2


@functools.cache
def single_threaded() -> Any:
    """cv2 with its own threads turned off. ImportError, with what to install, if it is missing."""
    cv2 = opencv()
    if cv2 is None:
        raise ImportError('OpenCV is missing: pip install "opencv-python-headless>=5"')
    cv2.setNumThreads(1)
    return cv2
