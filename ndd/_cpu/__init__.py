"""Shared CPU kernels; the only importer of numba and OpenCV."""
