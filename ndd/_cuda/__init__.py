"""CUDA: compiling kernels, launching them over ragged batches, moving values. The only importer of cupy, lazily."""
