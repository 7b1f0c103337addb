"""Arguments of readers of tables and shards: the names of columns, and the files that a path stands for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ndd.io.file import from_where
from ndd.io.object_store import is_remote, list_folders, without_query
from ndd.readers.files.file_tree import listed_names, name_filter, scan_nested


def column_names(reader: str, columns: Any, argument: str = "columns") -> list[str]:
    """`columns`, one name or several, as a list. TypeError for other values; ValueError for a name that comes twice, and for
    no names, which only `files` may be."""
    names = [columns] if isinstance(columns, str) else columns
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{reader}: {argument}: expected the names of columns, got {columns!r:.80}")
    if not names and argument == "columns":
        raise ValueError(f"{reader}: columns: expected at least one name, got {columns!r}")
    if len(set(names)) != len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise ValueError(f"{reader}: {argument}: expected each name once, got {twice!r} twice")
    return list(names)


def container_files(reader: str, argument: str, paths: Any, pattern: str) -> list[str]:
    """The named files and, of named folders, the files that match the pattern, sorted. RuntimeError for a folder without any."""
    files: list[str] = []
    for path in listed_names(reader, argument, paths):
        if not _is_folder(path, pattern):
            files.append(path)
            continue
        names = scan_nested(reader, path, name_filter(reader, argument, pattern, True))
        if not names:
            raise RuntimeError(f"{reader}: {argument}: No files {pattern} found in {path}")
        files += [os.path.join(path, name) for name in names]
    return files


def _is_folder(path: str, pattern: str) -> bool:
    """Whether a path is a folder. A URL that ends as the files do is taken for a file, without a request."""
    if not is_remote(path):
        return os.path.isdir(path)
    if without_query(path).startswith(("http://", "https://")) or path.endswith(pattern[1:]):
        return False
    return not isinstance(list_folders([path])[0], OSError)


def cannot_open(reader: str, error: OSError) -> RuntimeError:
    """The error of a reader for a file that cannot be opened."""
    name = str(error.filename)
    return RuntimeError(f"{reader}: Cannot open: {name}{from_where(name)}: {error.strerror or error}")


def inside(folder: str, name: Any) -> str:
    """A file that an index or a table names, within its folder. ValueError for a name that leads elsewhere."""
    if not isinstance(name, str) or os.path.isabs(name) or "://" in name or ".." in name.replace("\\", "/").split("/"):
        raise ValueError(f"expected the name of a file beside the index or table, got {name!r:.80}")
    return os.path.join(folder, name)
