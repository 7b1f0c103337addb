"""DALI's `plugin_manager`, for code that imports it: it loads operators in C++ for DALI, which ndd cannot run."""

from __future__ import annotations

from pathlib import Path

__all__ = ["load_directory", "load_library"]


def load_library(library_path: str, global_symbols: bool = False) -> None:
    """RuntimeError, as for any library that DALI cannot load.

    Args:
        library_path: of the library.
        global_symbols: no effect.
    """
    raise RuntimeError(
        f"plugin_manager.load_library: {str(library_path)!r}: ndd cannot load operators that are compiled for DALI. Declare the "
        "operator with @ndd.operator, as functions in NumPy, numba, torch, cupy or Triton or as CUDA text; fn.python_function "
        "calls any function"
    )


def load_directory(plugin_dir_path: str, global_symbols: bool = False) -> None:
    """Looks for plugins of DALI, `*/libdali_*.so`. None for a directory without; RuntimeError as `load_library` if there is one.

    Args:
        plugin_dir_path: the directory.
        global_symbols: no effect.
    """
    for library in sorted(Path(plugin_dir_path).glob("*/libdali_*.so")):
        load_library(str(library), global_symbols)
