"""Columns of Parquet files that pyarrow wrote: types, files, predicates, damage; the memory that batches keep."""

import gc
import importlib
import warnings

import numpy as np
import pytest
import warm_interpreter

import ndd
from ndd.readers import Parquet
from ndd.readers.formats.parquet_footer import row_groups
from readers.datasets import parquet as written

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

COLUMNS = {
    "bytes": pa.array([b"a", b"", b"ccc"]),
    "large": pa.array([b"a", b"", b"ccc"], pa.large_binary()),
    "view": pa.array([b"a", b"", b"a text that is longer than a view"], pa.binary_view()),
    "fixed": pa.array([b"aa", b"bb", b"cc"], pa.binary(2)),
    "struct": pa.array([{"bytes": b"a", "path": None}, {"bytes": b"bb", "path": "x"}, {"bytes": b"", "path": None}]),
    "int": pa.array([1, -2, 3], pa.int16()),
    "bool": pa.array([True, False, True]),
    "float": pa.array([1.5, None, 3.0], pa.float32()),
    "list": pa.array([[1, 2], [], [3]], pa.list_(pa.int32())),
    "pairs": pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float32(), 2)),
    "matrix": pa.array([[[1, 2], [3, 4]]] * 3),
    "ragged": pa.array([[[1], [3, 4]]] * 3),
    "text": pa.array(["é", None, "c"]),
    "chosen": pa.array(["x", "y", "x"]).dictionary_encode(),
    "mapping": pa.array([{"a": 1}, {"a": None}, None]),
}


@pytest.mark.parametrize("codec", ["snappy", "none", "zstd", "gzip"])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.drawn(1)
def test_types_are_those_of_pyarrow(tmp_path, codec, rows):
    table = pa.table(COLUMNS)
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=rows, compression=codec)
    expected = pq.read_table(tmp_path / "a.parquet").to_pydict()
    reader = Parquet(path=tmp_path / "a.parquet", columns=list(COLUMNS)[::-1])
    (values,) = reader.next_epoch(3)
    values = dict(zip(list(COLUMNS)[::-1], values, strict=True))
    for name in ("bytes", "large", "view", "fixed"):
        assert [bytes(np.asarray(v)) for v in values[name].tensors] == expected[name]
        assert values[name].dtype == ndd.uint8
    assert [bytes(np.asarray(v)) for v in values["struct"].tensors] == [b"a", b"bb", b""]
    assert values["int"].torch().tolist() == [[1], [-2], [3]]
    assert (values["int"].dtype, values["bool"].dtype, values["float"].dtype) == (ndd.int16, ndd.bool, ndd.float32)
    assert values["bool"].torch().flatten().tolist() == expected["bool"]
    assert np.array_equal(values["float"].torch().flatten().numpy(), [1.5, np.nan, 3], equal_nan=True)
    assert [np.asarray(v).tolist() for v in values["list"].tensors] == expected["list"]
    assert values["pairs"].torch().tolist() == expected["pairs"]
    assert values["matrix"].torch().tolist() == expected["matrix"]
    for name in ("ragged", "text", "chosen", "mapping"):
        assert values[name] == expected[name]
    assert reader[1][values_at := list(COLUMNS)[::-1].index("text")] is None
    assert reader[0][values_at] == "é"


def test_files_folders_lists(tmp_path):
    (tmp_path / "deep").mkdir()
    for name, numbers in (("b", [2, 3]), ("a", [0, 1]), ("deep/c", [4]), ("deep/empty", [])):
        pq.write_table(pa.table({"n": pa.array(numbers, pa.int64())}), tmp_path / f"{name}.parquet")
    (tmp_path / "notes.txt").write_text("no table")

    def numbers_of(path):
        return [n.torch().item() for (n,) in Parquet(path=path, columns="n").next_epoch()]

    assert numbers_of(tmp_path) == [0, 1, 2, 3, 4]
    assert numbers_of([tmp_path / "b.parquet", str(tmp_path / "a.parquet")]) == [2, 3, 0, 1]
    assert numbers_of(f"file://{tmp_path}/a.parquet") == [0, 1]


@pytest.mark.parametrize(
    ("predicate", "groups"),
    [
        ([("n", ">=", 6)], [2, 3]), ([("n", "<", 3)], [0]), ([("n", "==", 4)], [1]), ([("n", "in", [0, 11])], [0, 3]),
        ([("n", ">", 2), ("n", "<=", 5)], [1]), ([("n", "!=", 1)], [0, 1, 2, 3]), ([("text", "<", "b")], [0, 1]),
        ([("n", ">", "text")], [0, 1, 2, 3]), ([("nobody", ">", 1)], [0, 1, 2, 3]),
    ],
)  # fmt: skip
def test_row_groups_that_cannot_match_are_not_read(tmp_path, predicate, groups):
    table = pa.table({"n": range(12), "text": ["a"] * 6 + ["b"] * 6})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    reader = Parquet(path=tmp_path, columns="n", predicate=predicate)
    expected = [n for group in groups for n in range(3 * group, 3 * group + 3)]
    assert [n.torch().item() for (n,) in reader.next_epoch()] == expected
    assert reader[0][0].source_info == f"{tmp_path}/a.parquet row group {groups[0]} row 0"


def test_wrong_predicates(tmp_path):
    for wrong in ([("n", "=", 1)], ["n > 1"], [("n", ">")]):
        with pytest.raises(ValueError, match="expected conditions such as"):
            len(Parquet(path=tmp_path, columns="n", predicate=wrong))


def test_nulls_and_paths(tmp_path):
    (tmp_path / "one.jpg").write_bytes(b"JPEG")
    pictures = [{"bytes": b"x", "path": None}, {"bytes": None, "path": "one.jpg"}, {"bytes": None, "path": None}, None]
    pq.write_table(pa.table({"image": pictures, "n": pa.array([0, 1, 2, None])}), tmp_path / "a.parquet")
    reader = Parquet(path=tmp_path, columns=["image", "n"], on_error="skip")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        (batch,) = reader.next_epoch(4, last_batch="partial")
    assert [bytes(np.asarray(v)) for v in batch[0].tensors] == [b"x", b"JPEG"]
    assert [(bad.number, bad.error) for bad in reader.skipped] == [
        (number, "ValueError: expected a value in column 'image', got null") for number in (2, 3)
    ]


def test_lists_in_an_empty_list_are_an_array_too(tmp_path):
    boxes = [[[1.0, 2.0]], [], [[3.0, 4.0], [5.0, 6.0]]]
    kinds = {"free": pa.list_(pa.list_(pa.float32())), "pairs": pa.list_(pa.list_(pa.float32(), 2))}
    pq.write_table(pa.table({name: pa.array(boxes, kind) for name, kind in kinds.items()}), tmp_path / "a.parquet")
    (batch,) = Parquet(path=tmp_path, columns=["free", "pairs"]).next_epoch(3)
    assert [v.shape for v in batch[0].tensors] == [(1, 2), (0, 0), (2, 2)]
    assert [v.shape for v in batch[1].tensors] == [(1, 2), (0, 2), (2, 2)]


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret", "http://127.0.0.1/secret"])
def test_a_row_names_files_beside_the_table_only(tmp_path, path):
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "folder").mkdir()
    pq.write_table(pa.table({"image": [{"bytes": None, "path": path}]}), tmp_path / "folder" / "a.parquet")
    with pytest.raises(RuntimeError, match=r"row group 0 row 0.*expected the name of a file beside"):
        Parquet(path=tmp_path / "folder", columns="image")[0]


def test_no_columns(tmp_path):
    with pytest.raises(ValueError, match="columns: expected at least one name"):
        Parquet(path=tmp_path, columns=[])


def test_a_footer_of_too_many_rows():
    group = bytes([0x16]) + bytes([0xFE, *[0xFF] * 8, 0x01])  # field 1, an i64 of more rows than any group has
    with pytest.raises(ValueError, match="a row group of"):
        row_groups(bytes([0x49, 0x1C, 0x19, 0x0C]) + bytes([0x26]) + group[1:] + bytes([0, 0]))


def test_errors_when_it_is_opened(tmp_path):
    arguments = written(tmp_path, 6)
    for change, said in (
        ({"path": tmp_path / "nobody.parquet"}, "Cannot open"),
        ({"columns": ["image", "colour"]}, "has no column 'colour'; it has image, label, caption"),
        ({"columns": ["image", "label"], "predicate": [("label", ">", 100)]}, "no rows"),
    ):
        with pytest.raises(RuntimeError, match=said):
            len(Parquet(**{**arguments, **change}))
    for columns, error in ((["image", "image"], ValueError), (3, TypeError), ([3], TypeError)):
        with pytest.raises(error, match="columns"):
            Parquet(path=tmp_path, columns=columns)
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-6])
    with pytest.raises(RuntimeError, match="expected the metadata of a Parquet file"):
        len(Parquet(path=tmp_path, columns="label"))


def test_a_batch_keeps_its_own_rows_only(tmp_path):
    """Of a shuffle over row groups of 10 MB a batch of 16 rows of 100 kB must not keep 160 MB."""
    data = np.random.default_rng(0).integers(0, 255, (600, 100_000), np.uint8)
    table = pa.table({"image": [row.tobytes() for row in data], "n": range(600)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=100)
    reader = Parquet(path=tmp_path, columns=["image", "n"], shuffle="global")
    kept = []
    for images, numbers in reader.next_epoch(16, last_batch="drop"):
        for image, number in zip(images.tensors, numbers.tensors, strict=True):
            assert np.array_equal(np.asarray(image), data[np.asarray(number).item()])
        if len(kept) < 8:
            kept.append(images)
    reader.close()
    gc.collect()
    assert pa.total_allocated_bytes() < 90_000_000 + table.nbytes


@pytest.fixture
def loaded(monkeypatch):
    """The row groups that are decoded, as they are."""
    numbers = []
    store = importlib.import_module("ndd.readers.parquet")._RowGroups
    load = store.load
    monkeypatch.setattr(store, "load", lambda self, chunk: numbers.append(chunk) or load(self, chunk))
    return numbers


def test_a_shuffle_with_a_buffer_reads_each_row_group_once(tmp_path, monkeypatch, loaded):
    """The last rows of a row group are asked for long after the others, when later row groups have taken its place."""
    chunks = importlib.import_module("ndd.readers.stores.chunks")
    monkeypatch.setattr(chunks, "_KEPT_BYTES", 200_000)
    rows = [number.to_bytes(4, "little") * 250 for number in range(1600)]
    pq.write_table(pa.table({"a": rows}), tmp_path / "a.parquet", row_group_size=8, compression="none")
    reader = Parquet(path=tmp_path, columns="a", random_shuffle=True, initial_fill=64, seed=5)
    for _ in range(2):
        loaded.clear()
        seen = [bytes(np.asarray(row)) for (batch,) in reader.next_epoch(16) for row in batch.tensors]
        assert seen != rows
        assert sorted(seen) == sorted(rows)
        assert len(loaded) < 230  # and some of the next epoch, which are read ahead
    assert [reader[k][0].torch().numpy().tobytes() for k in range(0, 1600, 7)] == rows[::7]


def test_small_row_groups_do_not_displace_others(tmp_path, monkeypatch, loaded):
    """The memory of decoded row groups is shared by their sizes, not by the largest."""
    chunks = importlib.import_module("ndd.readers.stores.chunks")
    monkeypatch.setattr(chunks, "_KEPT_BYTES", 1_000_000)
    for number in range(8):
        rows = [(number * 100 + row).to_bytes(4, "little") * 250 for row in range(76)]
        pq.write_table(pa.table({"a": rows}), tmp_path / f"{number}.parquet", row_group_size=75, compression="none")
    reader = Parquet(path=tmp_path, columns="a", shuffle="global")
    for (batch,) in reader.next_epoch(16, last_batch="partial"):
        assert batch.batch_size
    assert sorted(loaded) == list(range(16))


def test_row_groups_of_a_batch_are_decoded_side_by_side(tmp_path):
    pq.write_table(pa.table({"n": range(12)}), tmp_path / "a.parquet", row_group_size=3)
    reader = Parquet(path=tmp_path, columns="n")
    store = reader._open(**reader._arguments)
    jobs = store.jobs([0, 11, 4, 1])
    assert jobs is not None
    assert jobs.count == 3
    for job in range(jobs.count):
        jobs.run(job)
    assert [int(record[0][0]) for record in jobs.records()] == [0, 11, 4, 1]
    assert store.jobs([0, 11, 4]) is None  # a thread has little to do
    assert store.jobs([0, 7]) is not None
    store.close()
    assert store.jobs([0, 11]) is not None


def test_pandas_is_not_imported(tmp_path):
    """pyarrow's own conversions do so, which costs half a second before the first batch."""
    table = pa.table(
        {"n": [1, 2], "x": [1.0, None], "b": [True, False], "t": ["a", "b"], "l": [[1], [2, 3]], "d": [b"x", None]}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    program = (
        "import sys, ndd\n"
        "reader = ndd.readers.Parquet(path=sys.argv[1], columns=['n', 'x', 'b', 't', 'l', 'd'])\n"
        "assert reader[0][2].torch().item() is True and reader[0][4].torch().tolist() == [1]\n"
        "assert 'pyarrow' in sys.modules and 'pandas' not in sys.modules"
    )
    done = warm_interpreter.run(program, str(tmp_path), has_ndd=True)
    assert done.returncode == 0, done.stderr
