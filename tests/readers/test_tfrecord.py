"""Contents of TFRecord files against DALI, our own index, and broken files."""

import contextlib
import gzip
import os
import re
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import ndd
from ndd import tfrecord as tfrec
from ndd.readers import TFRecord
from ndd.readers.formats import tf_example as example_kernels
from readers.datasets import (
    bytes_list,
    example,
    float_list,
    int64_list,
    masked_crc,
    proto,
    tfrecord_frame,
    varint,
    write_tfrecord,
)  # fmt: skip

REAL = Path(__file__).parents[3] / "shared" / "data" / "tfrecord"
INT, STRING, FLOAT = 0, 1, 2


def features_of(module, wanted):
    """Features as text, such as `F([2], INT, 0)`, made by ndd's functions or by DALI's."""
    names = {"F": module.FixedLenFeature, "V": module.VarLenFeature, "INT": INT, "FLOAT": FLOAT, "STRING": STRING}
    return {name: eval(text, names) for name, text in wanted.items()}


def samples(package, wanted, **arguments):
    module = tfrec
    if package is not ndd:
        from nvidia.dali import tfrecord as module
    reader = package.readers.TFRecord(features=features_of(module, wanted), **arguments)
    return [
        {name: (str(a.dtype), a.shape, a.tobytes()) for name, v in sample.items() for a in [np.asarray(v)]}
        for sample in reader.next_epoch()
    ]


def values(wanted, **arguments):
    reader = TFRecord(features=features_of(tfrec, wanted), **arguments)
    return [{name: np.asarray(value).tolist() for name, value in sample.items()} for sample in reader.next_epoch()]


RECORDS = [
    example(
        ("i", int64_list(1, 2, -3, 2**62, -(2**63), 300)), ("f", float_list(1.0, -2.5)), ("s", bytes_list(b"abc", b"de")),
        ("empty", int64_list()), ("not wanted", bytes_list(b"x" * 500)), ("one", int64_list(7)),
    ),
    # unpacked numbers, keys behind their values, fields that nobody knows, a list in two parts, the last entry counts
    proto(7, b"xx") + varint(9 << 3) + varint(3) + proto(10, b"1234", 5) + proto(11, b"12345678", 1)
    + proto(1, proto(1, proto(2, proto(3, b"".join(proto(1, varint(v), 0) for v in (4, -5)))) + proto(1, b"i")))
    + proto(1, proto(1, proto(1, b"f") + proto(2, float_list(9.0) + proto(2, proto(1, b"\0\0\x80?", 5)))))
    + example(("s", bytes_list(b"")), ("empty", proto(1, b"")), ("one", int64_list(1)), ("one", int64_list(8))),
    example(("one", float_list(1.0) + int64_list(9)), ("i", int64_list()), ("f", float_list()), ("s", bytes_list(b"y")),
            ("empty", b"")),
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize(
    "wanted",
    [
        {"s": "F((), STRING, '')", "i": "V(INT, 0)", "f": "V(FLOAT, 0.0)"},
        {"f": "V([2], FLOAT, 0.0)", "one": "F([1], INT, 0)", "s": "F([1], STRING, 'no')"},
        {"one": "F([], INT, 0)", "i": "V([2], INT, 5)"},
        {"i": "V([1, 2], INT, 0)", "f": "V([], FLOAT, 0.0)", "one": "F([1, 1], INT, 4)", "empty": "V([3], INT, 1)"},
    ],
    ids=str,
)  # fmt: skip
def test_records(tmp_path, dali, wanted):
    arguments = write_tfrecord(tmp_path, RECORDS)
    result = samples(ndd, wanted, **arguments)
    assert [list(sample) for sample in result] == [list(wanted)] * 3
    assert result == samples(dali, wanted, **arguments)
    assert result == samples(ndd, wanted, path=Path(arguments["path"]))


@pytest.mark.oracle
def test_a_call_gives_a_single_feature_alone(tmp_path, dali):
    from nvidia.dali import tfrecord as theirs

    arguments = write_tfrecord(tmp_path, RECORDS)
    for package, module in ((ndd, tfrec), (dali, theirs)):
        features = features_of(module, {"one": "F([1], INT, 0)", "s": "F((), STRING, '')"})
        assert list(package.readers.TFRecord(**arguments, features=features)()) == ["one", "s"]
        del features["s"]
        assert type(package.readers.TFRecord(**arguments, features=features)()) is package.Tensor
        assert type(package.readers.TFRecord(**arguments, features=features)(batch_size=2)) is package.Batch


@pytest.mark.oracle
@pytest.mark.parametrize("lines", [[2, 0], [1, 1, 2]], ids=str)
def test_an_index_of_some_and_several_files(tmp_path, dali, lines):
    first, second = write_tfrecord(tmp_path, RECORDS), write_tfrecord(tmp_path, RECORDS[:1], "b")
    listed = Path(first["index_path"]).read_text().splitlines()
    Path(first["index_path"]).write_text("\n".join(listed[i] for i in lines))
    both = {key: [second[key], first[key], second[key]] for key in first}
    wanted = {"s": "F((), STRING, '')"}
    left_out = pytest.warns(UserWarning, match=f"readers.TFRecord: index '{first['index_path']}': its last record ends")
    with contextlib.nullcontext() if len(RECORDS) - 1 in lines else left_out:
        result = samples(ndd, wanted, **both)
    assert len(result) == len(lines) + 2
    assert result == samples(dali, wanted, **both)
    reader = TFRecord(features=features_of(tfrec, wanted), **both)
    assert reader[2]["s"].source_info == f"{first['path']} record 1"


@pytest.mark.oracle
@pytest.mark.skipif(not REAL.exists(), reason="needs real data")
def test_real_files(dali):
    paths = sorted(str(path) for path in REAL.glob("train-*-of-00002"))
    wanted = {"image/encoded": "F((), STRING, '')", "image/class/label": "F([1], INT, -1)"}
    result = samples(ndd, wanted, path=paths)
    assert len(result) == 40
    assert result == samples(dali, wanted, path=paths, index_path=[f"{path}.idx" for path in paths])
    boxes = {f"image/object/bbox/{side}": "V(FLOAT, 0.0)" for side in ("xmin", "ymin", "xmax", "ymax")}
    path = str(REAL / "coco_boxes.tfrecord")
    assert samples(ndd, boxes, path=path) == samples(dali, boxes, path=path, index_path=f"{path}.idx")
    reader = TFRecord(features=features_of(tfrec, wanted), path=paths)
    assert ndd.decoders.image(next(reader.next_epoch(batch_size=40))["image/encoded"]).batch_size == 40


def test_what_a_record_lacks_is_the_default(tmp_path):
    """DALI leaves what was in memory."""
    arguments = write_tfrecord(tmp_path, [example(("i", int64_list(1))), b"", RECORDS[0]])
    wanted = {"i": "F([6], INT, -4)", "f": "F((), FLOAT, 2.5)", "s": "F((), STRING, 'é')", "v": "V([2], FLOAT, 0.0)"}
    with pytest.raises(RuntimeError, match=r"sample 2 .* feature 'f': expected at most 1 value\(s\).*got 2"):
        values(wanted, **arguments)
    wanted["f"] = "F((2,), FLOAT, 2.5)"
    assert values(wanted, **arguments) == [
        {"i": [1, -4, -4, -4, -4, -4], "f": [2.5, 2.5], "s": [0xC3, 0xA9], "v": []},
        {"i": [-4] * 6, "f": [2.5, 2.5], "s": [0xC3, 0xA9], "v": []},
        {"i": [1, 2, -3, 2**62, -(2**63), 300], "f": [1.0, -2.5], "s": [97, 98, 99], "v": []},
    ]
    assert TFRecord(features=features_of(tfrec, wanted), **arguments)[1]["v"].shape == (0, 2)


def changing(kind, between, first, last):
    """A feature whose list is of one type, of another, and of the first again: only the last list counts."""
    lists = {INT: int64_list, FLOAT: float_list, STRING: bytes_list}
    value = {INT: 7, FLOAT: 1.5, STRING: b"text"}
    return b"".join(lists[k](*[value[k]] * count) for k, count in ((kind, first), (between, 1), (kind, last)))


@pytest.mark.oracle
@pytest.mark.parametrize("between", [INT, FLOAT, STRING])
@pytest.mark.parametrize("kind", [INT, FLOAT, STRING])
def test_only_the_last_type_of_a_list_counts(tmp_path, dali, kind, between):
    """The first list has more values than there is room for what counts."""
    many = 2000 if kind != between else 0
    records = [example(("v", changing(kind, between, many, 2))), example(("v", changing(kind, between, 1, 0)))]
    if kind == between:
        records.pop()
    wanted = {"v": {INT: "V(INT, 0)", FLOAT: "V(FLOAT, 0.0)", STRING: "F((), STRING, '')"}[kind]}
    arguments = write_tfrecord(tmp_path, records[:1])
    assert samples(ndd, wanted, **arguments) == samples(dali, wanted, **arguments)
    result = errors(wanted, **write_tfrecord(tmp_path, records))
    assert all(text is None or "expected values of" in text for text in result)


@pytest.mark.parametrize("kind", [INT, FLOAT])
def test_values_are_written_as_far_as_they_have_room(kind):
    """Whatever was counted before."""
    record = example(("v", changing(kind, INT + FLOAT - kind, 1000, 100)))
    whole = len(record)
    entries, places, rooms = np.array([[[0, 0]]]), np.array([[4]]), np.array([[3]])
    keys, data = np.frombuffer(b"v", np.uint8), np.frombuffer(record, np.uint8)
    assert example_kernels._features(data, 0, whole, keys, np.array([1]), entries[0])
    ints, floats = np.full(12, -9, np.int64), np.full(12, 9, np.uint32)
    example_kernels.decode(data, entries, np.array([kind]), places, rooms, ints, floats)
    bits = np.float32(1.5).view(np.uint32)
    assert ints.tolist() == ([-9] * 4 + [7] * 3 + [-9] * 5 if kind == INT else [-9] * 12)
    assert floats.tolist() == ([9] * 4 + [bits] * 3 + [9] * 5 if kind == FLOAT else [9] * 12)


def errors(wanted, **arguments):
    """What each sample says, None for the good ones."""
    reader = TFRecord(features=features_of(tfrec, wanted), **arguments)
    result: list[str | None] = []
    assert len(reader)  # what is wrong with a file as a whole is raised here
    epoch = reader.next_epoch()
    while True:
        try:
            next(epoch)
            result.append(None)
        except StopIteration:
            return result
        except RuntimeError as error:
            result.append(str(error))


ONE = {"one": "V(INT, 0)"}
GOOD = example(("one", int64_list(3)))


@pytest.mark.parametrize(
    ("wanted", "record", "text"),
    [
        ({"i": "F([5], INT, 0)"}, RECORDS[0], r"feature 'i': expected at most 5 value\(s\) .* got 6 \(Output"),
        ({"i": "V([4], INT, 0)"}, RECORDS[0], r"feature 'i': expected a multiple of 4 value\(s\) .* got 6"),
        ({"i": "V(FLOAT, 0.0)"}, RECORDS[0], r"feature 'i': expected values of float32, got int64"),
        ({"i": "F((), STRING, '')"}, RECORDS[0], r"feature 'i': expected values of string, got int64"),
        (ONE, GOOD[:-1], r"expected a tf.train.Example at byte \d+, got something else \(its CRC is right\)"),
        (ONE, b"\xff\xff\xff", "expected a tf.train.Example"),
        (ONE, example(("one", proto(3, proto(1, b"\xff")))), "expected a tf.train.Example"),
        (ONE, example(("one", proto(2, proto(1, b"123")))), "expected a tf.train.Example"),
        (ONE, proto(1, proto(1, b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")), "expected a tf.train.Example"),
    ],
)  # fmt: skip
def test_a_record_that_does_not_fit_harms_no_other(tmp_path, wanted, record, text):
    other = RECORDS[0] if wanted is ONE else b""
    arguments = write_tfrecord(tmp_path, [other, record, other])
    result = errors(wanted, **arguments)
    assert result[0] is result[2] is None
    assert result[1].startswith(f"readers.TFRecord: sample 1 ({arguments['path']} record 1): ")
    assert re.search(text, result[1])


def test_broken_files(tmp_path):
    arguments = write_tfrecord(tmp_path, [GOOD] * 4)
    whole, size = Path(arguments["path"]).read_bytes(), len(tfrecord_frame(GOOD))
    reader = TFRecord(features=features_of(tfrec, ONE), **arguments)
    assert len(reader.fetch([0, 1])["one"].tensors) == 2

    damaged = bytearray(whole)
    damaged[size + 12] = 0xFF
    Path(arguments["path"]).write_bytes(damaged)
    result = errors(ONE, **arguments)
    assert "got something else with a wrong CRC (0x" in result[1]
    assert result[0] is result[2] is result[3] is None
    with pytest.raises(RuntimeError, match=r"record 1\): .*wrong CRC"):  # the file changed under an open reader
        reader.fetch([0, 1])

    os.truncate(arguments["path"], 2 * size + 20)
    result = errors(ONE, **arguments)
    assert result[0] is None
    assert all(
        f"sample {n} ({arguments['path']} record {n})" in result[n] and "ends too early" in result[n] for n in (2, 3)
    )
    with pytest.raises(RuntimeError, match=rf"record 2: expected a record of bytes {2 * size} to .*: it is cut off"):
        errors(ONE, path=arguments["path"])
    os.truncate(arguments["path"], 2 * size + 5)
    with pytest.raises(RuntimeError, match=r"record 2: .*: it is cut off"):
        errors(ONE, path=arguments["path"])

    damaged = bytearray(whole)
    damaged[size + 1] ^= 1
    Path(arguments["path"]).write_bytes(damaged)
    with pytest.raises(
        RuntimeError, match=f"record 1: expected a record at byte {size}, got a wrong CRC of its length"
    ):
        errors(ONE, path=arguments["path"])
    assert "its head says" in errors(ONE, **arguments)[1]

    Path(arguments["path"]).write_bytes(whole)
    other = write_tfrecord(tmp_path, [example(("one", int64_list(3, 4)))] * 3, "b")
    result = errors(ONE, path=arguments["path"], index_path=other["index_path"])
    assert result[0] is None  # the first record begins where the other's does, and its length has a right CRC
    assert all("or the index that of another file?" in text for text in result[1:])


PACKERS = {
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "best": lambda data: zlib.compress(data, 9),
    "fast": lambda data: zlib.compress(data, 1),
    "stored": lambda data: zlib.compress(data, 0),
    "two files of gzip": lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:]) + bytes(20),
}


def numbered(count):
    """Records whose bytes cannot be compressed much, and a number in each."""
    rng = np.random.default_rng(0)
    texts = [rng.integers(0, 256, int(size), np.uint8).tobytes() for size in rng.integers(0, 4000, count)]
    return texts, [example(("n", int64_list(k)), ("text", bytes_list(text))) for k, text in enumerate(texts)]


def packed(tmp_path, records, packer, name="a"):
    """A compressed file, and the same file as it was before, with its index."""
    plain = write_tfrecord(tmp_path, records, f"{name}.plain")
    path = tmp_path / name
    path.write_bytes(PACKERS[packer](Path(plain["path"]).read_bytes()))
    return str(path), plain


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.drawn(1)
def test_compressed_files(tmp_path, packer, listed):
    path, plain = packed(tmp_path, RECORDS * 30, packer)
    wanted = {"s": "F((), STRING, '')", "i": "V(INT, 0)"}
    index = {"index_path": plain["index_path"]} if listed else {}
    assert samples(ndd, wanted, path=path, **index) == samples(ndd, wanted, **plain)
    both = {key: [value, value] for key, value in plain.items()}
    mixed = {"index_path": [plain["index_path"]] * 2} if listed else {}
    assert samples(ndd, wanted, path=[plain["path"], path], **mixed) == samples(ndd, wanted, **both)
    reader = TFRecord(features=features_of(tfrec, wanted), path=path)
    assert reader[89]["s"].source_info == f"{path} record 89"


def test_a_compressed_file_is_read_in_any_order(tmp_path, monkeypatch):
    """From the states that are kept, of which many are forgotten again; by several threads."""
    from ndd.readers.files import gzip_file

    monkeypatch.setattr(gzip_file, "_EVERY", 4000)
    monkeypatch.setattr(gzip_file, "_STEP", 1000)
    monkeypatch.setattr(gzip_file, "_MOST_STATES", 16)
    texts, records = numbered(300)
    path, plain = packed(tmp_path, records, "gzip")
    wanted = features_of(tfrec, {"n": "F([1], INT, -1)", "text": "F((), STRING, '')"})
    reader = TFRecord(path=path, features=wanted)
    order = np.random.default_rng(1).integers(0, 300, 200).tolist()

    def right(numbers):
        result = reader.fetch(numbers)
        assert np.asarray(result["n"].torch()).ravel().tolist() == numbers
        assert [bytes(np.asarray(text)) for text in result["text"].tensors] == [texts[n] for n in numbers]

    for start in range(0, 200, 10):
        right(order[start : start + 10])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(right, [order[start : start + 10] for start in range(0, 200, 10)]))
    shuffled = TFRecord(path=path, features=wanted, random_shuffle=True, initial_fill=50)
    assert sorted(int(sample["n"].torch()) for sample in shuffled.next_epoch()) == list(range(300))
    with gzip_file.GzipFile(path) as content:
        whole = Path(plain["path"]).read_bytes()
        for offset in np.random.default_rng(2).integers(0, len(whole) + 100, 300).tolist():
            assert content.read(offset, 5000) == whole[offset : offset + 5000]
        assert content.size == len(whole)
        assert len(content._states) <= 16


def test_broken_compressed_files(tmp_path):
    _, records = numbered(60)
    path, plain = packed(tmp_path, records, "gzip")
    whole = Path(path).read_bytes()
    wanted = {"n": "F([1], INT, -1)"}
    Path(path).write_bytes(whole[:-1000])
    with pytest.raises(RuntimeError, match="The compressed file ends too early"):
        errors(wanted, path=path)
    result = errors(wanted, path=path, index_path=plain["index_path"])
    assert result[0] is None
    assert "The compressed file ends too early" in result[-1]
    for place in (40, len(whole) // 2, len(whole) - 5):
        Path(path).write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with pytest.raises(RuntimeError, match=r"The compressed file is damaged|wrong CRC of its length|it is cut off"):
            errors(wanted, path=path)
    Path(path).write_bytes(gzip.compress(Path(plain["path"]).read_bytes()[:-3]))
    with pytest.raises(RuntimeError, match=r"record 59: expected a record of bytes .*: it is cut off"):
        errors(wanted, path=path)
    Path(path).write_bytes(gzip.compress(b"no records at all" * 10))
    with pytest.raises(RuntimeError, match=r"record 0: .* is this a TFRecord file"):
        errors(wanted, path=path)
    Path(path).write_bytes(whole)
    Path(plain["index_path"]).write_text(f"0 {10**17}\n{10**17} 20\n")
    result = errors(wanted, path=path, index_path=plain["index_path"])
    assert "larger than any can be" in result[0]
    assert "The content ends too early" in result[1]


def test_what_unpacks_to_very_much_is_refused(tmp_path, monkeypatch):
    from ndd.readers import tfrecord

    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(bytes(1 << 26), 1))
    with pytest.raises(RuntimeError, match=r"record 0: .*wrong CRC of its length"):
        errors(ONE, path=str(path))
    monkeypatch.setattr(tfrecord, "_MOST_RECORDS", 1 << 15)
    path.write_bytes(gzip.compress(tfrecord_frame(b"") * (1 << 18), 1))
    with pytest.raises(RuntimeError, match=r"expected fewer records in .* compressed bytes, got more than"):
        errors(ONE, path=str(path))


def test_no_regular_files(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (str(tmp_path / "fifo"), "/dev/zero", str(tmp_path), str(tmp_path / "none")):
        with pytest.raises(RuntimeError, match=re.escape(path)):
            errors(ONE, path=path)
    arguments = write_tfrecord(tmp_path, [GOOD])
    assert "Not a regular file" in errors(ONE, **{**arguments, "path": str(tmp_path / "fifo")})[0]


def test_crc():
    """Of "123456789" the CRC-32C is 0xE3069283."""
    from ndd.readers.formats.crc32c import masked_crc32c

    crc = 0xE3069283
    expected = ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32
    assert masked_crc32c(np.frombuffer(b"..123456789", np.uint8), 2, 11) == masked_crc(b"123456789") == expected


MISTAKES = [
    {"path": "none"}, {"index_path": "none.idx"}, {"index_path": []}, {"path": [], "index_path": []}, {"wanted": {}},
    {"index_path": ["a.idx", "a.idx"]}, {"text": ""}, {"text": "\n"}, {"text": "0"}, {"text": "a b"}, {"text": "0 10"},
    {"text": "-1 40"}, {"text": "0 16"}, {"text": "0 9999"}, {"wanted": {"one": "V(STRING, '')"}}, {"num_shards": 6},
    {"wanted": {"one": "F([2], STRING, '')"}}, {"use_o_direct": True}, {"wanted": {"one": "3"}},
    {"wanted": {"one": "F([1], INT, 0.5)"}}, {"wanted": {"one": "F([1], INT)"}}, {"wanted": {"one": "F(1, INT, 0)"}},
    {"wanted": {"one": "V(INT)"}}, {"wanted": {"one": "F([1], FLOAT, 1)"}}, {"wanted": {"one": "F([1], STRING, b'')"}},
    {"wanted": {"one": "F([-1], INT, 0)"}}, {"wanted": {"one": "V([-1, 2], INT, 0)"}}, {"meta_files_path": "x"},
    {"wanted": {"one": "F([1], 'int64', 0)"}}, {"wanted": {"one": "F([1.5], INT, 0)"}},
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("change", MISTAKES, ids=str)
def test_mistakes(tmp_path, dali, monkeypatch, change):
    monkeypatch.chdir(tmp_path)
    arguments = write_tfrecord(tmp_path, [GOOD])
    if "text" in change:
        (tmp_path / "a.idx").write_text(change["text"])
    arguments.update({key: value for key, value in change.items() if key not in ("text", "wanted")})
    kinds = []
    for package in (ndd, dali):
        with pytest.raises((RuntimeError, TypeError)) as raised:
            samples(package, change.get("wanted", ONE), **arguments)
        kinds.append(raised.type)
    assert kinds[0] is kinds[1]


def test_features_are_plain_values():
    feature = tfrec.FixedLenFeature([np.int64(2)], tfrec.int64, True)
    assert feature == tfrec.Feature((2,), tfrec.int64, True, False)
    assert repr(tfrec.VarLenFeature([2], 2, 0.0)) == "VarLenFeature((2,), float32, 0.0)"
    with pytest.raises(RuntimeError, match="positive extents"):  # kills DALI
        tfrec.VarLenFeature([0], tfrec.int64, 0)
    with pytest.raises(TypeError, match="expected a dict of features"):
        TFRecord(path="x", features=[feature])


def test_a_long_index_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("NDD_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "a"
    path.write_bytes(tfrecord_frame(example(("one", int64_list(3)))) * 40_000)
    assert os.path.getsize(path) > 1 << 20
    assert len(TFRecord(path=path, features=features_of(tfrec, ONE))) == 40_000
    monkeypatch.setattr(ndd.readers.tfrecord, "scan_tfrecord", None)
    reader = TFRecord(path=path, features=features_of(tfrec, ONE))
    assert len(reader) == 40_000
    assert int(np.asarray(reader[39_999]["one"])[0]) == 3
    assert struct.unpack("<Q", path.read_bytes()[:8])[0] == len(example(("one", int64_list(3))))
