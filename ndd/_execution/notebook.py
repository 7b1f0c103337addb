"""Jupyter: detects notebooks, shows values there at once, and shortens errors to the frames of the user."""

from __future__ import annotations

import html
import linecache
import sys
import traceback
import types
from collections.abc import Iterator
from typing import Any


def shell() -> Any:
    """The notebook's shell; None in a script and at a prompt."""
    ipython: Any = sys.modules.get("IPython")
    running = None if ipython is None else ipython.get_ipython()
    return running if getattr(running, "kernel", None) is not None else None


def show_now(value: Any) -> bool:
    """Shows a value below the running cell; False outside of a notebook."""
    if shell() is None:
        return False
    sys.modules["IPython"].display.display(value)
    return True


def shortened(error: BaseException) -> BaseException:
    """The error. A notebook shows its sentence and the user's lines; all frames and earlier errors are folded away."""
    if shell() is not None:
        # Notebooks look for this method on an exception before they print its traceback.
        error._render_traceback_ = types.MethodType(_rendered, error)  # type: ignore[attr-defined] # pyright: ignore
    return error


def fold_errors() -> None:
    """Makes a notebook show every error from ndd as `shortened` does, those that are raised at the call too.

    A notebook has one handler of errors. A handler that is there stays; one that the user sets later replaces this one.
    """
    notebook = shell()
    if notebook is not None and not notebook.custom_exceptions:
        notebook.set_custom_exc((Exception,), _show_error)


def _show_error(notebook: Any, kind: type, error: BaseException, trace: Any, tb_offset: int | None = None) -> None:
    packages = {frame.f_globals.get("__name__", "").partition(".")[0] for frame, _ in traceback.walk_tb(trace)}
    if "ndd" in packages and not hasattr(error, "_render_traceback_"):
        shortened(error)
    # Called as IPython calls it, so that a SyntaxError from running code keeps its frames.
    notebook.showtraceback((kind, error, trace), tb_offset=tb_offset, running_compiled_code=True)


def _rendered(error: BaseException) -> list[str]:
    """The lines that a notebook prints, after the folded part."""
    if not getattr(error, "_is_folded", False):  # ipykernel calls it twice
        error._is_folded = True  # type: ignore[attr-defined] # pyright: ignore
        show_now(sys.modules["IPython"].display.HTML(_fold(error)))
    return [*_user_lines(error), f"{type(error).__name__}: {error}"]


def _fold(error: BaseException) -> str:
    whole = html.escape("".join(traceback.format_exception(error)))
    return f"<details><summary>all frames and earlier errors</summary><pre>{whole}</pre></details>"


def _user_lines(error: BaseException) -> Iterator[str]:
    """The program's own lines on the way to the error, the outermost first."""
    for frame, line in traceback.walk_tb(error.__traceback__):
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package not in ("ndd", "IPython", "ipykernel"):
            code = frame.f_code
            yield f"{place_of(code.co_filename, line)}: {linecache.getline(code.co_filename, line).strip()}"


def place_of(file: str, line: int) -> str:
    """A line of the program as text. The cells of a notebook are files whose names say nothing."""
    in_cell = "ipykernel" in file or file.startswith("<ipython")
    return f"cell, line {line}" if in_cell else f"{file}:{line}"
