"""`numba_function`, where DALI's numba plugin has it."""

from ndd.fn import experimental

numba_function = experimental.numba_function

__all__ = ["numba_function"]
