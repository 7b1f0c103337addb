"""Records of Caffe and Caffe2 in LMDBs against DALI, and broken ones."""

import os
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

import ndd
from ndd.readers import Caffe, Caffe2
from readers.datasets import datum, field, tensor, write_lmdb

REAL = Path(__file__).parents[3] / "shared" / "data" / "lmdb"
IMAGE, LABEL = tensor(4, [1], texts=[b"abc"]), tensor(2, [1], integers=[7])
BOX, FLOATS = tensor(2, [4], integers=[1, -2, 3, 4]), tensor(1, [2], floats=[0.5, -2])


def samples(package, kind, **arguments):
    """All samples as plain values; the type of the error where one was raised."""
    try:
        reader = getattr(package.readers, kind)(**arguments)
        return [
            [(str(a.dtype), a.shape, a.ravel().tolist()) for a in map(np.asarray, values)]
            for values in reader.next_epoch()
        ]
    except (RuntimeError, IndexError) as error:
        return type(error)


DATUMS = {
    "plain": [datum(b"abc", 7), datum(b"", -3)],
    "empty record": [b"", datum(b"x", 1)],
    "garbage": [b"\xff\xff\xff"],
    "cut off": [datum(b"abc", 7)[:4]],
    "twice": [field(4, b"x") + field(4, b"yz") + field(5, 1) + field(5, 2)],
    "other wires": [field(4, 5) + field(5, b"a")],
    "unknown fields": [
        field(99, 5) + field(2000, b"a") + bytes([0x4D, 1, 2, 3, 4]) + datum(b"ab", 2) + field(6, b"1234")
    ],
    "a group": [bytes([9 << 3 | 3]) + field(1, 1) + bytes([9 << 3 | 4]) + datum(b"abc", 2)],
    "tensors": [IMAGE + LABEL],
    "large": [datum(bytes(range(256)) * 40, 2**31 - 1), datum(b"q" * 5000, 0), datum(b"q" * 1500, -(2**31))],
}


@pytest.mark.oracle
@pytest.mark.parametrize("case", DATUMS)
def test_datums(tmp_path, dali, case):
    path = write_lmdb(tmp_path / "a", DATUMS[case])
    expected = samples(dali, "Caffe", path=path)
    assert samples(ndd, "Caffe", path=path) == expected
    assert samples(ndd, "Caffe", path=[Path(path, "data.mdb")]) == expected


@pytest.mark.oracle
@pytest.mark.parametrize("chosen", [(True, False), (False, True), (False, False)])
def test_outputs_that_are_left_out(tmp_path, dali, chosen):
    arguments = {"path": write_lmdb(tmp_path / "a", DATUMS["plain"])}
    arguments["image_available"], arguments["label_available"] = chosen
    assert samples(ndd, "Caffe", **arguments) == samples(dali, "Caffe", **arguments)


TENSORS = {
    "single": (IMAGE + LABEL, {}),
    "not packed": (IMAGE + tensor(2, [1], integers=[7], packed=False), {}),
    "a float": (IMAGE + tensor(1, [1], floats=[1.5]), {}),
    "floats not packed": (IMAGE + tensor(1, [2], floats=[1.5, 2.5], packed=False), {"label_type": 2}),
    "no type": (IMAGE + tensor(None, [1], floats=[1.5]), {}),
    "pixels": (tensor(3, [2, 3, 1], pixels=b"abcdef") + LABEL, {}),
    "pixels of another shape": (tensor(3, [2, 3, 1], pixels=b"abc") + LABEL, {}),
    "two texts": (tensor(4, [2], texts=[b"ab", b"c"]) + LABEL, {}),
    "a number as image": (LABEL + LABEL, {}),
    "a label of 64 bits": (IMAGE + field(1, field(2, 10) + field(10, 5)), {}),
    "two labels": (IMAGE + tensor(2, [2], integers=[7, 8]), {}),
    "no label in it": (IMAGE + tensor(2, [0], integers=[]), {}),
    "dense": (IMAGE + tensor(1, [3], floats=[1, 2, 3]), {"label_type": 2, "num_labels": 3}),
    "dense, not checked": (IMAGE + tensor(2, [3], integers=[1, 2, 3]), {"label_type": 2, "num_labels": 5}),
    "none": (IMAGE, {"label_type": 4}),
    "none, box": (IMAGE + BOX, {"label_type": 4, "bbox": True}),
    "box": (IMAGE + LABEL + BOX, {"bbox": True}),
    "a box of 2": (IMAGE + LABEL + tensor(2, [2], integers=[1, 2]), {"bbox": True}),
    "a box of floats": (IMAGE + LABEL + tensor(1, [4], floats=[1, 2, 3, 4]), {"bbox": True}),
    "additional": (IMAGE + LABEL + FLOATS, {"additional_inputs": 1}),
    "additional integers": (IMAGE + LABEL + BOX, {"additional_inputs": 1}),
    "all": (IMAGE + LABEL + FLOATS + FLOATS + BOX, {"additional_inputs": 2, "bbox": True}),
    "more tensors": (IMAGE + LABEL + BOX + BOX, {}),
    "one tensor": (IMAGE, {}),
    "without image": (LABEL, {"image_available": False}),
    "an image where the label is": (IMAGE + LABEL, {"image_available": False}),
    "label type 5": (IMAGE + LABEL, {"label_type": 5}),
    "additional -1": (IMAGE + LABEL, {"additional_inputs": -1}),
    "nothing": (IMAGE + LABEL, {"image_available": False, "label_type": 4}),
    "garbage": (b"\xff\xff", {}),
}


@pytest.mark.oracle
@pytest.mark.parametrize("case", TENSORS)
def test_tensors(tmp_path, dali, case):
    record, arguments = TENSORS[case]
    path = write_lmdb(tmp_path / "a", [record] * 2)
    assert samples(ndd, "Caffe2", path=path, **arguments) == samples(dali, "Caffe2", path=path, **arguments)


def test_labels_by_index(tmp_path):
    """DALI 2.4.0 documents both, and refuses good records."""
    sparse = IMAGE + tensor(2, [2], integers=[1, 3])
    weighted = sparse + tensor(1, [2], floats=[0.5, 0.25])
    path = write_lmdb(tmp_path / "a", [weighted])
    assert samples(ndd, "Caffe2", path=path, label_type=1, num_labels=5)[0][1] == ("int32", (5,), [0, 1, 0, 1, 0])
    assert samples(ndd, "Caffe2", path=path, label_type=3, num_labels=4)[0][1] == ("float32", (4,), [0, 0.5, 0, 0.25])
    with pytest.raises(RuntimeError, match="expected labels from 0 to num_labels - 1 = 2, got 3"):
        Caffe2(path=path, label_type=3, num_labels=3)[0]
    path = write_lmdb(tmp_path / "b", [sparse + FLOATS + BOX, sparse + BOX, sparse + tensor(1, [1], floats=[1])])
    reader = Caffe2(path=path, label_type=3, num_labels=9)
    assert np.asarray(reader[0][1]).tolist() == [0, 0.5, 0, -2, 0, 0, 0, 0, 0]
    for number, said in ((1, "weights as FLOAT"), (2, "as many weights as labels, got 1 for 2")):
        with pytest.raises(RuntimeError, match=rf"sample {number} \(.*data.mdb record {number}\).*{said}"):
            reader.fetch([number])


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (datum(b"abc", 7), "expected 4 tensor.s. in the record, got 0"),
        (tensor(4, [1]) + LABEL + FLOATS + BOX, "its tensor of texts is empty"),
        (IMAGE + LABEL + BOX, "expected 4 tensor.s. in the record, got 3"),
        (IMAGE + LABEL + tensor(4, [1], texts=[b"x"]) + BOX, r"additional\[0\] as FLOAT .* got a tensor of type 4"),
        (IMAGE + field(1, field(2, 1) + field(3, b"12345")) + FLOATS + BOX, "cut off"),
        (tensor(3, [2**40, 2**40], pixels=b"") + LABEL + FLOATS + BOX, "image of shape"),
        (field(1, b"\xff") + LABEL + FLOATS + BOX, "that is not one"),
    ],
)
def test_records_that_do_not_fit(tmp_path, record, said):
    """Some of these end DALI's process."""
    good = IMAGE + LABEL + FLOATS + BOX
    reader = Caffe2(path=write_lmdb(tmp_path / "a", [good, record, good]), additional_inputs=1, bbox=True)
    epoch = reader.next_epoch()
    next(epoch)
    with pytest.raises(RuntimeError, match=rf"readers.Caffe2: sample 1 \(.*data.mdb record 1\): .*{said}"):
        next(epoch)
    assert np.asarray(next(epoch)[3]).tolist() == [1, -2, 3, 4]


@pytest.mark.oracle
def test_trees_of_all_depths(tmp_path, dali):
    """Records within leaves and outside them, up to three levels, keys of all lengths; and several LMDBs as one."""
    rng = np.random.default_rng(0)
    paths = []
    for count, largest in ((1, 10), (40, 3000), (300, 30), (500, 1900)):
        records = [datum(rng.bytes(int(rng.integers(0, largest))), i) for i in range(count)]
        keys = [b"%04d" % i + b"k" * int(rng.integers(0, 400)) for i in range(count)]
        paths.append(write_lmdb(tmp_path / str(count), records, keys, deleted=count // 3))
    ours, theirs = (samples(package, "Caffe", path=paths) for package in (ndd, dali))
    assert len(ours) == sum(count - count // 3 for count in (1, 40, 300, 500))
    assert ours == theirs
    reader = Caffe(path=paths)
    assert reader[2][0].source_info == f"{paths[1]}/data.mdb record 1"


@pytest.mark.oracle
@pytest.mark.skipif(not REAL.exists(), reason="needs real data")
def test_real_lmdbs(dali):
    for kind, names in (("Caffe", ["caffe", "caffe_part2"]), ("Caffe2", ["caffe2"])):
        paths = [str(REAL / name) for name in names]
        result = samples(ndd, kind, path=paths)
        assert result == samples(dali, kind, path=paths)
        images = ndd.decoders.image(getattr(ndd.readers, kind)(path=paths).fetch(range(len(result)))[0])
        assert images.batch_size == len(result) == {"Caffe": 40, "Caffe2": 24}[kind]


@pytest.mark.oracle
@pytest.mark.parametrize("path", ["none", [], "a folder", "a file", "no records"], ids=str)
def test_mistakes(tmp_path, dali, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a folder").mkdir()
    (tmp_path / "a file").write_bytes(b"x" * 10_000)
    write_lmdb(tmp_path / "no records", [])
    for package in (ndd, dali):
        with pytest.raises(RuntimeError):
            next(package.readers.Caffe(path=path).next_epoch())


def outcome(read):
    """What it gives, or the text of its RuntimeError."""
    try:
        return read(), ""
    except RuntimeError as error:
        return None, str(error)


def test_a_file_that_was_cut_off(tmp_path):
    """At opening if the tree is cut, else at the records that are; never fewer samples, and no signal."""
    path = Path(write_lmdb(tmp_path / "a", [datum(b"x" * 9000, i) for i in range(40)]), "data.mdb")
    whole, outcomes = path.read_bytes(), set()
    for pages in range(0, len(whole) // 4096, 8):
        path.write_bytes(whole[: pages * 4096 + 5])
        reader = Caffe(path=path)
        size, error = outcome(lambda reader=reader: len(reader))
        if error:
            outcomes.add("opening")
            assert str(path) in error
            continue
        assert size == 40
        for number in range(40):
            label, error = outcome(lambda reader=reader, number=number: int(np.asarray(reader[number][1])[0]))
            if error:
                outcomes.add("record")
                assert f"sample {number} ({path} record {number}): expected a readable record" in error
            else:
                assert label == number
    assert outcomes == {"opening", "record"}


def test_damaged_trees_are_refused(tmp_path):
    """Whatever stands in the pages: the index is right, or a sentence."""
    path = Path(write_lmdb(tmp_path / "a", [datum(b"x" * 300, i) for i in range(60)]), "data.mdb")
    whole, rng, refused = path.read_bytes(), np.random.default_rng(0), 0
    for _ in range(100):
        damaged = bytearray(whole)
        for at in rng.integers(0, len(whole) // 4096, 4) * 4096 + rng.integers(0, 300, 4):
            damaged[at] = rng.integers(256)
        path.write_bytes(damaged)
        size, error = outcome(lambda: len(Caffe(path=path)))
        refused += bool(error)
        assert size == 60 or error.startswith(
            (f"readers.Caffe: {path}: expected", f"readers.Caffe: No records in {path}", "readers.Caffe: Cannot")
        )
    assert refused > 10


@pytest.mark.parametrize(
    ("place", "form", "value", "said"),
    [
        (40, "<I", 1 << 31, "pages of 256 to 65536 bytes, got .* and 2147483648 bytes"),
        (40, "<I", 1 << 17, "pages of 256 to 65536 bytes"),
        (94, "<H", 33, "at most 32 levels"),
        (128, "<Q", 2**64 - 1, "its tree leads to other pages"),
        (128, "<Q", 2**63, "its tree leads to other pages"),
        (136, "<Q", 2**45, "on 35184372088833 pages"),
    ],
)
def test_numbers_of_a_meta_page_that_cannot_be(tmp_path, place, form, value, said):
    path = Path(write_lmdb(tmp_path / "a", [datum(b"x" * 300, i) for i in range(60)]), "data.mdb")
    content = bytearray(path.read_bytes())
    for page in (0, 4096):
        struct.pack_into(form, content, page + place, value)
    path.write_bytes(content)
    with pytest.raises(RuntimeError, match=said):
        len(Caffe(path=path))


@pytest.mark.timeout(60)
def test_a_tree_that_leads_to_a_page_twice(tmp_path):
    """Each level would have as many pages as all nodes of the level before, for 32 levels."""
    path = Path(write_lmdb(tmp_path / "a", [datum(b"x" * 900, i) for i in range(60)]), "data.mdb")
    content = bytearray(path.read_bytes())
    page = next(p for p in range(2 * 4096, len(content), 4096) if content[p + 10] & 1)  # a branch
    count = (struct.unpack_from("<H", content, page + 12)[0] - 16) // 2
    assert count > 2
    for k in range(count):
        node = page + struct.unpack_from("<H", content, page + 16 + 2 * k)[0]
        struct.pack_into("<I", content, node, page // 4096)
    for meta in (0, 4096):
        struct.pack_into("<H", content, meta + 94, 32)
        struct.pack_into("<Q", content, meta + 136, 2**44)
    path.write_bytes(content)
    with pytest.raises(RuntimeError, match="its tree leads to other pages, or to one page twice"):
        len(Caffe(path=path))


def test_what_is_no_regular_file(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", "/dev/zero", "/dev/null"):
        with pytest.raises(RuntimeError, match=rf"Cannot open: {path}: Not a regular file"):
            len(Caffe(path=path))


def test_an_lmdb_that_is_written_to(tmp_path):
    """Pages may be used anew: what is no record of the index any more is refused, and harms nothing else."""
    path = write_lmdb(tmp_path / "a", [datum(b"x" * 100 * i, i) for i in range(60)])
    reader = Caffe(path=path)
    assert len(reader) == 60
    shutil.rmtree(path)
    write_lmdb(tmp_path / "a", [datum(b"y" * 77 * (60 - i), 100 + i) for i in range(60)])
    reader.close()
    for number in range(60):
        with pytest.raises(
            RuntimeError, match=rf"record {number}\): .*(was the LMDB written to|ends too early|bytes that is not one)"
        ):
            reader.fetch([number])


def test_tables_and_lists_are_refused(tmp_path):
    import lmdb

    with lmdb.open(str(tmp_path / "named"), max_dbs=2) as environment:
        table = environment.open_db(b"images")
        with environment.begin(write=True) as transaction:
            transaction.put(b"1", datum(b"a", 1), db=table)
    with pytest.raises(RuntimeError, match="records in its main table, got one with named tables"):
        len(Caffe(path=tmp_path / "named"))


@pytest.mark.parametrize("value", [2**31, 2**32 + 5, -(2**31) - 1, 2**62])
@pytest.mark.drawn(1)
def test_numbers_of_more_than_32_bits_are_refused(tmp_path, value):
    """At their batch: DALI keeps the lower bits, so that 2**32 + 5 is class 5."""
    wrong = tensor(2, [1], integers=[value])
    two, box = tensor(2, [2], integers=[1, value], packed=False), tensor(2, [4], integers=[1, 2, value, 4])
    additional, boxes = {"additional_inputs": 1}, {"image_available": False, "bbox": True}
    for number, (kind, sound, broken, more) in enumerate(
        (
            (Caffe, datum(b"a", 3), datum(b"b", value), {}),
            (Caffe2, IMAGE + tensor(2, [1], integers=[-(2**31)]), IMAGE + wrong, {}),
            (Caffe2, IMAGE + LABEL + LABEL, IMAGE + LABEL + two, additional),
            (Caffe2, LABEL + BOX, LABEL + box, boxes),
        )
    ):
        reader = kind(path=write_lmdb(tmp_path / str(number), [sound, broken, sound]), on_error="skip", **more)
        with pytest.warns(UserWarning, match=f"of 32 bits.*, got {value}"):
            (batch,) = list(reader.next_epoch(3, last_batch="partial"))
        assert batch[0].batch_size == 2
        assert [bad.number for bad in reader.skipped] == [1]
