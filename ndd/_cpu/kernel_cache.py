"""Compiled kernels on disk: one file for each kernel and types of arguments.

Numba's own cache keeps an index beside its files; a damaged one raises at every call until somebody deletes it, and two
processes that write at the same time can exchange two kernels' code. Here the name of a file says all that its content
follows from, so there is nothing to keep in step: a file is read if it is there and whole, else the kernel is compiled
anew, and a new file takes the place of the old one in one step.

Files are read from all of these folders, and written to the first one that can be:

1. `kernels` in `NDD_CACHE_DIR`, else `ndd` in `NUMBA_CACHE_DIR`, if one of these is set (then to no other);
2. `__pycache__` of this package;
3. the user's cache folder (`XDG_CACHE_HOME`, `~/.cache`, ...);
4. a folder of this user's among the temporary files.

Where none can be written, kernels are compiled once a process, and one warning says so.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import stat
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ndd._execution.compiling import chosen_folder
from ndd.atomic_file import atomic_file

_DIGEST = 32  # bytes of SHA-256 at the head of a file: what a full disk or a crash left of it is not read
_OLD_SECONDS = 7 * 86400.0  # a kernel of another source text is deleted when it has not been written for a week


class KernelCache:
    """What a numba dispatcher asks for compiled code: the interface of `numba.core.caching`.

    Args:
        name: of the kernel: module and qualified name.
        text: what the code follows from beside the types of its arguments.
        reduced: what is kept of a compilation result.
        rebuild: makes one of that, for a target context.
    """

    def __init__(self, name: str, text: bytes, reduced: Any, rebuild: Any):
        self._name = name
        self._source = hashlib.sha256(text).hexdigest()[:16]
        self._reduce, self._rebuild = reduced, rebuild

    @property
    def cache_path(self) -> str | None:
        """The folder that kernels are written to."""
        folder = writable_folder()
        return None if folder is None else str(folder)

    def kept(self, sig: Any, target_context: Any) -> bool:
        """Whether there is a file for a signature."""
        name = self._file_name(sig, target_context.codegen())
        return any((folder / name).exists() for folder in _folders())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel for a signature, or None."""
        name = self._file_name(sig, target_context.codegen())
        for folder in _folders():
            try:
                data = (folder / name).read_bytes()
                if len(data) > _DIGEST and hashlib.sha256(data[_DIGEST:]).digest() == data[:_DIGEST]:
                    return self._rebuild(target_context, *pickle.loads(data[_DIGEST:]))
            except Exception:  # not there, not to be read, or not what this numba can use: compiled anew
                continue
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Writes a compiled kernel. What goes wrong here harms nobody: the kernel itself is there."""
        if data.library.has_dynamic_globals:
            return
        folder = writable_folder()
        if folder is None:
            return
        try:
            from numba.core.serialize import dumps

            content = dumps(self._reduce(data))
            with atomic_file(folder / self._file_name(sig, data.codegen)) as file:
                file.write(hashlib.sha256(content).digest() + content)
            self._delete_old(folder)
        except Exception as error:
            _warn(f"could not be written to {folder} ({error})")

    def _file_name(self, sig: Any, codegen: Any) -> str:
        key = hashlib.sha256(repr((sig, _machine(codegen))).encode()).hexdigest()[:24]
        return f"{self._name}.{self._source}.{key}.kernel"

    def _delete_old(self, folder: Path) -> None:
        for path in folder.glob(f"{self._name}.*.kernel"):
            if f".{self._source}." not in path.name and time.time() - path.stat().st_mtime > _OLD_SECONDS:
                path.unlink(missing_ok=True)

    def enable(self) -> None:
        """Part of the interface."""

    def disable(self) -> None:
        """Part of the interface."""

    def flush(self) -> None:
        """Part of the interface."""


@functools.cache
def _machine(codegen: Any) -> Any:
    """What machine code is made for."""
    return codegen.magic_tuple()


@functools.cache
def _folders() -> list[Path]:
    """Where kernels may lie."""
    given = _given_folder()
    if given is not None:
        return [given]
    return [Path(__file__).parent.parent / "__pycache__", *_user_folder(), *filter(_is_ours, [_temporary_folder()])]


def _given_folder() -> Path | None:
    numba = os.environ.get("NUMBA_CACHE_DIR")
    return chosen_folder("kernels") or (Path(numba) / "ndd" if numba else None)


def _user_folder() -> list[Path]:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [] if not base or base.startswith("~") else [Path(base) / "ndd" / "kernels"]


def _temporary_folder() -> Path:
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"ndd-kernels-{user}"


def _is_ours(folder: Path) -> bool:
    """Whether nobody else can write there: what lies there is run."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    own = not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)
    return own and stat.S_ISDIR(found.st_mode)


@functools.cache
def writable_folder() -> Path | None:
    """The first folder that can be written to; None, and a warning, if there is none."""
    temporary = [] if _given_folder() is not None else [_temporary_folder()]
    for folder in [*_folders(), *temporary]:
        try:
            folder.mkdir(mode=0o700 if folder in temporary else 0o777, parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        if folder not in temporary or _is_ours(folder):
            return folder
    _warn("cannot be kept: no folder can be written to")
    return None


_warned: list[str] = []


def _warn(what: str) -> None:
    """Once a process."""
    if _warned:
        return
    _warned.append(what)
    warnings.warn(
        f"Compiled kernels {what}. Each process compiles what it uses, which takes seconds at the first calls; set "
        "NDD_CACHE_DIR to a folder that can be written.",
        RuntimeWarning,
        stacklevel=2,
    )


@functools.cache
def source_digest(path: str) -> bytes:
    """What tells the text of a file from another."""
    try:
        text = Path(path).read_bytes()
    except NotADirectoryError:  # the package lies in a zip file
        text = __loader__.get_data(path)  # type: ignore[union-attr]
    return hashlib.sha256(text).digest()


def described(value: Any) -> bytes:
    """What tells a constant that a kernel uses from another: kernels have it compiled in."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}".encode() + value.tobytes()
    return repr(value).encode() if isinstance(value, bool | int | float | str | np.generic | tuple) else b""
