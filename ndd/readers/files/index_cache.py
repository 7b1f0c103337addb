"""`cached`: the index of a container, cached on disk between runs.

An index is a dict of NumPy arrays (offsets, sizes, names as bytes). A cached index belongs to one state of one container: its
path or URL, size and modification time (or ETag), the kind of index and the version of its format. Files are written under
another name and then renamed, so that a reader sees a complete file or none.

A cached file is used only if this user or root wrote it, its digest is right (nothing in it is unpickled), and it can be
the index of this container: each kind checks its arrays against the container's size and, if the container has one, its
count of records. Otherwise the index is built again. If no file can be written, every run builds the index.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ndd._execution.cache_folders import (
    VARIABLE,
    chosen_folder,
    folder_to_write,
    folders_to_read,
    read_own,
    temporary_folder,
    user_folder,
)
from ndd.atomic_file import atomic_file
from ndd.io.file import from_where
from ndd.io.object_store import Status, is_remote
from ndd.readers.files.file_reading import status

Index = dict[str, np.ndarray]
Check = Callable[[Index, int], bool]
"""Whether a value can be the index of a container of this many bytes. An exception means that it cannot."""

_FORMAT = 3  # the version of the files written here
_INDEXES = "indexes"
_LEAST = 1 << 20  # bytes: a smaller container is indexed in less time than a file takes to find and check
LEAST_TEXT = 1 << 16  # the same for a list of records as text, whose lines take at least 4 us each


def cached(
    container: str,
    kind: str,
    version: int,
    build: Callable[[], Index],
    least: int = _LEAST,
    check: Check = lambda index, size: True,
    statuses: dict[str, Status] | None = None,
) -> Index:
    """`build()`, or its result in an earlier run for the same state of the container.

    Args:
        container: the path; OSError if there is no such file.
        kind: the builder of the index, such as "webdataset", with the options that change the index.
        version: the version of the result of `build`. Raise it with every change: old files are then built again.
        build: makes the index.
        least: smaller containers (in bytes) are never cached.
        check: whether the arrays can be the index of this container.
        statuses: gets the status of the container, so that the caller need not ask for it again.

    The folder is `$NDD_CACHE_DIR`, else `ndd` in `$XDG_CACHE_HOME` or `~/.cache`, else one of this user in the
    system's folder for temporary files. `NDD_CACHE_DIR=` (empty) turns the cache off.
    """
    file_status = status(container)
    before = _state(container, kind, version, file_status)
    if statuses is not None:
        statuses[container] = file_status
    size = int(before["size"])
    if size < least or os.environ.get(VARIABLE) == "":
        return build()
    name = hashlib.sha256(f"{kind}\0{before['path']}".encode(errors="surrogateescape")).hexdigest()[:32] + ".npz"
    chosen, others = chosen_folder(), _other_folders()
    for folder in folders_to_read(chosen, others, _INDEXES):
        known = _loaded(folder / name, before)
        if known is not None and _fits(check, known, size):
            return known
    index = build()
    if _state(container, kind, version, status(container)) == before:  # otherwise it changed while it was indexed
        folder = folder_to_write(chosen, others, _INDEXES)
        if folder is not None:
            _save(folder / name, before, index)
    return index


def _fits(check: Check, index: Index, size: int) -> bool:
    try:
        return check(index, size)
    except Exception:  # any error of NumPy about arrays that are not an index
        return False


def has_columns(index: Index, **columns: str) -> bool:
    """Whether an index holds exactly these arrays, each of the given element type and extents. An extent is a number, or a
    name that stands for the same number in all arrays: `has_columns(index, offsets="int64 n", boxes="float32 m 4")`."""
    extents: dict[str, int] = {}
    if index.keys() != columns.keys():
        return False
    for name, column in columns.items():
        kind, *axes = column.split()
        array = index[name]
        if array.dtype != kind or array.ndim != len(axes):
            return False
        for axis, extent in zip(axes, array.shape, strict=True):
            if extent != (int(axis) if axis.isdecimal() else extents.setdefault(axis, extent)):
                return False
    return True


def all_within(values: np.ndarray, least: int, most: int) -> bool:
    """Whether all values are from `least` to `most`."""
    return not values.size or bool(values.min() >= least and values.max() <= most)


def all_inside(offsets: np.ndarray, sizes: np.ndarray, total: int) -> bool:
    """Whether all ranges lie within `total` bytes; safe for numbers of any size."""
    return all_within(sizes, 0, total) and all_within(offsets, 0, total) and bool((offsets <= total - sizes).all())


def listed_or_scanned(
    reader: str,
    kind: str,
    container: str,
    index: str | None,
    scan: Callable[[str], Index],
    listed: Callable[[str, str], Index],
    check: Check,
    check_listed: Check,
    statuses: dict[str, Status] | None = None,
) -> Index:
    """The cached index of a container: `listed(reader, index)` from its index file, or `scan(container)` if there is none.
    RuntimeError for files that cannot be read or are of another kind."""
    try:
        if index is None:
            return cached(container, kind, 1, lambda: scan(container), check=check, statuses=statuses)
        return cached(index, f"{kind} index", 1, lambda: listed(reader, index), LEAST_TEXT, check_listed)
    except OSError as error:
        raise RuntimeError(
            f"{reader}: Cannot open: {error.filename}{from_where(str(error.filename))}: {error.strerror}"
        ) from error
    except ValueError as error:
        raise RuntimeError(f"{reader}: {error}") from error


def _state(container: str, kind: str, version: int, file_status: Status) -> dict[str, int | str]:
    return {
        "format": _FORMAT,
        "kind": kind,
        "version": version,
        "path": _name_of(container),
        "size": file_status.size,
        "state": file_status.version,
    }


def _name_of(container: str) -> str:
    """The name of a container in the cache. For a URL, which may hold secrets, it is a hash."""
    if is_remote(container):
        return hashlib.sha256(container.encode(errors="surrogateescape")).hexdigest()
    return os.path.realpath(container)


def _other_folders() -> list[Path]:
    """The folders that may hold an index, the best one first."""
    user = user_folder()
    return [*([] if user is None else [user]), temporary_folder("ndd")]


def _digest(index: Index) -> str:
    digest = hashlib.sha256()
    for name, array in index.items():
        digest.update(f"{name} {array.dtype.str} {array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _loaded(file: Path, state: dict[str, int | str]) -> Index | None:
    """The index in a file, if the file is whole and of this state."""
    try:
        with np.load(io.BytesIO(read_own(file)), allow_pickle=False) as arrays:
            if any(
                member.compress_type for member in arrays.zip.infolist()
            ):  # we write no compressed members: they may unpack to any size
                return None
            saved = json.loads(bytes(arrays["_state"]))
            index = {name: arrays[name] for name in arrays.files if name != "_state"}
            return index if saved == {**state, "digest": _digest(index)} else None
    except Exception:  # no file, or any error of `zipfile` and NumPy about a damaged one: the index is built again
        return None


def _save(file: Path, state: dict[str, int | str], index: Index) -> None:
    """Writes an index if the disk has room."""
    text = json.dumps({**state, "digest": _digest(index)}).encode()
    try:
        with atomic_file(file, private=True) as out:
            arrays: dict[str, Any] = {"_state": np.frombuffer(text, np.uint8), **index}
            np.savez(out, **arrays)  # NumPy before 2.3 stores any other argument that has a name as an array
    except OSError:  # a full disk: the next run builds it again
        pass
