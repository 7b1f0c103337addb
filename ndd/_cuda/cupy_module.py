"""cupy, imported where it is first needed: it binds NVRTC and the driver."""

from __future__ import annotations

from typing import Any

from ndd.installation import install_command


def cupy() -> Any:
    """The cupy module, or an ImportError that says what to install."""
    try:
        import cupy as module
    except ImportError as error:
        raise ImportError(
            "GPU operators need cupy, which is not installed. Install what fits the driver: "
            f"`{install_command('cuda13')}` or `{install_command('cuda12')}` (`python -m ndd doctor` says which)"
        ) from error
    return module
