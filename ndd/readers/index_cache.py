"""`cached`: the index of a container, kept on disk from run to run.

An index is a dict of NumPy arrays (offsets, sizes, names as bytes). It is kept for one state of one container: its
path or URL, size and time of change (or ETag), the kind of index and the version of its format. Files are written aside
and moved into place, so a reader sees a whole file or none; a damaged one is made again (`.npz` has a checksum for each
array, and nothing in it is ever unpickled). Where nothing can be written the index is built at every run.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ndd.atomic_file import atomic_file
from ndd.io.file import from_where
from ndd.io.object_store import is_remote
from ndd.readers.file_reading import status

Index = dict[str, np.ndarray]

_FORMAT = 2  # of the files written here
_LEAST = 1 << 20  # bytes: a smaller container is indexed in less time than a file takes to find and check
LEAST_TEXT = 1 << 16  # the same of a list of records as text, whose lines take 4 us each and more


def cached(container: str, kind: str, version: int, build: Callable[[], Index], least: int = _LEAST) -> Index:
    """`build()`, or what it gave in an earlier run for this very state of the container.

    Args:
        container: the path; OSError if there is no such file.
        kind: what builds the index, such as "webdataset"; with the options that change it, if there are any.
        version: of what `build` gives; raise it with every change, and old files are built anew.
        build: makes the index.
        least: containers below this size in bytes are never cached.

    The folder is `$NDD_CACHE_DIR`, else `ndd` in `$XDG_CACHE_HOME` or `~/.cache`, else one of this user in the
    system's folder for temporary files. `NDD_CACHE_DIR=` (empty) turns the cache off.
    """
    before = _state(container, kind, version)
    if int(before["size"]) < least:
        return build()
    name = hashlib.sha256(f"{kind}\0{before['path']}".encode(errors="surrogateescape")).hexdigest()[:32] + ".npz"
    folders = list(_folders())
    for folder in folders:
        found = _loaded(folder / name, before)
        if found is not None:
            return found
    index = build()
    if _state(container, kind, version) == before:  # else it changed meanwhile, and nobody knows what was indexed
        any(_saved(folder / name, before, index) for folder in folders)
    return index


def listed_or_scanned(
    reader: str,
    kind: str,
    container: str,
    index: str | None,
    scan: Callable[[str], Index],
    listed: Callable[[str, str], Index],
) -> Index:
    """The index of a container, kept: what its index file says, `listed(reader, index)`, or without one what is found
    in the container itself, `scan(container)`. RuntimeError for files that cannot be read or are none of that kind."""
    try:
        if index is None:
            return cached(container, kind, 1, lambda: scan(container))
        return cached(index, f"{kind} index", 1, lambda: listed(reader, index), LEAST_TEXT)
    except OSError as error:
        raise RuntimeError(
            f"{reader}: Cannot open: {error.filename}{from_where(str(error.filename))}: {error.strerror}"
        ) from error
    except ValueError as error:
        raise RuntimeError(f"{reader}: {error}") from error


def _state(container: str, kind: str, version: int) -> dict[str, int | str]:
    found = status(container)
    return {
        "format": _FORMAT,
        "kind": kind,
        "version": version,
        "path": _name_of(container),
        "size": found.size,
        "state": found.version,
    }


def _name_of(container: str) -> str:
    """What tells a container from others. Of a URL, which may hold secrets, no more than a hash is kept."""
    if is_remote(container):
        return hashlib.sha256(container.encode(errors="surrogateescape")).hexdigest()
    return os.path.realpath(container)


def _folders() -> Iterator[Path]:
    """Where an index may be, the best place first."""
    chosen = os.environ.get("NDD_CACHE_DIR")
    if chosen is not None:
        if chosen:
            yield Path(chosen)
        return
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if os.path.isabs(home):
        yield Path(home) / "ndd"
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    shared = Path(tempfile.gettempdir()) / f"ndd-{user}"
    if not shared.exists() or _own(shared):
        yield shared


def _own(folder: Path) -> bool:
    """Whether a folder in a place where everybody may write is ours alone."""
    status = folder.lstat()
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)


def _loaded(file: Path, state: dict[str, int | str]) -> Index | None:
    """The index in a file, if the file is whole and of this state."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            if json.loads(bytes(arrays["_state"])) != state:
                return None
            return {name: arrays[name] for name in arrays.files if name != "_state"}
    except Exception:  # no file, or whatever a damaged one makes `zipfile` and NumPy say: the index is built anew
        return None


def _saved(file: Path, state: dict[str, int | str], index: Index) -> bool:
    """Whether the index could be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with atomic_file(file, private=True) as out:
            np.savez(out, allow_pickle=False, _state=np.frombuffer(json.dumps(state).encode(), np.uint8), **index)
        return True
    except OSError:
        return False
