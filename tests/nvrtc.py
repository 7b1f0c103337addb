"""Kernel texts compiled for GPUs, without one: each text once for a generation."""

from __future__ import annotations

import functools


@functools.cache
def compiled(text, architecture):
    """None, or what the compiler complains of."""
    from ndd._cuda import compile

    try:
        assert compile._compiled(text, f"sm_{architecture}")
    except RuntimeError as error:
        return str(error)[:2000]
