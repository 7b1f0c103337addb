"""Compiled kernels on disk: one file for each kernel and types of arguments, in the format of `kernel_file.py`.

Numba's own cache keeps an index beside its files; a damaged one raises at every call until somebody deletes it, and two
processes that write at the same time can exchange two kernels' code. Here the name of a file is a digest of everything that its
content depends on, so there is no index. A file is read if it exists, is complete, and no other user can have written it.
Otherwise the kernel is compiled again, and a new file replaces the old one atomically.

A wheel contains kernels for common levels of processors (`kernel_archives.py`), which are searched first. Files are read from
all of these folders, and written to the first writable one:

1. `kernels` in `NDD_CACHE_DIR` (if it can be used, no other);
2. `ndd` in `NUMBA_CACHE_DIR` (if it is set, none of the others);
3. `__pycache__` of this package;
4. the user's cache folder (`XDG_CACHE_HOME`, `~/.cache`, ...);
5. a folder of this user's among the temporary files.

If none is writable, each process compiles its kernels, and warns once.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ndd._compiled import kernel_file
from ndd._compiled.background import background
from ndd._compiled.cpu_levels import LEVELS, runs_on
from ndd._execution.cache_folders import (
    chosen_folder,
    close_to_others,
    folder_to_write,
    folders_to_read,
    read_own,
    temporary_folder,
    unwritable,
    user_folder,
)
from ndd._execution.kernel_archives import KernelArchive, archive, refuse, targets
from ndd._execution.machine_locks import alone
from ndd.atomic_file import atomic_file

INNER = "inner."
"""The prefix of the names of inner kernels, whose code becomes a part of their callers'."""
_KERNELS = "compiled kernels"
_OLD_SECONDS = 7 * 86400.0  # a kernel of another source text is deleted a week after it was written


class KernelCache:
    """The cache of a numba dispatcher, with the interface of `numba.core.caching`.

    Args:
        name: the kernel's module and qualified name.
        text: everything that the code depends on except the types of its arguments.
        parts: returns the content of a file for a compilation result, as `linking.parts` does.
        load: rebuilds a compilation result from it, for a target and types of arguments, as `linking.loaded` does.
        packaged: whether to use the package's kernels.
    """

    def __init__(self, name: str, text: bytes, parts: Any, load: Any, packaged: bool):
        self._name = name
        self._packaged = packaged
        self._inner = name.startswith(INNER)
        self._source = hashlib.sha256(text).hexdigest()[:16]
        self._parts, self._load = parts, load
        self._read: dict[Any, tuple[dict[str, Any], memoryview]] = {}  # by signature, until it is loaded

    @property
    def folder(self) -> Path | None:
        """The folder that kernels are written to."""
        return writable_folder()

    @property
    def cache_path(self) -> str | None:
        """The same, for numba."""
        return None if self.folder is None else str(self.folder)

    def has_file(self, sig: Any, target_context: Any) -> bool:
        """Whether there is code for a signature. A damaged file is none: its kernel takes seconds to compile."""
        kept = self._read.get(sig) or next(self._intact(sig, target_context.codegen()), None)
        if kept is not None:
            self._read[sig] = kept
        return kept is not None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel for a signature, or None."""
        read = self._read.pop(sig, None)
        for header, code in itertools.chain([read] if read else [], self._intact(sig, target_context.codegen())):
            with contextlib.suppress(Exception):  # this numba cannot use it: the kernel is compiled again
                return self._load(target_context, tuple(sig), header, code)
        return None

    def _intact(self, sig: Any, codegen: Any) -> Iterator[tuple[dict[str, Any], memoryview]]:
        """Header and code of each file that holds the kernel whole."""
        for data, target in self._candidates(sig, codegen):
            try:
                header, code = kernel_file.unpacked(data, self._expected(sig, target))
            except Exception:  # a header that is no JSON object, or nested too deep
                continue
            yield header, code

    def _candidates(self, sig: Any, codegen: Any) -> Iterator[tuple[bytes, dict[str, str]]]:
        """The files that may hold the kernel, and the target of each."""
        yield from self._from_package(sig, codegen)
        target = _target(codegen)
        name = self._file_name(sig, target)
        for folder in _folders():
            with contextlib.suppress(OSError):
                yield read_own(folder / name), target
        if unstored := kernel_file.unstored.pop(name, None):
            content, why = unstored
            _warn(why)
            yield content, target

    def _from_package(self, sig: Any, codegen: Any) -> Iterator[tuple[bytes, dict[str, str]]]:
        for files in _archives(codegen) if self._packaged else ():
            target = files.header["target"]
            if data := files.read(self._file_name(sig, target)):
                yield data, target

    def save_overload(self, sig: Any, data: Any) -> None:
        """Part of the interface. The code is already stored."""

    def compiled_once(self, sig: Any, target_context: Any, compile_now: Callable[[], Any]) -> Any:
        """The result of `compile_now`, which is stored, or that of another process on this machine."""
        name = self._file_name(sig, _target(target_context.codegen()))
        with alone(writable_folder(), name, functools.partial(background.elsewhere, self._inner)) as waited:
            overload = self.load_overload(sig, target_context) if waited else None
            if overload is None:
                overload = compile_now()
                self._keep(sig, overload)
            elif overload.entry_point is not None:
                target_context.insert_user_function(overload.entry_point, overload.fndesc, [overload.library])
            return overload

    def _keep(self, sig: Any, data: Any) -> None:
        """Writes a compiled kernel. Errors are not raised, because the kernel itself works."""
        parts = self._parts(data)
        if parts is None or tuple(sig) != tuple(data.signature.args):
            return
        folder = writable_folder()
        if folder is None:
            return
        header, code = parts
        target = _target(data.codegen)
        name = self._file_name(sig, target)
        content = kernel_file.packed({**self._expected(sig, target), **header}, code)
        try:
            with atomic_file(folder / name) as file:
                close_to_others(file)
                file.write(content)
        except OSError as error:
            why = f"could not be written to {folder} ({error.strerror or error})"
            if not self._inner:
                kernel_file.unstored[name] = content, why
            _warn(why)
        else:
            with contextlib.suppress(OSError):  # another process deletes them, too
                self._delete_old(folder)

    def _expected(self, sig: Any, target: dict[str, str]) -> dict[str, Any]:
        """The required header of a file."""
        identity = {"kernel": self._name, "source": self._source, "signature": str(tuple(sig))}
        return {**identity, "target": target, "libraries": libraries()}

    def _file_name(self, sig: Any, target: dict[str, str]) -> str:
        key = hashlib.sha256(repr((sig, json.dumps(target, sort_keys=True))).encode()).hexdigest()[:24]
        return f"{self._name}.{self._source}.{key}{kernel_file.SUFFIX}"

    def _delete_old(self, folder: Path) -> None:
        own = [
            name for name in os.listdir(folder) if name.startswith(f"{self._name}.")
        ]  # `glob` takes ten times as long
        for path in [folder / name for name in own if name.endswith(kernel_file.SUFFIX)]:
            if f".{self._source}." not in path.name and time.time() - path.stat().st_mtime > _OLD_SECONDS:
                path.unlink(missing_ok=True)

    def enable(self) -> None:
        """Part of the interface."""

    def disable(self) -> None:
        """Part of the interface."""

    def flush(self) -> None:
        """Part of the interface."""


@functools.cache
def _target(codegen: Any) -> dict[str, str]:
    """The target of the machine code."""
    return dict(zip(("triple", "cpu", "features"), codegen.magic_tuple(), strict=True))


@functools.cache
def libraries() -> dict[str, str]:
    """Versions of the libraries that compile kernels, and that kernels call. Patch releases count as one version: pip installs
    the newest, and a wheel's kernels run with those that come after it is built."""
    import llvmlite
    import numba

    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    return {
        "numba": _without_patch(numba.__version__),
        "llvmlite": _without_patch(llvmlite.__version__),
        "python": python,
    }


def _without_patch(version: str) -> str:
    """`0.68` for `0.68.1`. Development versions and release candidates stay as they are."""
    released = re.fullmatch(r"(\d+\.\d+)\.\d+", version)
    return version if released is None else released[1]


@functools.cache
def _archives(codegen: Any) -> list[KernelArchive]:
    """The package's kernels that run on this machine, the highest level first."""
    brought = [files for level in reversed(LEVELS) if (files := archive(level)) is not None]
    fitting = [files for files in brought if runs_on(files.header["target"], _target(codegen))]
    for made_by in [files.header["libraries"] for files in brought][:1]:
        for name, version in libraries().items():
            if made_by.get(name) != version:
                refuse(f"the kernels of this package are for {name} {made_by.get(name)}, and here is {version}")
    if brought and not fitting:
        refuse(f"the kernels of this package need a processor of level {next(iter(LEVELS))}")
    return [files for files in fitting if files.header["libraries"] == libraries()]


@functools.cache
def _folders() -> list[Path]:
    """The folders that may hold kernels."""
    return folders_to_read(chosen_folder("kernels"), _other_folders(), _KERNELS)


@functools.cache
def writable_folder() -> Path | None:
    """The first folder that can be written to; None, and a warning, if there is none."""
    folder = folder_to_write(chosen_folder("kernels"), _other_folders(), _KERNELS)
    if folder is None:
        _warn("cannot be kept: no folder can be written to")
    return folder


def folder_if_all_empty() -> Path | None:
    """The folder that kernels will be written to, if neither the package nor any folder has a kernel yet. (A program that ends
    early leaves inner ones.)"""
    chosen = chosen_folder("kernels")
    folders = _other_folders() if chosen is None else [chosen]
    for folder in folders:
        with contextlib.suppress(OSError):
            if any(name.endswith(kernel_file.SUFFIX) and not name.startswith(INNER) for name in os.listdir(folder)):
                return None
    return None if targets() else next((folder for folder in folders if not unwritable(folder)), None)


def _other_folders() -> list[Path]:
    numba = os.environ.get("NUMBA_CACHE_DIR")
    if numba:
        return [Path(numba).absolute() / "ndd"]
    user = user_folder()
    folders = [Path(__file__).parent.parent / "__pycache__", *([] if user is None else [user / "kernels"])]
    return [*folders, temporary_folder("ndd-kernels")]


_warned: list[str] = []


def why_not_kept() -> str:
    """Why kernels that this process compiled are not on disk; "" if they are."""
    return "".join(_warned)


def _warn(message: str) -> None:
    """Warns once in each process."""
    if _warned:
        return
    _warned.append(message)
    warnings.warn(
        f"Compiled kernels {message}. Each process compiles what it uses, which takes seconds at the first calls; set "
        "NDD_CACHE_DIR to a folder that can be written.",
        RuntimeWarning,
        stacklevel=2,
    )


@functools.cache
def source_digest(path: str) -> bytes:
    """A digest of the text of a file."""
    try:
        text = Path(path).read_bytes()
    except NotADirectoryError:  # the package is in a zip file
        text = __loader__.get_data(path)  # type: ignore[union-attr]
    return hashlib.sha256(text).digest()


def described(value: Any) -> bytes:
    """A digest of a constant that a kernel uses, which is compiled into it."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}".encode() + value.tobytes()
    return repr(value).encode() if isinstance(value, bool | int | float | str | np.generic | tuple) else b""
