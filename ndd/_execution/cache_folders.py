"""The folders in which compiled kernels and indexes are cached between runs, and the rules for trusting their files.

`NDD_CACHE_DIR` moves all of them. If it cannot be used, a warning names it and the reason, and other folders are used. Compiled
code is executed, and an index tells which bytes are a record. So a file is read only if nobody but this user, root and the
owner of this package (whose code runs here in any case) can have written it. A folder that others can write to is not used; a
warning names it. Windows has no such permissions; there the user's own folder protects the files.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import sys
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

VARIABLE = "NDD_CACHE_DIR"
_posix = hasattr(os, "geteuid")
_warned: set[Path] = set()


def chosen_folder(kind: str = "") -> Path | None:
    """`$NDD_CACHE_DIR/kind`; None where it is unset or empty."""
    value = os.environ.get(VARIABLE)
    return _absolute(value) / kind if value else None


@functools.cache
def _absolute(value: str) -> Path:
    """A relative path is resolved at its first use, so that a later os.chdir() does not move the cache."""
    return Path(os.path.abspath(os.path.expanduser(value)))


def user_folder() -> Path | None:
    """`ndd` in the system's cache folder for this user; None for a user who has none."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "ndd" if base and os.path.isabs(base) else None


def temporary_folder(name: str) -> Path:
    """This user's folder among the temporary files of all users."""
    user = os.geteuid() if _posix else os.environ.get("USERNAME", "user")
    return Path(tempfile.gettempdir()) / f"{name}-{user}"


def read_own(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file that no other user can have written. Raises OSError if it is missing or somebody else can write to
    it."""

    def without_waiting(name: str, flags: int) -> int:  # if the file is a pipe, do not wait for its writer
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))

    with open(path, "rb", opener=without_waiting) as file:
        status = os.fstat(file.fileno())
        if who := others_who_write(status):
            raise PermissionError(f"{os.fspath(path)}: {who}")
        return file.read()


def close_to_others(file: BinaryIO) -> None:
    """Lets only this user write to an open file, even where the umask lets a group write."""
    if _posix:
        os.fchmod(file.fileno(), os.fstat(file.fileno()).st_mode & 0o755)


def others_who_write(status: os.stat_result) -> str:
    """Who besides the trusted users can change a file, or exchange files of a folder; "" if nobody can."""
    if not _posix:
        return ""
    if status.st_uid not in (0, os.geteuid(), _owner_of_package()):
        return f"it belongs to another user (number {status.st_uid})"
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return ""  # as in /tmp: others can add files, which we do not read, and cannot touch ours
    if status.st_mode & 0o002:
        return "every user can write to it"
    if status.st_mode & 0o020 and not _is_private(status.st_gid):
        return f"its group (number {status.st_gid}) can write to it"
    return ""


@functools.cache
def _owner_of_package() -> int:
    try:
        return os.stat(__file__).st_uid
    except OSError:  # in a zip file
        return 0


@functools.cache
def _is_private(gid: int) -> bool:
    """Whether a group is a user's private one. Where users have such groups, new files are writable by the group."""
    # Windows has neither.
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return gid == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


def is_safe(folder: Path, things: str) -> bool:
    """Whether a folder may be used for `things` such as "compiled kernels"; warns if it may not. A missing folder may be
    used."""
    who = _others_in(folder)
    if who:
        _warn(
            folder,
            f"{folder} is not used for {things}: {who}. Give it to this user and let nobody else write to it "
            f"(`chmod go-w`), or set {VARIABLE} to another folder.",
        )
    return not who


def _others_in(folder: Path) -> str:
    try:
        itself, target, above = folder.lstat(), folder.stat(), folder.parent.stat()
    except OSError:
        return ""
    if _posix and above.st_mode & 0o002 and not above.st_mode & stat.S_ISVTX:
        return f"every user can write to {folder.parent}"  # and put another folder in its place
    if stat.S_ISLNK(itself.st_mode) and _posix and itself.st_uid not in (0, os.geteuid()):
        return "it is another user's link"
    return others_who_write(target)


def unwritable(folder: Path, make: bool = True) -> str:
    """Why nothing can be stored in a folder; "" if something can. `make`: make the folder if it is missing."""
    missing = [place for place in (folder, *folder.parents) if not os.path.lexists(place)]
    place = missing[-1].parent if missing else folder
    try:
        if make:
            mode = 0o700 if folder.parent == Path(tempfile.gettempdir()) else 0o755
            for place in reversed(missing):
                place.mkdir(mode, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            folder.stat()  # a name that the system refuses, or that this user cannot reach
        if who := _others_in(folder):
            return who
        tempfile.TemporaryFile(dir=place).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def folders_to_read(chosen: Path | None, others: Iterable[Path], things: str) -> list[Path]:
    """The folders to look for files in: only `chosen`, if files can be stored there."""
    if chosen is not None and not unwritable(chosen, make=False):
        return [chosen]
    folders = list(others) if chosen is None else [chosen, *others]
    return [folder for folder in folders if is_safe(folder, things)]


def folder_to_write(chosen: Path | None, others: Iterable[Path], things: str) -> Path | None:
    """The folder to store files in: the first usable one, or None. A warning says why it is not the user's choice."""
    problem = "" if chosen is None else unwritable(chosen)
    if chosen is not None and not problem:
        return chosen
    instead = next((folder for folder in others if not unwritable(folder)), None)
    if chosen is not None:
        where = "not kept" if instead is None else f"kept in {instead}"
        _warn(chosen, f"{VARIABLE}: {chosen} cannot be used ({problem}), so {things} are {where}.")
    return instead


def _warn(folder: Path, text: str) -> None:
    """Warns once for each folder."""
    if folder not in _warned:
        _warned.add(folder)
        warnings.warn(text, RuntimeWarning, stacklevel=3)
