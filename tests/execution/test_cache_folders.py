"""Whose files are read, and what a `NDD_CACHE_DIR` that cannot be used does."""

from __future__ import annotations

import grp
import os
import pwd
import stat
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

from ndd._execution import cache_folders
from ndd._execution.cache_folders import (
    chosen_folder,
    folder_to_write,
    folders_to_read,
    others_who_write,
    read_own,
    unwritable,
)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has no such modes")
OTHER = 54321  # the number of a user who is not there
ME = os.geteuid()


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch):
    monkeypatch.setattr(cache_folders, "_warned", set())
    yield
    cache_folders._absolute.cache_clear()
    cache_folders._is_private.cache_clear()


def status(mode, uid=ME, gid=OTHER):
    return os.stat_result((mode, 0, 0, 1, uid, gid, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("mode", "uid", "said"),
    [
        (stat.S_IFREG | 0o644, ME, ""),
        (stat.S_IFREG | 0o600, 0, ""),
        (stat.S_IFREG | 0o755, 0, ""),
        (stat.S_IFREG | 0o600, OTHER, "another user"),
        (stat.S_IFREG | 0o646, ME, "every user"),
        (stat.S_IFREG | 0o622, 0, "every user"),
        (stat.S_IFREG | 0o664, ME, "its group"),
        (stat.S_IFREG | stat.S_ISVTX | 0o666, ME, "every user"),
        (stat.S_IFDIR | 0o755, ME, ""),
        (stat.S_IFDIR | 0o775, ME, "its group"),
        (stat.S_IFDIR | 0o777, 0, "every user"),
        (stat.S_IFDIR | 0o700, OTHER, "another user"),
        (stat.S_IFDIR | stat.S_ISVTX | 0o777, 0, ""),  # /tmp
        (stat.S_IFDIR | stat.S_ISVTX | 0o777, OTHER, "another user"),
    ],
)
def test_who_could_have_written(mode, uid, said, monkeypatch):
    monkeypatch.setattr(cache_folders, "_owner_of_package", lambda: 0)
    result = others_who_write(status(mode, uid))
    assert said in result
    assert bool(said) == bool(result)


def test_the_owner_of_the_package_is_trusted(monkeypatch):
    """Its code runs here in any case."""
    monkeypatch.setattr(cache_folders, "_owner_of_package", lambda: OTHER)
    assert others_who_write(status(stat.S_IFREG | 0o644, OTHER)) == ""
    assert others_who_write(status(stat.S_IFREG | 0o644, OTHER + 1))


@pytest.mark.parametrize(
    ("name", "gid", "members", "private"),
    [
        ("ann", 7, [], True),
        ("ann", 7, ["ann"], True),
        ("ann", 7, ["bob"], False),
        ("staff", 7, [], False),
        ("ann", 8, [], False),
    ],
)
def test_a_group_of_one_user_is_no_other(monkeypatch, name, gid, members, private):
    """Where each user has a group of his own, what he makes can be written by it."""
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name="ann", pw_gid=7))
    monkeypatch.setattr(grp, "getgrgid", lambda number: SimpleNamespace(gr_name=name, gr_mem=members))
    cache_folders._is_private.cache_clear()
    assert (others_who_write(status(stat.S_IFDIR | 0o775, gid=gid)) == "") == private


def test_a_user_without_a_name_has_no_group(monkeypatch):
    def unknown(uid):
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    cache_folders._is_private.cache_clear()
    assert others_who_write(status(stat.S_IFDIR | 0o775))


def test_files_of_others_are_not_read(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"data")
    assert read_own(file) == b"data"
    file.chmod(0o666)
    with pytest.raises(PermissionError, match="every user can write to it"):
        read_own(file)
    file.chmod(0o644)
    if ME == 0:
        os.chown(file, OTHER, OTHER)
        with pytest.raises(PermissionError, match=f"another user .number {OTHER}."):
            read_own(file)
    os.mkfifo(tmp_path / "pipe")
    assert read_own(tmp_path / "pipe") == b""  # does not wait for who writes to it
    for name in ("none", "."):
        with pytest.raises(OSError):
            read_own(tmp_path / name)


@pytest.mark.skipif(ME != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["folder", "link"])
def test_folders_of_others_are_not_used(tmp_path, what):
    folder = tmp_path / "cache"
    if what == "folder":
        folder.mkdir()
    else:
        (tmp_path / "real").mkdir()
        folder.symlink_to(tmp_path / "real")
    assert folders_to_read(None, [folder], "kernels") == [folder]
    os.chown(folder, OTHER, OTHER, follow_symlinks=False)
    with pytest.warns(RuntimeWarning, match=f"^{folder} is not used for kernels: .*another user") as seen:
        read = [folders_to_read(None, [folder, tmp_path], "kernels") for _ in range(3)]
    assert read == [[tmp_path]] * 3
    assert len(seen) == 1
    assert folder_to_write(None, [folder, tmp_path / "more"], "kernels") == tmp_path / "more"


def test_the_variable(tmp_path, monkeypatch):
    monkeypatch.delenv("NDD_CACHE_DIR", raising=False)
    assert chosen_folder("kernels") is None
    monkeypatch.setenv("NDD_CACHE_DIR", "")
    assert chosen_folder("kernels") is None
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NDD_CACHE_DIR", "~/caches")
    assert chosen_folder("kernels") == tmp_path / "home" / "caches" / "kernels"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NDD_CACHE_DIR", "caches")
    assert chosen_folder() == tmp_path / "caches"
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert chosen_folder() == tmp_path / "caches"  # where it was when it was first asked for


def no_permission(tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir(mode=0o700)
    if ME == 0:  # else modes are nothing
        os.chown(tmp_path / "closed", OTHER, OTHER)
        monkeypatch.setattr(cache_folders, "_owner_of_package", lambda: OTHER)
        make = tempfile.TemporaryFile
        monkeypatch.setattr(tempfile, "TemporaryFile", lambda *a, dir: _refused(make, dir, tmp_path / "closed"))
    else:
        (tmp_path / "closed").chmod(0o500)
    return tmp_path / "closed", "Permission denied"


def _refused(make, folder, closed):
    if Path(folder).is_relative_to(closed):
        raise PermissionError(13, "Permission denied", str(folder))
    return make(dir=folder)


def a_file(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    return tmp_path / "file", "Not a directory"


def below_a_file(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "below", "Not a directory"


def a_long_name(tmp_path, monkeypatch):
    return tmp_path / ("x" * 300), "File name too long"


def not_to_be_made(tmp_path, monkeypatch):
    if not Path("/proc/self").exists():
        pytest.skip("needs a folder in which nobody can make files")
    return Path("/proc/none/caches"), "No such file or directory"


def open_to_all(tmp_path, monkeypatch):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    return tmp_path / "open", "every user can write to"


UNUSABLE = [no_permission, a_file, below_a_file, a_long_name, not_to_be_made, open_to_all]


@pytest.fixture(params=UNUSABLE, ids=lambda make: make.__name__)
def unusable(request, tmp_path, monkeypatch):
    """`NDD_CACHE_DIR`, and why it cannot be used; `XDG_CACHE_HOME` can be."""
    folder, reason = request.param(tmp_path, monkeypatch)
    monkeypatch.setenv("NDD_CACHE_DIR", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return folder, reason


@pytest.mark.parametrize("kind", ["kernels", ""])
def test_another_folder_serves(unusable, tmp_path, kind):
    """One warning names the variable, the folder, the reason and what is used instead; files are found again there."""
    _, reason = unusable
    chosen, other = chosen_folder(kind), tmp_path / "other"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            assert folder_to_write(chosen, [other], "kernels") == other
            assert other in folders_to_read(chosen, [other], "kernels")
    (said,) = [str(w.message) for w in seen]
    assert said.startswith(f"NDD_CACHE_DIR: {chosen} cannot be used (")
    assert reason in said
    assert said.endswith(f"so kernels are kept in {other}.")


def test_no_folder_at_all(unusable):
    with pytest.warns(RuntimeWarning, match="NDD_CACHE_DIR: .* so indexes are not kept.$"):
        assert folder_to_write(chosen_folder(), [], "indexes") is None


def test_looking_makes_no_folder(tmp_path):
    assert folders_to_read(tmp_path / "a" / "b", [], "kernels") == [tmp_path / "a" / "b"]
    assert list(tmp_path.iterdir()) == []


def test_made_folders_are_closed_to_others(tmp_path):
    before = os.umask(0)
    try:
        assert unwritable(tmp_path / "a" / "b") == ""
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o755


def test_every_cache_goes_on(unusable, tmp_path, monkeypatch):
    """Where `NDD_CACHE_DIR` cannot be used: indexes and kernels for GPUs; `test_kernels.py` has those for the CPU."""
    import numpy as np

    from ndd._cuda import compile
    from ndd.readers.files.index_cache import cached

    monkeypatch.delenv("CUPY_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setattr(compile, "_key", lambda *_: "key")
    monkeypatch.setattr(compile, "_compiled", lambda *_: output.append("kernel") or b"binary")
    container, output = tmp_path / "container", []
    container.write_bytes(b"data")

    def build():
        output.append("index")
        return {"a": np.arange(3)}

    def both():
        index = cached(str(container), "test", 1, build, least=0)
        return index["a"].tolist(), compile.binary("text", "name", "sm_90")

    with pytest.warns(RuntimeWarning, match="NDD_CACHE_DIR"):
        result = [both() for _ in range(2)]
    assert result == [([0, 1, 2], b"binary")] * 2
    assert sorted(output) == ["index", "kernel"]
    assert [path.suffix for path in (tmp_path / "home" / "ndd").iterdir()] == [".npz"]
    assert [path.name for path in (tmp_path / "user" / ".cupy" / "kernel_cache").glob("*.bin")] == ["ndd_key.bin"]
