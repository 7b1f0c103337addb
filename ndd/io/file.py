"""`ndd.io.file.read`: whole files as byte tensors."""

from __future__ import annotations

import errno
import os
import re
import stat
from typing import Any
from urllib.parse import unquote

import numpy as np

from ndd._cpu import files as compiled
from ndd._execution.errors import is_no_fault_of_data, is_shortage
from ndd._operator import bad_sample, operator, output
from ndd._tensor import Device, Packed, Spec, Store
from ndd._tensor.dtype import int8, uint8
from ndd._tensor.memory import host_empty
from ndd.io.object_store import is_remote, read_objects

_ALIGNMENT = 64
_OPENING = 1 << 16  # about as many bytes are copied in the time that opening a file takes
_OPEN_AT_ONCE = 256  # files, of the 1024 that a process may usually have open
_LOCAL = "file://"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PATTERN = re.compile(r"[*?]|\{.+\}")


@operator(paths=True)
def read(filepaths, /, *, dont_use_mmap: bool = False, use_o_direct: bool = False):
    """Reads whole files.

    Args:
        filepaths: a path (str, pathlib.Path) for a Tensor; a list of paths for a Batch; or, as in DALI, the characters of a
            path for each sample, 1-D u8 or i8. Paths may be `file://` URLs and URLs of objects (`s3://`, `gs://`, `az://`,
            `http(s)://`, see `ndd.io.object_store`), which are requested together. A zero byte ends a path.
        dont_use_mmap: accepted, without effect: files are always read, with one copy.
        use_o_direct: accepted, without effect.

    Returns the bytes, u8 `[size]`; `source_info` of each sample is its path. Unlike in DALI, an empty file has 0 bytes.

    Raises RuntimeError, with sample and file, for files that cannot be read and for other schemes (ftp://); OSError if the
    process has too many open files.

    >>> import ndd, tempfile
    >>> with tempfile.NamedTemporaryFile() as f:
    ...     f.write(b"abc") and f.flush()
    ...     print(ndd.io.file.read(f.name).torch())
    tensor([97, 98, 99], dtype=torch.uint8)
    """
    return _bytes_of(filepaths)


def _bytes_of(paths: Spec) -> Spec:
    if paths.dtype not in (uint8, int8) or paths.ndim not in (0, 1, None):
        raise RuntimeError(f"expected paths as characters, 1-D uint8 or int8, got {paths.ndim}-D {paths.dtype}")
    return output(uint8, 1)


# A batch: files are opened and read by threads that wait, many at a time.
@read.batch
def _(call: Any, filepaths: Any, *, dont_use_mmap: bool, use_o_direct: bool) -> Store:
    return _read(call, filepaths, must_exist=True)


@operator(paths=True, register=False)
def read_if_there(filepaths, /):
    """Does the same as `read`, but a file that cannot be read has 0 bytes, which a decoder handles."""
    return _bytes_of(filepaths)


# A batch: files are opened and read by threads that wait, many at a time.
@read_if_there.batch
def _(call: Any, filepaths: Any) -> Store:
    return _read(call, filepaths, must_exist=False)


def _read(call: Any, filepaths: Any, must_exist: bool) -> Store:
    names = [_name(characters) for characters in filepaths.arrays]
    if len(names) > 1 and compiled.AVAILABLE and "://" not in "\0".join(names):
        pieces = [_read_together(call, names[k : k + _OPEN_AT_ONCE]) for k in range(0, len(names), _OPEN_AT_ONCE)]
        if all(pieces):
            content = Packed.joined(pieces)  # type: ignore[arg-type]
            return Store(uint8, None, Device.CPU, content.shapes, packed=content, source_info=names)
    parts: list[Any] = [None] * len(names)

    def read_into(i: int) -> None:
        parts[i] = contents(names[i])

    urls = [i for i, name in enumerate(names) if is_remote(name)]
    errors: dict[int, BaseException] = {}
    for i, content in zip(urls, read_objects([names[i] for i in urls]) if urls else (), strict=True):
        if isinstance(content, OSError):
            spared = not must_exist and is_no_fault_of_data(content)  # such an error must not drop the sample
            errors[i] = (
                content if spared else RuntimeError(f"{names[i]!r} cannot be read: {content.strerror or content}")
            )
        elif isinstance(content, BaseException):
            raise content
        parts[i] = content
    local = [i for i in range(len(names)) if not is_remote(names[i])]
    errors |= {local[k]: error for k, error in call.spread(lambda k: read_into(local[k]), len(local)).items()}
    for i in sorted(errors):
        if not isinstance(errors[i], RuntimeError):  # such as MemoryError, which does not concern the file
            errors[i].sample = i  # type: ignore[attr-defined]
            raise errors[i]
    if errors and must_exist:
        first = min(errors)
        raise bad_sample(first, str(errors[first]))
    for i in errors:
        parts[i] = np.empty(0, np.uint8)
    return Store(uint8, None, Device.CPU, [p.shape for p in parts], parts=parts, source_info=names)


def _read_together(call: Any, names: list[str]) -> Packed | None:
    """Local files as places in one buffer; None if one of them cannot be read. Python would take 20 us for each file, while
    other threads wait. Here each thread opens, and then reads, one file after the other in one call."""
    encoded = [os.fsencode(name) for name in names]
    lengths = np.array([len(name) + 1 for name in encoded], np.int64)
    paths, starts = np.frombuffer(b"\0".join(encoded) + b"\0", np.uint8), np.add.accumulate(lengths) - lengths
    n, flags, files = len(names), compiled.OPEN_FLAGS, _Handles(len(names))
    handles, sizes = files.numbers, np.full(n, -1, np.int64)
    call.parallel_for(compiled.open_loop, (paths, starts, flags, handles, sizes), n, n * _OPENING, files)
    if (handles < 0).any():
        files.close()
        return None
    room = (sizes + (_ALIGNMENT - 1)) & -_ALIGNMENT
    places, order = np.add.accumulate(room) - room, np.argsort(-sizes, kind="stable")
    buffer, done = host_empty(int(room.sum()), np.uint8), np.full(n, -1, np.int64)
    call.parallel_for(
        compiled.read_loop, (order, handles, sizes, places, buffer, done),
        n, n * _OPENING + 2 * len(buffer), files,
    )  # fmt: skip
    return Packed.of(buffer, places, sizes) if (done == sizes).all() else None


class _Handles:
    """The handles of open files, int32; -1 for others. Files that are still open are closed when the last thread has finished
    with them, even if Ctrl-C ends the call."""

    def __init__(self, n: int):
        self.numbers = np.full(n, -1, np.int32)

    def close(self) -> None:
        compiled.close_files(self.numbers)
        self.numbers[:] = -1

    def __del__(self) -> None:
        if compiled is not None and (self.numbers >= 0).any():  # None while the interpreter shuts down
            self.close()


def _name(characters: np.ndarray) -> str:
    return os.fsdecode(np.ascontiguousarray(characters).tobytes().split(b"\0", 1)[0])


def contents(path: str) -> np.ndarray:
    """The bytes of a file; RuntimeError that names it if it cannot be read. OSError if no file can be opened."""
    scheme, rest, _ = path.partition("://")
    name = local_name(path)
    if rest and scheme.isalnum() and scheme != "file":
        raise RuntimeError(
            f"{path!r}: expected a path, file:// or a URL of s3, gs, az, http or https, got the scheme {scheme}://"
        )
    try:
        kind = os.stat(name).st_mode
        # A pipe or a device may never end; a folder has its own error.
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
            raise OSError(errno.EINVAL, "Not a regular file", name)
        return np.fromfile(name, np.uint8)
    except OSError as error:
        if is_shortage(error):
            raise
        raise RuntimeError(f"{path!r} cannot be read{from_where(name)}: {error.strerror or error}") from None


def local_name(path: str) -> str:
    """The path in a `file://` URL; any other path unchanged. (`%20` means a space, unless a file has exactly that name, because
    DALI does not decode it.)"""
    if not path.startswith(_LOCAL):
        return path
    name = path.removeprefix(_LOCAL)
    return name if "%" not in name or os.path.lexists(name) else unquote(name)


def from_where(path: str) -> str:
    """The end of an error about a missing file: the working directory, if the path is relative to it, and a hint if the path
    looks like a URL, a home folder or a pattern."""
    if is_remote(path):
        return ""
    if _SCHEME.match(path):
        return " (a path, file:// or a URL of s3, gs, az, http or https was expected)"
    where = "" if os.path.isabs(path) else f" from the working directory {os.getcwd()}"
    if path.startswith("~"):
        where += " (~ is a name like any other: see os.path.expanduser)"
    elif _PATTERN.search(path):
        where += " (a pattern is a name like any other: see glob.glob, or name the files in a list)"
    return where
