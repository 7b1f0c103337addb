"""The cached index: used while the container stays as it is, never trusted beyond that, never in the way."""

import os
import stat
import sys
import tempfile
import threading

import numpy as np
import pytest

from ndd.readers.files.index_cache import cached


@pytest.fixture
def container(tmp_path, monkeypatch):
    monkeypatch.setenv("NDD_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "data.bin"
    path.write_bytes(b"0123456789")
    return path


class Builder:
    def __init__(self):
        self.count = 0

    def __call__(self):
        self.count += 1
        return {"offsets": np.arange(1000) + self.count, "names": np.frombuffer(b"abc", np.uint8)}


def ask(container, build, version=1, kind="test"):
    return cached(str(container), kind, version, build, least=0)


def files(tmp_path):
    return sorted((tmp_path / "cache").iterdir())


def test_built_once(container, tmp_path):
    build = Builder()
    for _ in range(3):
        index = ask(container, build)
        assert list(index) == ["offsets", "names"]
        assert index["offsets"][0] == 1
        assert bytes(index["names"]) == b"abc"
    assert build.count == 1
    assert len(files(tmp_path)) == 1
    cached(str(container), "test", 1, build)  # too small to be looked for
    assert build.count == 2


def test_built_anew_for_another_state(container, tmp_path):
    build = Builder()
    ask(container, build)
    container.write_bytes(b"0123456789+")
    assert ask(container, build)["offsets"][0] == 2
    os.utime(container, ns=(1, 1))
    assert ask(container, build)["offsets"][0] == 3
    assert ask(container, build, version=2)["offsets"][0] == 4
    assert len(files(tmp_path)) == 1  # a later state takes the place of the one before
    assert ask(container, build, kind="other")["offsets"][0] == 5
    assert ask(container, build, version=2)["offsets"][0] == 4
    with pytest.raises(OSError, match="none"):
        ask(tmp_path / "none", build)


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "bits", "pickle", "folder"])
def test_damaged_files_are_made_again(container, tmp_path, damage):
    build = Builder()
    ask(container, build)
    (file,) = files(tmp_path)
    whole = file.read_bytes()
    if damage == "folder":
        file.unlink()
        file.mkdir()
    elif damage == "pickle":
        np.savez(file, _state=np.array([{"a": 1}], dtype=object))
    else:
        middle = len(whole) // 2
        changed = {
            "cut": whole[:-200],
            "empty": b"",
            "text": b"hello",
            "bits": whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :],
        }
        file.write_bytes(changed[damage])
    assert ask(container, build)["offsets"][0] == 2
    if damage != "folder":
        assert ask(container, build)["offsets"][0] == 2
        assert build.count == 2


def test_every_cut_and_every_changed_byte_is_noticed(container, tmp_path):
    ask(container, Builder())
    (file,) = files(tmp_path)
    whole = file.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole), 60).tolist():
        for text in (whole[:place], whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :]):
            file.write_bytes(text)
            index = ask(container, Builder())
            assert index["offsets"].tolist() == list(range(1, 1001))


def test_folders_that_cannot_be_written(container, tmp_path, monkeypatch):
    build = Builder()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NDD_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert ask(container, build)["offsets"][0] == 1
    monkeypatch.setenv("NDD_CACHE_DIR", "")
    assert ask(container, build)["offsets"][0] == 2
    monkeypatch.delenv("NDD_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    for _ in range(2):
        assert ask(container, build)["offsets"][0] == 3
    (folder,) = (tmp_path / "temporary").iterdir()
    assert len(list(folder.iterdir())) == 1
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert ask(container, build)["offsets"][0] == 3  # found where it was written
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "elsewhere"))
    ask(container, build)
    assert len(list((tmp_path / "home" / "ndd").iterdir())) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs modes")
def test_a_folder_that_others_may_write_to_is_not_trusted(container, tmp_path, monkeypatch):
    monkeypatch.delenv("NDD_CACHE_DIR")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    build = Builder()
    ask(container, build)
    (folder,) = (tmp_path / "temporary").iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o777)
    assert ask(container, build)["offsets"][0] == 2


def test_a_container_that_changes_while_it_is_indexed(container, tmp_path):
    def build():
        container.write_bytes(b"longer than before")
        return {"offsets": np.zeros(1)}

    ask(container, build)
    assert not (tmp_path / "cache").exists()


def test_many_at_once(container, tmp_path):
    results = []
    threads = [threading.Thread(target=lambda: results.append(ask(container, Builder()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert all(r["offsets"][0] == 1 for r in results)
    assert [file.suffix for file in files(tmp_path)] == [".npz"]


def test_the_index_of_a_record_file_is_kept(tmp_path, monkeypatch):
    from ndd.readers import MXNet, mxnet
    from readers.datasets import recordio_item, write_recordio

    monkeypatch.setenv("NDD_CACHE_DIR", str(tmp_path / "cache"))
    arguments = write_recordio(tmp_path, [recordio_item(b"x")] * 3)
    with open(arguments["index_path"], "a") as file:
        file.write("\n" * (1 << 20))
    assert len(MXNet(**arguments)) == 3
    monkeypatch.setattr(mxnet, "_listed_offsets", None)
    assert len(MXNet(**arguments)) == 3
