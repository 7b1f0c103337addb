"""`atomic_file`: a file that is there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from typing import BinaryIO

__all__ = ["SUFFIX", "atomic_file", "naming"]

SUFFIX = ".tmp"  # of a temporary file; one that remains is from a process that was killed


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Makes errors of a write name the final file, not the temporary one or none (as the error of a full disk)."""
    try:
        yield
    except OSError as error:
        filename = error.filename
        if error.errno is not None and (filename is None or (isinstance(filename, str) and filename.endswith(SUFFIX))):
            error.filename = os.fspath(path)
            del error.filename2  # None would be a part of the message
        raise


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str], *, private: bool = False, durable: bool = False) -> Iterator[BinaryIO]:
    """A file to write bytes to, which is moved to `path` when the block ends. Readers of `path` see the old content or all of
    the new, also when several processes write at once; after an exception they see the old content.

    Args:
        path: where the file will be. An existing file is replaced; a device or a pipe is written to.
        private: only this user may read it; else who the process's umask lets.
        durable: it lasts through a loss of power.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a"
    >>> with atomic_file(path) as file:
    ...     _ = file.write(b"whole")
    ...     print(path.exists())
    False
    >>> path.read_bytes()
    b'whole'
    """
    if _is_device(path):
        with naming(path), open(path, "wb") as file:
            yield file
        return
    beside = f"{os.fspath(path)}.{secrets.token_hex(6)}{SUFFIX}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with naming(path):
        handle = os.open(beside, flags, 0o600 if private else 0o666)
    try:
        with naming(path):
            with os.fdopen(handle, "wb") as file:
                yield file
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def _is_device(path: str | os.PathLike[str]) -> bool:
    """Whether a device, a pipe or a socket is there: root could put a file in place of /dev/null."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
