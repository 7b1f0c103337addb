"""`python -m ndd index`: byte for byte what DALI's scripts write."""

import gzip
import os
import re
import shutil
import subprocess
import sys
import tarfile
import types
import zlib
from pathlib import Path

import numpy as np
import pytest

import ndd
from ndd.__main__ import main
from ndd.readers import Webdataset
from readers.datasets import (
    bytes_list,
    example,
    recordio_item,
    recordio_part,
    tfrecord_frame,
    write_recordio,
    write_tar,
)

BIN = Path(sys.executable).parent


def by_dali(script, path, index):
    if not (BIN / script).exists():
        pytest.skip(f"needs DALI's {script}")
    subprocess.run([BIN / script, path, index], check=True, stdout=subprocess.DEVNULL)
    return Path(index).read_bytes()


@pytest.mark.oracle
def test_tfrecord(tmp_path, capsys):
    path = tmp_path / "train-00000-of-00001"
    path.write_bytes(b"".join(tfrecord_frame(example(("x", bytes_list(b"y" * n)))) for n in (0, 5, 1000, 70_000)))
    assert main(["index", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: 4 records -> {path}.idx\n"
    assert Path(f"{path}.idx").read_bytes() == by_dali("tfrecord2idx", path, tmp_path / "theirs")


@pytest.mark.parametrize("packer", [gzip.compress, zlib.compress])
def test_compressed_tfrecord(tmp_path, capsys, packer):
    """Places in what is unpacked, as for the file before."""
    path, plain = tmp_path / "train", tmp_path / "plain"
    plain.write_bytes(b"".join(tfrecord_frame(example(("x", bytes_list(b"y" * n)))) for n in (0, 5, 1000, 70_000)))
    path.write_bytes(packer(plain.read_bytes()))
    (tmp_path / "text").write_bytes(packer(b"no records"))
    (tmp_path / "cut").write_bytes(packer(plain.read_bytes())[:30])
    assert main(["index", str(tmp_path)]) == 0
    assert f"{path}: 4 records -> {path}.idx\n" in capsys.readouterr().out
    assert Path(f"{path}.idx").read_bytes() == Path(f"{plain}.idx").read_bytes()
    assert not Path(f"{tmp_path / 'text'}.idx").exists()


@pytest.mark.oracle
@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.drawn(1)
def test_tar(tmp_path, capsys, format):
    long = "d" * 90 + "/" + "n" * 120 if format == tarfile.PAX_FORMAT else "d" * 20
    folder = tarfile.TarInfo("folder")
    folder.type = tarfile.DIRTYPE
    members = [
        ("0.jpg", b"x" * 700), ("0.seg.png", b""), ("1.jpg", b"."), folder, ("folder/.hidden", b"h"), ("noext", b"n"),
        ("0.jpg", b"again"), (f"{long}.jpg", b"long"), ("./a.b/c.cls", b"7"),
    ]  # fmt: skip
    path = write_tar(tmp_path / "shard.0.tar", members, format=format)
    assert main(["index", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: 6 samples -> {tmp_path / 'shard.idx'}\n"
    assert (tmp_path / "shard.idx").read_bytes() == by_dali("wds2idx", path, tmp_path / "theirs")
    reader = ndd.readers.Webdataset(paths=path, index_paths=tmp_path / "shard.idx", ext="jpg")
    assert bytes(reader[4][0].torch().tolist()) == b"long"


def test_names_that_wds2idx_takes_for_data(tmp_path):
    """Of a long name of GNU tar its index gives the place of the name; of blanks it makes an index nobody can read."""
    path = write_tar(tmp_path / "a.tar", [("n" * 120 + ".jpg", b"data")], format=tarfile.GNU_FORMAT)
    assert main(["index", str(path)]) == 0
    assert (tmp_path / "a.idx").read_text() == f"v1.2 1\njpg 1536 4 {'n' * 120}.jpg\n"


class MXRecordIO:
    """As much of MXNet as rec2idx needs: reads record after record, with a place to tell."""

    is_open = True

    def __init__(self, uri, flag):
        self.data, self.place, self.handle = Path(uri).read_bytes(), 0, self
        self.open()

    def open(self):
        self.place = 0

    reset = open

    def close(self):
        pass

    def read(self):
        while self.place < len(self.data):
            word = int.from_bytes(self.data[self.place + 4 : self.place + 8], "little")
            self.place += 8 + -(-(word & 0x1FFFFFFF) // 4) * 4
            if word >> 29 in (0, 3):
                return b""
        return None


@pytest.mark.oracle
def test_recordio(tmp_path, monkeypatch, capsys):
    """rec2idx runs on a stand-in for MXNet, which is no more to be had."""
    rec2idx = _rec2idx(monkeypatch)
    parts = recordio_part(b"first", 1) + recordio_part(b"second", 2) + recordio_part(b"third", 3)
    items = [recordio_item(b"abc"), parts, recordio_item(b"", [1.0, 2.0]), recordio_item(b"x" * 5000)]
    path = Path(write_recordio(tmp_path, items)["path"])
    (tmp_path / "a.idx").unlink()
    assert main(["index", str(path)]) == 0
    assert f"{path}: 4 records" in capsys.readouterr().out
    creator = rec2idx.IndexCreator(str(path), str(tmp_path / "theirs"))
    creator.tell = lambda: creator.place
    creator.create_index()
    creator.fidx.close()
    assert (tmp_path / "a.idx").read_bytes() == (tmp_path / "theirs").read_bytes()


def _rec2idx(monkeypatch):
    mxnet = types.ModuleType("mxnet")
    mxnet.base = types.ModuleType("mxnet.base")
    mxnet.base._LIB = mxnet.base.check_call = None
    mxnet.recordio = types.SimpleNamespace(MXRecordIO=MXRecordIO)
    monkeypatch.setitem(sys.modules, "mxnet", mxnet)
    monkeypatch.setitem(sys.modules, "mxnet.base", mxnet.base)
    monkeypatch.delitem(sys.modules, "rec2idx", raising=False)
    return pytest.importorskip("rec2idx")


def test_folders_patterns_and_outputs(tmp_path, capsys):
    for name in ("b.tar", "a.tar"):
        write_tar(tmp_path / name, [("0.txt", name.encode())])
    (tmp_path / "notes.txt").write_text("no container")
    (tmp_path / "c.tfrecord").write_bytes(tfrecord_frame(b""))
    assert main(["index", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [Path(line.split(" -> ")[1]).name for line in lines] == ["a.idx", "b.idx", "c.tfrecord.idx"]

    (tmp_path / "out").mkdir()
    assert main(["index", str(tmp_path / "*.tar"), "--output", str(tmp_path / "out")]) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.idx", "b.idx"]
    assert main(["index", str(tmp_path / "a.tar"), "--output", str(tmp_path / "one")]) == 0
    assert (tmp_path / "one").read_text() == "v1.2 1\ntxt 512 5 0.txt\n"
    assert main(["index", str(tmp_path / "*.tar"), "--output", str(tmp_path / "one")]) == 1
    assert "--output: expected a folder for the indices of 2 files" in capsys.readouterr().err


def test_names_with_blanks_that_are_not_ascii(tmp_path):
    path = write_tar(
        tmp_path / "a.tar", [("9.41\u202fAM.txt", b"0"), (os.fsdecode(b"\xff\xa0.txt"), b"1")], errors="surrogateescape"
    )
    assert main(["index", str(path)]) == 0
    lines = (tmp_path / "a.idx").read_bytes().split(b"\n")
    assert lines[1:3] == ["41\u202fAM.txt 512 1 9.41\u202fAM.txt".encode(), b"txt 1536 1 \xff\xa0.txt"]
    reader = Webdataset(paths=path, index_paths=tmp_path / "a.idx", ext="txt;41\u202fAM.txt")
    assert [bytes(np.asarray(data)) for (data,) in reader.next_epoch()] == [b"0", b"1"]


def test_nothing_is_written_over(tmp_path, capsys):
    path = write_tar(tmp_path / "a.tar", [("0.txt", b"0")])
    (tmp_path / "a.idx").write_text("mine")
    assert main(["index", str(path)]) == 1
    assert "a.idx exists already: --force overwrites it" in capsys.readouterr().err
    assert (tmp_path / "a.idx").read_text() == "mine"
    assert main(["index", str(path), "--force"]) == 0
    assert (tmp_path / "a.idx").read_text().startswith("v1.2 1\n")


def test_broken_files(tmp_path, capsys):
    """The others are written, and the exit code tells."""
    tar = write_tar(tmp_path / "b.tar", [("0.txt", b"0"), ("1.txt", b"1" * 1000)])
    shutil.copy(tar, tmp_path / "c.tar")
    tar.write_bytes(tar.read_bytes()[:2000])
    (tmp_path / "a").write_bytes(tfrecord_frame(b"123") + tfrecord_frame(b"456")[:-3])
    (tmp_path / "d.rec").write_bytes(recordio_item(b"abc") + b"????????")
    write_tar(tmp_path / "e.tar", [("a name.txt", b"0")])
    write_tar(tmp_path / "f.tar", [("", b"")])
    assert main(["index", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert said.out == f"{tmp_path / 'c.tar'}: 2 samples -> {tmp_path / 'c.idx'}\n"
    errors = said.err.splitlines()
    texts = ["a record 1: .*cut off", "b.tar member 1 .*cut off", "d.rec record 1: expected a RecordIO header"]
    texts += ["e.tar: the file name 'a name.txt' cannot stand in an index", "Webdataset Tar File empty"]
    assert len(errors) == len(texts)
    assert all(re.search(text, error) for text, error in zip(texts, errors, strict=True))
    assert not list(tmp_path.glob("*.tmp"))
    for path in (tmp_path / "none", "/dev/zero"):
        assert main(["index", str(path)]) == 1
    (tmp_path / "g.txt").write_text("no container")
    assert main(["index", str(tmp_path / "g.txt")]) == 1
    assert "expected a TFRecord, tar or RecordIO file" in capsys.readouterr().err


def test_a_bar_on_a_terminal(tmp_path, capsys, monkeypatch):
    path = write_tar(tmp_path / "a.tar", [(f"{i}.txt", b"0") for i in range(5000)])
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["index", str(path)]) == 0
    assert "a.tar [########################] 100/100" in capsys.readouterr().out
