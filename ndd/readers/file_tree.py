"""Finding files: the classes of a directory tree, and names that match shell patterns."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np


def scan_tree(reader: str, root: str, choose_dir: Any, choose_file: Any) -> tuple[list[str], list[str], np.ndarray]:
    """The files one level below `root`: the chosen directories, the names, and the directory's place for each name."""
    try:
        with os.scandir(root) as entries:
            folders = sorted(entry.name for entry in entries if choose_dir(entry.name) and entry.is_dir())
    except OSError as error:
        raise RuntimeError(f"{reader}: Failed to open {root}: {error.strerror}") from error
    names: list[str] = []
    counts: list[int] = []
    paths = [os.path.join(root, folder) for folder in folders]
    for path in paths:
        try:
            with os.scandir(path) as entries:
                inside = sorted(entry.name for entry in entries if choose_file(entry.name) and not entry.is_dir())
        except OSError as error:
            raise RuntimeError(f"{reader}: Failed to open {path}: {error.strerror}") from error
        names += inside
        counts.append(len(inside))
    places = np.repeat(np.arange(len(folders), dtype=np.int32), counts)
    return paths, names, places


def name_filter(reader: str, argument: str, patterns: Any, case: bool) -> Any:
    """A function that tells whether a name matches one of the glob patterns (None: every name does)."""
    if patterns is None:
        return lambda name: True
    listed = [patterns] if isinstance(patterns, str) else list(patterns)
    if not listed:
        raise RuntimeError(f"{reader}: `{argument}` cannot be an empty list")
    endings = tuple(pattern[1:] for pattern in listed if re.fullmatch(r"\*[^*?\[\\]+", pattern))
    globs = [pattern for pattern in listed if not (pattern[:1] == "*" and pattern[1:] in endings)]
    matches = re.compile("|".join(map(glob_expression, globs)) or "(?!)", 0 if case else re.IGNORECASE).fullmatch
    if case:
        return lambda name: name.endswith(endings) or matches(name) is not None
    endings = tuple(ending.lower() for ending in endings)
    return lambda name: name.lower().endswith(endings) or matches(name) is not None


@cache
def glob_expression(pattern: str) -> str:
    """A shell pattern (`*`, `?`, `[a-z]`, `[!a-z]`, backslash) as a regular expression."""
    return "".join(_glob_pieces(pattern))


def _glob_pieces(pattern: str) -> Iterator[Any]:
    simple = {"*": "(?s:.*)", "?": "(?s:.)"}
    for piece in re.findall(r"\[[!^]?\]?[^\]]*\]|\\.|.", pattern, re.DOTALL):
        if len(piece) > 2 and piece[0] == "[":
            negated = piece[1] in "!^"
            inside = piece[1 + negated : -1].replace("\\", r"\\").replace("[", r"\[").replace("]", r"\]")
            inside = inside.replace("^", r"\^").replace("&", r"\&").replace("~", r"\~").replace("|", r"\|")
            yield f"[{'^' * negated}{inside}]"
        elif len(piece) == 2 and piece[0] == "\\":
            yield re.escape(piece[1])
        else:
            yield simple.get(piece, re.escape(piece))
