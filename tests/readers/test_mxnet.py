"""Contents of RecordIO files against DALI, and broken ones."""

import os
import struct
from pathlib import Path

import numpy as np
import pytest

import ndd
from ndd.readers import MXNet
from readers.datasets import recordio_item, recordio_part, write_recordio

REAL = Path(__file__).parents[3] / "shared" / "data" / "recordio"
ITEMS = [
    recordio_item(b"abc", [1.5]),
    recordio_item(b"defgh", [3.0, 4.0]),
    recordio_item(b"", [9.0]),
    recordio_item(b"xyz1234" * 100, [float(i) for i in range(40)]),
    recordio_item(b"q" * 70_000, [-1.0]),
]


def samples(package, **arguments):
    return [
        (bytes(np.asarray(image)), np.asarray(label).tolist(), str(np.asarray(label).dtype))
        for image, label in package.readers.MXNet(**arguments).next_epoch()
    ]


@pytest.mark.oracle
@pytest.mark.parametrize("lines", [None, [3, 0, 2], [4, 4, 1], [1]], ids=str)
def test_records(tmp_path, dali, lines):
    """All records; and an index that lists some, in any order, or one twice."""
    arguments = write_recordio(tmp_path, ITEMS)
    if lines is not None:
        listed = (tmp_path / "a.idx").read_text().splitlines()
        (tmp_path / "a.idx").write_text("\n".join(listed[i] for i in lines))
    result = samples(ndd, **arguments)
    assert len(result) == len(set(lines or range(5)))
    assert result == samples(dali, **arguments)
    assert result == samples(ndd, path=[Path(arguments["path"])], index_path=[arguments["index_path"].encode()])


@pytest.mark.oracle
def test_several_files_count_as_one(tmp_path, dali):
    write_recordio(tmp_path, ITEMS)
    write_recordio(tmp_path, ITEMS[::-1], "b")
    size = sum(map(len, ITEMS))
    lines = [(tmp_path / f"{name}.idx").read_text().split()[1::2] for name in "ab"]
    offsets = [*map(int, lines[0]), *(size + int(offset) for offset in lines[1])]
    (tmp_path / "both.idx").write_text("\n".join(f"{i} {offset}" for i, offset in enumerate(offsets)))
    arguments = {"path": [str(tmp_path / "a.rec"), str(tmp_path / "b.rec")], "index_path": str(tmp_path / "both.idx")}
    assert samples(ndd, **arguments) == samples(dali, **arguments)
    reader = MXNet(**arguments)
    assert reader[7][0].source_info == f"{tmp_path / 'b.rec'} record 2"
    assert bytes(np.asarray(reader.fetch([9, 3])[0].tensors[0])) == b"abc"


@pytest.mark.oracle
@pytest.mark.skipif(not REAL.exists(), reason="needs real data")
def test_real_files(dali):
    arguments = {"path": str(REAL / "train.rec"), "index_path": str(REAL / "train.idx")}
    result = samples(ndd, **arguments)
    assert len(result) == 40
    assert result == samples(dali, **arguments)
    images = ndd.decoders.image(next(MXNet(**arguments).next_epoch(batch_size=40))[0])
    assert images.batch_size == 40


def test_parts_are_joined(tmp_path):
    """MXNet cuts a record where its data holds the magic number, and leaves the number out."""
    magic = struct.pack("<I", 0xCED7230A)
    whole = struct.pack("<IfQQ", 0, 5.0, 0, 0) + b"ab" * 10 + magic + b"12345678" + magic + b"end"
    pieces = whole.split(magic)
    parts = [recordio_part(piece, kind) for piece, kind in zip(pieces, (1, 2, 3), strict=True)]
    arguments = write_recordio(tmp_path, [ITEMS[0], b"".join(parts), ITEMS[1]])
    assert [s[0] for s in samples(ndd, **arguments)] == [b"abc", whole[24:], b"defgh"]


def test_a_partial_index_reads_no_more_than_it_needs(tmp_path, monkeypatch):
    """The index leaves room up to the next listed record; a long record is read whole all the same."""
    from ndd.readers import mxnet

    monkeypatch.setattr(mxnet, "_FIRST_READ", 64)
    arguments = write_recordio(tmp_path, ITEMS)
    assert [len(s[0]) for s in samples(ndd, **arguments)] == [3, 5, 0, 700, 70_000]


def errors(reader):
    """What each sample of a reader says, None for the good ones."""
    result, epoch = [], reader.next_epoch()
    while True:
        try:
            next(epoch)
            result.append(None)
        except StopIteration:
            return result
        except RuntimeError as error:
            result.append(str(error))


def test_a_record_file_that_was_cut_off(tmp_path):
    arguments = write_recordio(tmp_path, ITEMS)
    os.truncate(arguments["path"], sum(map(len, ITEMS[:4])) + 100)
    result = errors(MXNet(**arguments))
    assert result[:4] == [None] * 4
    assert f"sample 4 ({arguments['path']} record 4)" in result[4]
    assert "ends too early" in result[4]
    os.truncate(arguments["path"], sum(map(len, ITEMS[:3])))
    result = errors(MXNet(**arguments))
    assert [error is None for error in result] == [True] * 3 + [False] * 2


def test_the_index_of_another_file(tmp_path):
    arguments = write_recordio(tmp_path, ITEMS)
    write_recordio(tmp_path, [recordio_item(b"other" * 9)] * 5, "b")
    result = errors(MXNet(path=arguments["path"], index_path=tmp_path / "b.idx"))
    assert result[0] is None
    for number, error in enumerate(result[1:], 1):
        assert f"readers.MXNet: sample {number} ({arguments['path']} record {number})" in error
        assert "the index of another file?" in error


def test_an_index_that_was_cut_off_at_a_line(tmp_path):
    arguments = write_recordio(tmp_path, ITEMS)
    lines = Path(arguments["index_path"]).read_text().splitlines(keepends=True)
    Path(arguments["index_path"]).write_text("".join(lines[:3]))
    end, size = sum(map(len, ITEMS[:3])), sum(map(len, ITEMS))
    with pytest.warns(UserWarning, match=f"its last record ends at byte {end}, .*a.rec' at {size}: the bytes between"):
        assert len(MXNet(**arguments)) == 3


def test_a_record_without_its_labels(tmp_path):
    short = recordio_part(b"only a few", 0)
    labels = recordio_part(struct.pack("<IfQQ", 9, 0.0, 0, 0) + b"12345678", 0)
    result = errors(MXNet(**write_recordio(tmp_path, [short, labels])))
    assert "expected a header of 24 bytes, got a record of 10 bytes" in result[0]
    assert "expected 9 labels, got a record of 32 bytes" in result[1]


@pytest.mark.oracle
@pytest.mark.parametrize(
    "change",
    [
        {"path": "none.rec"}, {"index_path": "none.idx"}, {"index_path": []}, {"path": []}, {"text": ""},
        {"index_path": ["a.idx", "a.idx"]}, {"num_shards": 6},
    ],
    ids=str,
)  # fmt: skip
def test_mistakes(tmp_path, dali, monkeypatch, change):
    monkeypatch.chdir(tmp_path)
    arguments = write_recordio(tmp_path, ITEMS)
    if "text" in change:
        (tmp_path / "a.idx").write_text(change["text"])
    arguments.update({k: v for k, v in change.items() if k != "text"})
    for package in (ndd, dali):
        with pytest.raises(RuntimeError):
            samples(package, **arguments)


@pytest.mark.parametrize("text", ["0 0\n1", "0 0\n1 x\n", "0 -4\n", "0 0 0\n"])
def test_a_broken_index_names_its_line(tmp_path, text):
    arguments = write_recordio(tmp_path, ITEMS)
    (tmp_path / "a.idx").write_text(text)
    with pytest.raises(RuntimeError, match=r'a\.idx":[12]: expected a key and an offset, got'):
        next(MXNet(**arguments).next_epoch())


def test_keys_may_be_any_words(tmp_path):
    arguments = write_recordio(tmp_path, ITEMS)
    (tmp_path / "a.idx").write_text("cat 0\n\n")
    assert samples(ndd, **arguments)[0][0] == b"abc"
