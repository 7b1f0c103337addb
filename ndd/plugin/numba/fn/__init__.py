"""The functions of DALI's numba plugin: `fn.experimental.numba_function`."""
