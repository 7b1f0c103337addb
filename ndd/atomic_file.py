"""`atomic_file`: a file that is there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from typing import BinaryIO

__all__ = ["SUFFIX", "atomic_file", "naming"]

SUFFIX = ".tmp"  # of a file under way; one that stays is of a process that died


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """What the system says of a write names the file, as a full disk does not; and that file, not the one under way."""
    try:
        yield
    except OSError as error:
        filename = error.filename
        if error.errno is not None and (filename is None or (isinstance(filename, str) and filename.endswith(SUFFIX))):
            error.filename, error.filename2 = os.fspath(path), None
        raise


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str], *, private: bool = False, durable: bool = False) -> Iterator[BinaryIO]:
    """A file to write bytes to, which takes its place at `path` when the block ends. Who reads sees what was there before
    or all of the new, also when several processes write at once; after an exception it is what was there before.

    Args:
        path: where the file will be. What is there is replaced.
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
