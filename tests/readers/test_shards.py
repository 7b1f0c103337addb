"""MDS and LitData: shards by the specification, shards of the libraries themselves, compressed ones, damage."""

import gzip
import json
import os
import struct
import subprocess
import textwrap
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
import warm_interpreter

import ndd
from ndd.readers import MDS, LitData
from ndd.readers.formats.arrow import inflated
from readers.datasets import shard_of, write_litdata, write_mds

KEPT = Path(__file__).parent / "shards"  # written by the libraries: `python shards/write.py` says how
PICTURE = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
PIL = struct.pack("<III", 2, 2, 3) + b"RGB" + PICTURE.tobytes()


def plain(value):
    """What a sample holds, as plain Python values."""
    if isinstance(value, ndd.Tensor):
        return np.asarray(value).tolist()
    return [v.tolist() for v in value] if isinstance(value, list) and isinstance(value[0], np.ndarray) else value


def pictures(*each, lead=b""):
    return lead + struct.pack(f"<{len(each) + 1}I", len(each), *map(len, each)) + b"".join(each)


MDS_VALUES = {  # encoding: (size in the index, bytes, value)
    "bytes": (None, b"abc", [97, 98, 99]),
    "jpeg": (None, b"", []),
    "pkl": (None, b"cos\nsystem\n", list(b"cos\nsystem\n")),
    "str": (None, "é".encode(), "é"),
    "json": (None, b'{"a": [1, null]}', {"a": [1, None]}),
    "int": (8, struct.pack("<q", -5), [-5]),
    "uint8": (1, b"\xff", [255]),
    "float16": (2, np.float16(1.5).tobytes(), [1.5]),
    "float64": (8, struct.pack("<d", 0.1), [0.1]),
    "str_int": (None, b"100000000000000000000", 10**20),
    "str_float": (None, b"0.5", 0.5),
    "str_decimal": (None, b"0.10", Decimal("0.10")),
    "pil": (None, PIL, PICTURE.tolist()),
    "list[pil]": (None, pictures(PIL, lead=bytes(4)), [PICTURE.tolist()]),
    "list[jpeg]": (None, pictures(b"a", b"bc", lead=bytes(4)), [[97], [98, 99]]),
    "jpeg_array": (None, pictures(b"a", b"bc"), [[97], [98, 99]]),
    "ndarray": (None, bytes([33, 2 << 2, 1, 2]) + struct.pack("<2i", 7, -8), [[7, -8]]),
    "ndarray:int16": (None, bytes([1 << 2 | 1]) + struct.pack("<H2h", 2, 1, 2), [1, 2]),
    "ndarray:float32:2,1": (8, struct.pack("<2f", 1, 2), [[1.0], [2.0]]),
}
LITDATA_VALUES = {  # type: (bytes, value)
    "bytes": (b"abc", [97, 98, 99]),
    "image:png": (b"PNG", [80, 78, 71]),
    "jpeg": (b"", []),
    "pickle": (b"cos\nsystem\n", list(b"cos\nsystem\n")),
    "str": ("é".encode(), "é"),
    "int": (struct.pack("<q", -5), [-5]),
    "float": (struct.pack("<d", 0.1), [0.1]),
    "bool": (b"\1", [True]),
    "pil": (PIL, PICTURE.tolist()),
    "jpeg_array": (pictures(b"a", b"bc"), [[97], [98, 99]]),
    "no_header_numpy:1": (struct.pack("<2h", 1, -2), [1, -2]),
    "no_header_tensor:17": (struct.pack("<2q", 1, -2), [1, -2]),
    "numpy": (struct.pack("<IIII", 9, 2, 1, 2) + struct.pack("<2f", 1, 2), [[1.0, 2.0]]),
    "tensor": (struct.pack(">IIII", 0, 2, 2, 1) + struct.pack("<2f", 1, 2), [[1.0], [2.0]]),
    "json": (b'{"a": 1}', {"a": 1}),
}
NESTED = {
    b"\1" + struct.pack("<IIcI", 2, 1, b"a", 0): ["a", ""],
    b"\2" + struct.pack("<Iqq", 2, 1, -1): [1, -1],
    b"\3" + struct.pack("<Id", 1, 0.5): [0.5],
    b"\4" + struct.pack("<I2B", 2, 1, 0): [True, False],
    b"\5" + struct.pack("<IIc", 1, 1, b"k") + b"\7" + struct.pack("<Ic", 1, b"v"): {"k": "v"},
    b"\6" + struct.pack("<IIIc", 1, 1, 1, b"k") + b"\x12" + struct.pack("<q", 3): [{"k": 3}],
    b"\6" + struct.pack("<IIIc", 1, 1, 1, b"k") + b"\x10": [{"k": None}],
    b"\0" + struct.pack("<I", 7) + b'[1,"a"]': [1, "a"],
    b"\x08" + struct.pack("<q", 9): 9, b"\x09" + struct.pack("<d", 0.25): 0.25, b"\x0a\1": True, b"\x0b": None,
}  # fmt: skip


def test_every_encoding_of_mds(tmp_path):
    sample = {f"{k:02}": data for k, (_, data, _) in enumerate(MDS_VALUES.values())}
    columns = {f"{k:02}": (encoding, size) for k, (encoding, (size, _, _)) in enumerate(MDS_VALUES.items())}
    write_mds(tmp_path, [[sample], [], [sample, sample]], columns)
    reader = MDS(path=tmp_path, columns=list(columns))
    assert len(reader) == 3
    for values in reader.next_epoch():
        assert [plain(v) for v in values] == [value for _, _, value in MDS_VALUES.values()]


def test_every_type_of_litdata(tmp_path):
    sample = {f"{k:02}": data for k, (data, _) in enumerate(LITDATA_VALUES.values())}
    names = dict(zip(sample, LITDATA_VALUES, strict=True))
    write_litdata(tmp_path, [[sample, sample], [sample]], names)
    for values in LitData(path=tmp_path, columns=list(names)).next_epoch():
        assert [plain(v) for v in values] == [value for _, value in LITDATA_VALUES.values()]


def test_nested_values_of_litdata(tmp_path):
    write_litdata(tmp_path, [[{"a": data} for data in NESTED]], {"a": "json"})
    (values,) = next(LitData(path=tmp_path, columns="a").next_epoch(len(NESTED)))
    assert values == list(NESTED.values())


def test_names_of_leaves(tmp_path):
    write_litdata(tmp_path, [[{"a": b"x", "b": b"y", "c": b"z"}]], {"a": "bytes", "b": "str", "c": "str"})
    index = json.loads((tmp_path / "index.json").read_text())
    leaf = {"type": None, "context": None, "children_spec": []}
    inner = {"type": "builtins.dict", "context": '["l", "r"]', "children_spec": [leaf, leaf]}
    for spec, names in (
        ({"type": "builtins.tuple", "context": "null", "children_spec": [leaf, inner]}, ["0", "1.l", "1.r"]),
        (
            {"type": "collections.OrderedDict", "context": '["x", "in"]', "children_spec": [leaf, inner]},
            ["x", "in.l", "in.r"],
        ),
        ({"type": "builtins.list", "context": "null", "children_spec": [leaf] * 3}, ["0", "1", "2"]),
    ):
        index["config"]["data_spec"] = json.dumps([1, spec])
        (tmp_path / "index.json").write_text(json.dumps(index))
        assert [plain(v) for v in LitData(path=tmp_path, columns=names)[0]] == [[120], "y", "z"]


def test_leaves_that_cannot_be_told_apart(tmp_path):
    """The order of the leaves is that of their bytes; folders of other orders must not be read as the first one is."""
    for name, keys in (("one", "ab"), ("other", "ba")):
        (tmp_path / name).mkdir()
        write_litdata(tmp_path / name, [[{key: key.encode() for key in keys}]], dict.fromkeys(keys, "bytes"))
    assert bytes(np.asarray(LitData(path=tmp_path / "other", columns="a")[0][0])) == b"a"
    with pytest.raises(RuntimeError, match="of other types than those of the first folder"):
        len(LitData(path=[tmp_path / "one", tmp_path / "other"], columns="a"))
    index = json.loads((tmp_path / "one" / "index.json").read_text())
    leaf = {"type": None, "context": None, "children_spec": []}
    spec = {"type": "builtins.dict", "context": '["a", "a"]', "children_spec": [leaf, leaf]}
    index["config"]["data_spec"] = json.dumps([1, spec])
    (tmp_path / "one" / "index.json").write_text(json.dumps(index))
    with pytest.raises(RuntimeError, match="leaves of equal names"):
        len(LitData(path=tmp_path / "one", columns="a"))


def test_snappy_data_of_fewer_bytes_than_the_index_says():
    pa = pytest.importorskip("pyarrow")
    packed = np.frombuffer(pa.Codec("snappy").compress(b"ten bytes.").to_pybytes(), np.uint8)
    assert inflated("snappy", packed, 10).tobytes() == b"ten bytes."
    with pytest.raises(ValueError, match="expected snappy data of 20 bytes, got 10"):
        inflated("snappy", packed, 20)


@pytest.mark.parametrize("codec", ["gz", "zstd"])
def test_compressed_shards(tmp_path, codec):
    pa = pytest.importorskip("pyarrow")
    compress = gzip.compress if codec == "gz" else lambda data: pa.compress(data, "zstd", asbytes=True)
    samples = [[{"a": b"x" * i, "b": struct.pack("<q", i)} for i in range(k, k + 5)] for k in (0, 5)]
    write_mds(tmp_path, samples, {"a": ("bytes", None), "b": ("int", 8)})
    index = json.loads((tmp_path / "index.json").read_text())
    for shard in index["shards"]:
        path = tmp_path / shard["raw_data"]["basename"]
        packed = compress(path.read_bytes())
        (tmp_path / f"{path.name}.{codec}").write_bytes(packed)
        path.unlink()
        shard.update(
            compression=f"{codec}:3", zip_data={"basename": f"{path.name}.{codec}", "bytes": len(packed), "hashes": {}}
        )
    (tmp_path / "index.json").write_text(json.dumps(index))
    reader = MDS(path=tmp_path, columns=["b", "a"], shuffle="global")
    for b, a in reader.next_epoch():
        assert bytes(np.asarray(a)) == b"x" * b.torch().item()
    assert a.source_info.startswith(f"{tmp_path}/shard.0000")


def test_compressed_chunks_of_litdata(tmp_path):
    """Whole chunks, chunks of frames, and single samples."""
    pa = pytest.importorskip("pyarrow")

    def packed(data):
        return pa.compress(data, "zstd", asbytes=True)

    samples = [{"a": b"x" * (200 + i)} for i in range(5)]
    whole = [struct.pack("<I", len(s["a"])) + s["a"] for s in samples]
    frames = [packed(b"".join(whole[k : k + 2])) for k in (0, 2, 4)]
    plain_sizes = [sum(map(len, whole[k : k + 2])) for k in (0, 2, 4)]
    start = 24 + 24 + 24 * 3
    table = b"".join(
        struct.pack("<IIQII", 2 * k, 2, start + sum(map(len, frames[:k])), len(frames[k]), plain_sizes[k])
        for k in range(3)
    )
    ends = struct.pack("<6I", *np.cumsum([0, *map(len, whole)]).tolist())
    framed = struct.pack("<8sHHIII", b"LDFZ01\0\0", 1, 0, 5, 2, 3) + ends + table + b"".join(frames)
    for content, config in (
        (packed(shard_of(whole)), {"compression": "zstd:4"}),
        (framed, {"compression": "zstd", "compression_level": "batch"}),
        (shard_of([packed(w) for w in whole]), {"compression": "zstd", "compression_level": "sample"}),
    ):
        write_litdata(tmp_path, [samples], {"a": "bytes"})
        index = json.loads((tmp_path / "index.json").read_text())
        index["config"].update(config)
        (tmp_path / "index.json").write_text(json.dumps(index))
        (tmp_path / "chunk-0-0.bin").write_bytes(content)
        reader = LitData(path=tmp_path, columns="a", shuffle="global")
        assert sorted(len(a) for (a,) in ((np.asarray(v[0]),) for v in reader.next_epoch())) == list(range(200, 205))


def mds_of(folder, **change):
    write_mds(folder, [[{"a": b"x", "b": b"y"}]], {"a": ("bytes", None), "b": ("str", None)})
    index = json.loads((folder / "index.json").read_text())
    index["shards"][0].update(change)
    (folder / "index.json").write_text(json.dumps(index))
    return MDS(path=folder, columns="a")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "json"}, "a shard of format 'json'"), ({"samples": -1}, "a shard of -1 samples"),
        ({"samples": 0}, "no samples"), ({"samples": "3"}, "a shard of '3' samples"),
        ({"column_encodings": ["bytes", "nothing"]}, "expected an encoding of MDS"),
        ({"column_sizes": [3, None]}, "expected None bytes for 'bytes', got 3"),
        ({"column_names": ["a"]}, "expected an index of MDS"), ({"column_names": ["c", "d"]}, "has no column 'a'; it has c, d"),
        ({"raw_data": {"basename": "../../etc/passwd", "bytes": 9}}, "expected the name of a file beside the index"),
        ({"raw_data": {"basename": "/etc/passwd", "bytes": 9}}, "expected the name of a file beside the index"),
        ({"raw_data": None}, "expected an index of MDS"),
    ],
)  # fmt: skip
def test_wrong_indexes(tmp_path, change, said):
    with pytest.raises(RuntimeError, match=said):
        len(mds_of(tmp_path, **change))


def test_missing_and_broken_indexes(tmp_path):
    for kind, name in ((MDS, "MDS"), (LitData, "LitData")):
        with pytest.raises(RuntimeError, match="Cannot open"):
            len(kind(path=tmp_path / "nobody", columns="a"))
        for text in ("", "[]", "{}", "[" * 100_000, '{"shards": 3, "chunks": {}}'):
            (tmp_path / "index.json").write_text(text)
            with pytest.raises(RuntimeError, match=f"expected an index of {name}"):
                len(kind(path=tmp_path, columns="a"))


def test_a_shard_that_is_not_the_index_says(tmp_path):
    reader = mds_of(tmp_path, samples=2)
    with pytest.raises(RuntimeError, match="expected a shard of 2 samples, as the index says, got one of 1"):
        next(reader.next_epoch())


def test_shards_of_the_libraries():
    """Kept shards that the libraries wrote; the expected values stand beside them."""
    for name, kind in (("mds", MDS), ("litdata", LitData)):
        expected = json.loads((KEPT / f"{name}.json").read_text())
        reader = kind(path=KEPT / name, columns=expected["columns"])
        assert [[plain(v) for v in values] for values in reader.next_epoch()] == expected["samples"]


@pytest.mark.skipif(
    "NDD_SHARD_WRITERS" not in os.environ, reason="NDD_SHARD_WRITERS names a Python that has the libraries"
)
@pytest.mark.parametrize("kind", [MDS, LitData])
@pytest.mark.parametrize("codec", ["", "zstd"])
def test_what_the_libraries_write_now(tmp_path, kind, codec):
    """Written in an environment of its own: the libraries pin NumPy."""
    command = [os.environ["NDD_SHARD_WRITERS"], str(KEPT / "write.py"), kind.__name__.lower(), str(tmp_path), codec]
    subprocess.run(command, check=True, capture_output=True)
    expected = json.loads((tmp_path / f"{kind.__name__.lower()}.json").read_text())
    reader = kind(path=tmp_path / kind.__name__.lower(), columns=expected["columns"])
    assert [[plain(v) for v in values] for values in reader.next_epoch()] == expected["samples"]


def test_the_offsets_of_shards_are_read_when_they_are_needed(tmp_path):
    """A program that opens a data set of 2,000 shards of a million samples each takes no memory for their offsets."""
    write_mds(tmp_path, [[{"a": b"x"}]], {"a": ("bytes", None)})
    index = json.loads((tmp_path / "index.json").read_text())
    index["shards"] = [{**index["shards"][0], "samples": 10**6} for _ in range(2000)]
    (tmp_path / "index.json").write_text(json.dumps(index))
    program = f"""
        import resource, ndd
        def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        ndd.readers.File(files=[ndd.__file__])[0]
        before = peak()
        reader = ndd.readers.MDS(path={str(tmp_path)!r}, columns="a", shuffle="global")
        assert len(reader) == 2 * 10**9
        stream = reader._session._new_read_ahead(256)._work()
        for _ in range(100): assert len(stream.take()) == 256
        print((peak() - before) // 1024)
    """
    done = warm_interpreter.run(textwrap.dedent(program), has_ndd=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 64
