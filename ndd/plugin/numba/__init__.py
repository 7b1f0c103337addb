"""DALI's numba plugin: `fn.experimental.numba_function` and its class."""

from ndd.plugin.numba.experimental import NumbaFunction

__all__ = ["NumbaFunction"]
