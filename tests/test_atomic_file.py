"""A file that is there whole or not at all."""

from __future__ import annotations

import os
import signal
import stat
import sys

import numpy as np
import pytest

import ndd
from ndd.atomic_file import SUFFIX, atomic_file

pytestmark = pytest.mark.fast


def test_nothing_changes_before_the_end(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def interrupted():
        with atomic_file(path) as file:
            file.write(b"new")
            file.flush()
            assert path.read_bytes() == b"old"
            assert len(list(tmp_path.glob(f"*{SUFFIX}"))) == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert path.read_bytes() == b"old"
    with atomic_file(path, durable=True) as file:
        file.write(b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert path.read_bytes() == b"new"


def test_two_writers_and_no_folder(tmp_path):
    with atomic_file(tmp_path / "a") as item, atomic_file(tmp_path / "a") as other:
        item.write(b"1" * 10)
        other.write(b"2")
    assert (tmp_path / "a").read_bytes() == b"1" * 10  # whose block ended last
    with pytest.raises(FileNotFoundError), atomic_file(tmp_path / "none" / "a") as file:
        file.write(b"1")


@pytest.mark.skipif(sys.platform == "win32", reason="who may read a file is told in another way there")
def test_who_may_read_it(tmp_path):
    before = os.umask(0o027)
    try:
        for private, mode in ((False, 0o640), (True, 0o600)):
            with atomic_file(tmp_path / "a", private=private) as file:
                file.write(b"1")
            assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode
    finally:
        os.umask(before)


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs a limit for files")
def test_a_full_disk_names_the_file(tmp_path, monkeypatch):
    """The system names none where a write fails. Nothing is left of a checkpoint, an index, or a video."""
    import resource

    def index(path):
        with atomic_file(path) as file:
            file.write(b"1" * 1000)

    def checkpoint(path):
        context = ndd.EvalContext()
        context.checkpoint.register(ndd.random.RNG(seed=3))
        context.checkpoint.collect()
        context.checkpoint.save(path)

    def video(path):
        ndd.io.video.write(path, np.zeros((3, 32, 48, 3), np.uint8))

    pytest.importorskip("av")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # half of a file of what is imported would stay
    before, limits = signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        for name, write in (("index", index), ("checkpoint", checkpoint), ("video.mp4", video)):
            resource.setrlimit(resource.RLIMIT_FSIZE, (20, limits[1]))
            with pytest.raises(OSError, match=f"File too large: '{tmp_path}/{name}'"):
                write(str(tmp_path / name))
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            assert list(tmp_path.iterdir()) == []
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    with pytest.raises(FileNotFoundError, match=f"'{tmp_path}/none/a'"):
        index(str(tmp_path / "none" / "a"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_device_or_a_pipe_is_written_to_and_stays(tmp_path):
    """Root would have made /dev/null a file."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with atomic_file(path) as file:
            file.write(b"new")
        assert os.read(end, 10) == b"new"
    finally:
        os.close(end)
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


def test_the_error_names_the_file_and_nothing_else(tmp_path):
    path = tmp_path / "none" / "a"
    with pytest.raises(FileNotFoundError) as caught, atomic_file(path):
        pass
    assert str(caught.value) == f"[Errno 2] No such file or directory: {str(path)!r}"
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(OSError, match="folder") as caught, atomic_file(folder):
        pass
    assert str(caught.value).endswith(f": {str(folder)!r}")
