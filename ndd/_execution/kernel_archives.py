"""Kernels that come with the package: a wheel has a zip file for each level of CPUs and each generation of GPUs.

`python -m ndd compile --archives ndd/_kernels` makes them. They are in the package's folder `_kernels`, which nobody writes
to, and are named after their target: `x86-64-v3.zip`, `sm_90.zip`, `compute_120.zip`. A file of the archive holds the code
of a kernel, in the form of a cache file; its name contains everything that the code depends on. `archive.json` has

    target     the processor that the code is for: of a CPU "triple", "cpu" and "features", of a GPU its "architecture"
    libraries  versions of the libraries that compiled it
"""

from __future__ import annotations

import functools
import io
import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ndd._execution.cache_folders import is_safe, read_own
from ndd.atomic_file import atomic_file

_HEADER = "archive.json"
_DATE = (1980, 1, 1, 0, 0, 0)  # the same files give the same archive
_SUFFIX = ".zip"
_ABSENT = "absent.txt"  # of a wheel without kernels: why there are none
folder = Path(__file__).parent.parent / "_kernels"
_refused: dict[str, None] = {}


class KernelArchive:
    """The contents of an archive.

    Attributes:
        header: see above.
    """

    def __init__(self, content: bytes):
        self._files = zipfile.ZipFile(io.BytesIO(content))
        self._names = frozenset(self._files.namelist())
        self.header: dict[str, Any] = json.loads(self._files.read(_HEADER))
        for part in ("target", "libraries"):
            if not isinstance(self.header[part], dict):
                raise ValueError(f"{_HEADER} has no {part}")

    def read(self, name: str) -> bytes | None:
        """The contents of the file of this name; None if it is missing or damaged."""
        try:
            return self._files.read(name) if name in self._names else None
        except Exception:  # what damage does: zlib's errors, encryption that nobody asked for, ...
            return None


@functools.cache
def archive(target: str) -> KernelArchive | None:
    """The kernels for a target; None where the package has none."""
    path = folder / f"{target}{_SUFFIX}"
    if not path.exists() or not is_safe(folder, "kernels of the package"):
        return None
    try:
        return KernelArchive(read_own(path))
    except Exception as error:
        refuse(f"{path} cannot be read ({error})")
        return None


@functools.cache
def targets() -> list[str]:
    """The targets that have archives."""
    return sorted(path.stem for path in folder.glob(f"*{_SUFFIX}"))


def why_none() -> str:
    """Why this wheel has no kernels; "" if it has some, and in a checkout."""
    try:
        return (folder / _ABSENT).read_text(encoding="utf-8")
    except OSError:
        return ""


def write_archive(folder: Path, target: str, header: dict[str, Any], files: Iterable[tuple[str, bytes]]) -> int:
    """Makes the archive for a target; returns its size in bytes."""
    path = folder / f"{target}{_SUFFIX}"
    texts = [(_HEADER, json.dumps(header, sort_keys=True).encode()), *sorted(files)]
    with atomic_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as written:
        for name, content in texts:
            written.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED, 9)
    return path.stat().st_size


def refuse(reason: str) -> None:
    """Notes why packaged kernels are not used."""
    _refused[reason] = None


def refused() -> str:
    """The reasons why packaged kernels are not used, for the notice of compiling; "" if there are none."""
    return "; ".join(_refused)
