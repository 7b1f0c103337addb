"""Kernels for the CPU: compiling, kernel files, native threads, intrinsics. The only importer of numba."""

from ndd._compiled import intrinsics as _intrinsics  # noqa: F401  (kernels have its `min` and `max`)
