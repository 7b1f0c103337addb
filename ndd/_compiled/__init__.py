"""Kernels for the CPU: compiling, kernel files, native threads, intrinsics. The only importer of numba."""
