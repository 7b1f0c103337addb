"""Samples of tar archives against DALI, forms of tar that DALI does not understand, and broken archives."""

import os
import re
import subprocess
import tarfile
import warnings
from pathlib import Path

import numpy as np
import pytest

import ndd
from ndd.readers import Webdataset
from readers.datasets import write_tar

REAL = Path(__file__).parents[3] / "shared" / "data" / "webdataset"
LONG = "d" * 90 + "/" + "n" * 120


def samples(package, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            [(str(a.dtype), a.tobytes()) for v in sample for a in [np.asarray(v)]]
            for sample in package.readers.Webdataset(**arguments).next_epoch()
        ]


def contents(path, ext="a", **arguments):
    return [[data for _, data in sample] for sample in samples(ndd, paths=str(path), ext=ext, **arguments)]


def other(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


MEMBERS = [
    ("0.a", b"first"), ("0.b", b"1" * 2000), ("1.b", b"."), ("1.A", b"6"), ("noext", b"x"), ("1.a", b"again"),
    (".hidden.a", b"?"), other("link.a", tarfile.SYMTYPE, "0.a"), ("1.b", b"same sample"), ("1.seg.a", b"no a"),
    other("2", tarfile.DIRTYPE), ("./2.x/3.a", b""), ("./2.x/3.b", b"12345678"), other("hard.a", tarfile.LNKTYPE, "0.a"),
    ("0.b", b"back"), ("0.b", b"repeated"),
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize(
    "how",
    [
        {"ext": "a"}, {"ext": ["a", "b"]}, {"ext": ["b;a"]}, {"ext": ["a;b", "b", "a"]}, {"ext": ["", "a;"]},
        {"ext": ["seg.a", ".a"]}, {"ext": ["A;B"], "case_sensitive_extensions": False},
        {"ext": ["a", "b"], "missing_component_behavior": "Skip"}, {"ext": "a", "missing_component_behavior": "EMPTY"},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT])
def test_samples(tmp_path, dali, how, format):
    path = str(write_tar(tmp_path / "a.tar", MEMBERS, format=format))
    result = samples(ndd, paths=path, **how)
    assert result
    assert result == samples(dali, paths=path, **how)
    assert result == samples(ndd, paths=[Path(path)], **how)


@pytest.mark.oracle
@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names(tmp_path, dali, format):
    """In the prefix of ustar, in a member before (GNU), in a pax header, which DALI does not understand."""
    name = LONG[:170] if format == tarfile.USTAR_FORMAT else LONG
    members = [("0.a", b"0"), (f"{name}.a", b"long"), (f"{name}.b", b"too"), ("é.a", b"2")]
    path = write_tar(tmp_path / "a.tar", members, format=format)
    assert contents(path, ["a", "b"]) == [[b"0", b""], [b"long", b"too"], [b"2", b""]]
    if format != tarfile.PAX_FORMAT:
        assert samples(ndd, paths=str(path), ext=["a", "b"]) == samples(dali, paths=str(path), ext=["a", "b"])


def test_sizes_in_other_forms(tmp_path):
    """Of base 256, in a pax header, and headers of all files."""
    path = write_tar(tmp_path / "a.tar", [("0.a", b"x" * 700), ("1.a", b"y")], format=tarfile.PAX_FORMAT)
    whole = bytearray(path.read_bytes())
    whole[124:136] = b"\x80" + (700).to_bytes(11, "big")
    whole[148:156] = b" " * 8
    whole[148:156] = b"%06o\0 " % sum(whole[:512])
    path.write_bytes(whole)
    assert contents(path) == [[b"x" * 700], [b"y"]]
    info = tarfile.TarInfo("0.a")
    info.pax_headers = {"comment": "x" * 2000, "path": "7.a"}
    write_tar(path, [info, ("7.b", b"b")], format=tarfile.PAX_FORMAT, pax_headers={"comment": "for all"})
    assert contents(path, ["a", "b"]) == [[b"", b"b"]]


@pytest.mark.oracle
def test_types(tmp_path, dali):
    path = str(write_tar(tmp_path / "a.tar", [("0.a", b"12345678"), ("0.b", b"1234"), ("1.b", b"12345678")]))
    for kinds in ([ndd.int16, ndd.float32], [ndd.float64, ndd.uint8], [ndd.types.INT8, ndd.float16], None):
        theirs = None if kinds is None else [ndd.dtype(kind).type_id for kind in kinds]
        from nvidia.dali import types

        theirs = None if theirs is None else [types.DALIDataType(int(kind)) for kind in theirs]
        result = samples(ndd, paths=path, ext=["a", "b"], dtypes=kinds)
        assert result == samples(dali, paths=path, ext=["a", "b"], dtypes=theirs)
    batch = Webdataset(paths=path, ext=["a"], dtypes=ndd.int32, missing_component_behavior="skip").fetch([0])[0]
    assert batch.dtype == ndd.int32
    assert Webdataset.outputs(ext="a;b", dtypes=ndd.int32)[0].dtype == ndd.int32


INDICES = [
    "v1.2 2\na 512 5 0.a b 1536 2000 0.b\nb 4096 1 1.b A 5120 1 1.A\n", "v1.1 1\na 512 5 b 1536 2000\n",
    "v1.1 1\n a\t512  5 \n", "v1.1 2\na 1536 2000\na 512 5\n", "v1.1 1\r\na 512 5\r\n", "v1.1 1\na 512 5\nb 1536 2000\n",
    "v1.2 2\na 512 5 9.41\u202fAM.a b 1536 2000 \u3000.b\nb 4096 1 1\u00a0.b\n",
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("text", INDICES, ids=repr)
def test_indices(tmp_path, dali, text):
    path = str(write_tar(tmp_path / "a.tar", MEMBERS))
    (tmp_path / "i").write_text(text)
    how = {"paths": path, "index_paths": str(tmp_path / "i"), "ext": ["a", "b"]}
    result = samples(ndd, **how)
    assert result == samples(dali, **how)
    (tmp_path / "i").write_text(text.replace("v1.1", "v1.0").replace("v1.2", "v1.0"))  # DALI's first, now refused by it
    assert result == samples(ndd, **how)


@pytest.mark.oracle
@pytest.mark.skipif(not REAL.exists(), reason="needs real data")
def test_real_files(dali):
    paths = sorted(str(path) for path in REAL.glob("*.tar"))
    indices = [path.replace(".tar", ".idx") for path in paths]
    how = {"paths": paths, "ext": ["jpg;png", "cls", "json"]}
    result = samples(ndd, **how)
    assert len(result) == 40
    assert result == samples(dali, **how, index_paths=indices) == samples(ndd, **how, index_paths=indices)
    reader = Webdataset(**how)
    assert ndd.decoders.image(next(reader.next_epoch(batch_size=40))[0]).batch_size == 40
    assert reader[24][0].source_info == f"{paths[1]} record 0"


def test_several_components_that_match_are_told(tmp_path):
    path = write_tar(tmp_path / "a.tar", MEMBERS)
    with pytest.warns(UserWarning, match=r"record 0: several components match 'a;b'"):
        assert len(Webdataset(paths=path, ext="a;b")) == 6


def faults(reader):
    """What each sample of a reader says, None for the good ones."""
    result: list[str | None] = []
    assert len(reader)  # what is wrong with an archive as a whole is raised here
    epoch = reader.next_epoch()
    while True:
        try:
            next(epoch)
            result.append(None)
        except StopIteration:
            return result
        except RuntimeError as error:
            result.append(str(error))


def test_an_archive_that_was_cut_off(tmp_path):
    """Wherever: DALI takes it for the end if it is between two members."""
    path = write_tar(tmp_path / "a.tar", [("0.a", b"0" * 1000), ("1.a", b"1" * 2000), ("2.a", b"2")])
    (tmp_path / "i").write_text("v1.1 3\na 512 1000\na 2048 2000\na 4608 1\n")
    whole = path.read_bytes()
    for size in (0, 300, 512, 700, 1536, 1700, 2048, 4000, 4096, 4608, 5120):
        path.write_bytes(whole[:size])
        with pytest.raises(RuntimeError, match=re.escape(str(path)) + ".*(cut off|the file is empty)"):
            contents(path)
    path.write_bytes(whole[:4000])
    result = faults(Webdataset(paths=path, ext="a", index_paths=tmp_path / "i"))
    assert result[0] is None
    assert all(f"({path} record {n})" in result[n] and "ends too early" in result[n] for n in (1, 2))
    path.write_bytes(whole[:5632])  # one block of zeros has to do
    assert len(contents(path)) == 3


def test_damaged_archives(tmp_path):
    path = write_tar(tmp_path / "a.tar", [("0.a", b"0" * 1000), ("1.a", b"1" * 2000), ("2.a", b"2")])
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[1536 + 3] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(
        RuntimeError, match=r"a.tar member 1: expected a tar header at byte 1536, got none: is it damaged"
    ):
        contents(path)
    path.write_bytes(whole[:1536] + bytes(512) + whole[2048:])
    with pytest.raises(
        RuntimeError, match=r"a.tar member 1: .* byte 1536, or two blocks of zeros .*, got one: is it dam"
    ):
        contents(path)
    path.write_bytes(os.urandom(3000))
    with pytest.raises(RuntimeError, match=r"a.tar member 0: .* is this a tar archive, and not a compressed one"):
        contents(path)

    path.write_bytes(whole)
    reader = Webdataset(paths=path, ext="a")
    assert len(reader.fetch([0, 2])[0].tensors) == 2
    other_members = [("0.a", b"0" * 1000), ("1.a", b"1" * 2001), ("22.a", b"2" * 513), ("3.a", b"")]
    write_tar(path, other_members)  # the archive changes under the reader
    text = (
        r"sample 1 \(.*a.tar record 1\): .*component of 2000 bytes at byte 1536, got another size: is the archive damag"
    )
    with pytest.raises(RuntimeError, match=text):
        reader[1]
    (tmp_path / "i").write_text("v1.1 2\na 512 1000\na 1024 10\n")
    result = faults(Webdataset(paths=path, ext="a", index_paths=tmp_path / "i"))
    assert result[0] is None
    assert "got something else: is the archive damaged or changed, or the index that of another one?" in result[1]


@pytest.mark.skipif(not os.path.exists("/bin/tar") and not os.path.exists("/usr/bin/tar"), reason="needs tar")
@pytest.mark.timeout(20)
@pytest.mark.parametrize("size", ["-1024", "-1", "x", "1_0", "", "9" * 30])
def test_sizes_of_pax_headers_that_are_none(tmp_path, size):
    """With a negative one the members would begin again and again."""
    info = tarfile.TarInfo("0.a")
    info.pax_headers = {"size": size, "comment": "x" * 2000}
    path = write_tar(tmp_path / "a.tar", [info, ("1.a", b"b")], format=tarfile.PAX_FORMAT)
    with pytest.raises(RuntimeError, match=r"a.tar member 0: expected a size in the pax header before byte \d+, got b"):
        contents(path)


def test_sparse_files_are_refused(tmp_path):
    with open(tmp_path / "0.a", "wb") as file:
        file.truncate(1 << 20)
        file.write(b"x")
    for format in ("gnu", "posix"):
        subprocess.run(["tar", f"--format={format}", "-S", "-cf", "s.tar", "0.a"], cwd=tmp_path, check=True)
        with pytest.raises(RuntimeError, match=r"member 0 .* got a sparse one"):
            contents(tmp_path / "s.tar")


def test_no_regular_files(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (str(tmp_path / "fifo"), "/dev/zero", str(tmp_path), str(tmp_path / "none")):
        with pytest.raises(RuntimeError, match=re.escape(path)):
            contents(path)


def test_archives_without_samples(tmp_path):
    """DALI makes one empty sample of each."""
    empty, item = write_tar(tmp_path / "e.tar", []), write_tar(tmp_path / "a.tar", [("0.a", b"0")])
    with pytest.warns(UserWarning, match="e.tar' holds no samples"):
        assert len(Webdataset(paths=[empty, item, empty], ext="a")) == 1
    with pytest.raises(RuntimeError, match="no samples in"):
        contents(empty)
    with pytest.raises(RuntimeError, match="no samples in"):
        contents(item, "b", missing_component_behavior="skip")


MISTAKES = [
    {"paths": "none.tar"}, {"paths": []}, {"paths": "."}, {"ext": "b", "missing_component_behavior": "error"},
    {"missing_component_behavior": "foo"}, {"dtypes": "FLOAT"}, {"dtypes": "BOOL"}, {"dtypes": "STRING"},
    {"ext": ["a", "b"], "dtypes": "INT8"}, {"index_paths": "none"}, {"index_paths": ["i", "i"]}, {"num_shards": 5},
    {"text": ""}, {"text": "v1.1"}, {"text": "v1.3 1\na 512 5"}, {"text": "v1.2 0\n"}, {"text": "v1.1 x\na 512 5"},
    {"text": "v1.1 -1\n"}, {"text": "1.1 1\na 512 5"}, {"text": "v1.1 2\na 512 5\n"}, {"text": "v1.1 1\n\n"},
    {"text": "v1.1 1\na 512\n"}, {"text": "v1.1 1\na x 5\n"}, {"text": "v1.1 1\na 513 5\n"}, {"text": "v1.1 1\na 512 -1\n"},
    {"text": "v1.2 1\na 512 5 na me.a\n"}, {"unknown": 3},
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("change", MISTAKES, ids=str)
def test_mistakes(tmp_path, dali, monkeypatch, change):
    from nvidia.dali import types

    monkeypatch.chdir(tmp_path)
    write_tar(tmp_path / "a.tar", [("0.a", b"12345")])
    (tmp_path / "i").write_text(change.get("text", "v1.1 1\na 512 5\n"))
    arguments = {"paths": "a.tar", "ext": "a", **({"index_paths": "i"} if "text" in change else {}), **change}
    arguments.pop("text", None)
    if "dtypes" in change:
        arguments["dtypes"] = getattr(types, change["dtypes"])
    kinds = []
    for package in (ndd, dali):
        with pytest.raises((RuntimeError, TypeError)) as raised:
            samples(package, **arguments)
        kinds.append(raised.type)
    assert kinds[0] is kinds[1]


def test_a_long_index_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("NDD_CACHE_DIR", str(tmp_path / "cache"))
    path = write_tar(tmp_path / "a.tar", [(f"{i}.{ext}", b"%d" % i) for i in range(800) for ext in "ab"])
    assert os.path.getsize(path) > 1 << 20
    result = contents(path, "b")
    monkeypatch.setattr(ndd.readers.webdataset, "scan_archive", None)
    assert contents(path, "b") == result == [[b"%d" % i] for i in range(800)]


def test_archives_without_marks(tmp_path):
    """Headers older than POSIX are told by their sums: of what is read, and of what changed since."""
    path = tmp_path / "old.tar"
    write_tar(path, [("0.a", b"first"), ("1.a", b"second")])
    data = bytearray(path.read_bytes())
    for start in (0, 1024):
        data[start + 257 : start + 265] = bytes(8)
        data[start + 148 : start + 156] = b" " * 8
        data[start + 148 : start + 156] = b"%06o\0 " % sum(data[start : start + 512])
    path.write_bytes(data)
    assert contents(path) == [[b"first"], [b"second"]]
    reader = Webdataset(paths=path, ext="a", on_error="skip")
    assert len(reader) == 2
    data[1024] ^= 1
    path.write_bytes(data)
    assert [bytes(text.torch().tolist()) for (text,) in reader.next_epoch()] == [b"first"]
    assert re.search("expected the tar header of a component of 6 bytes at byte 1024", reader.skipped[0].error)


def test_large_batches_are_read_into_buffers_of_about_one_size(tmp_path, monkeypatch):
    """In whatever parts threads read them: the pool of host memory keeps few blocks then. And an error stays in its place."""
    members = [(f"{i}.bin", bytes([i]) * 40_000) for i in range(20)]
    write_tar(tmp_path / "a.tar", members)
    with open(tmp_path / "a.tar", "r+b") as file:
        file.seek(13 * (512 + 40_448))
        file.write(b"?" * 512)
    reader = Webdataset(paths=tmp_path / "a.tar", ext="bin", index_paths=index_of(tmp_path, 20, 40_000))
    store = reader._session.opened()[0]
    whole = store.records(range(20))
    assert len(whole.columns[0].buffers) == 1
    monkeypatch.setattr("ndd.readers.stores.container._TOGETHER", 200_000)
    for numbers in (range(20), range(3, 12), [7, 2, 19, 13, 0, 1, 18]):
        result = store.records(numbers)
        assert {k: str(error) for k, error in result.faults.items()} == {
            place: str(whole.faults[13]) for place, number in enumerate(numbers) if number == 13
        }
        assert all(100_000 < buffer.nbytes < 210_000 for buffer in result.columns[0].buffers)
        sound = [number for number in numbers if number != 13]
        assert [(a[0], a.size) for (a,) in (r for r in result if isinstance(r, tuple))] == [(n, 40_000) for n in sound]


def index_of(folder, count, size):
    """Of an archive of members of one size, as `wds2idx` writes it."""
    step = 512 + -(-size // 512) * 512
    lines = [f"bin {512 + step * i} {size} {i}.bin" for i in range(count)]
    (folder / "a.idx").write_text(f"v1.2 {count}\n" + "\n".join(lines) + "\n")
    return folder / "a.idx"
