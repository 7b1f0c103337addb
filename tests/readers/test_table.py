"""Tables in memory: forms of data, columns of paths, types, what is missing."""

from pathlib import Path

import numpy as np
import pytest

import ndd
from ndd.readers import Table

ROWS = [("c0", "0.jpg", 0), ("c1", "1.jpg", 1), ("c2", "2.jpg", 2)]
NAMES = ["caption", "path", "label"]


@pytest.fixture
def folder(tmp_path):
    for i in range(3):
        (tmp_path / f"{i}.jpg").write_bytes(b"x" * (i + 1))
    return tmp_path


def frames():
    columns = {name: [row[k] for row in ROWS] for k, name in enumerate(NAMES)}
    yield "rows", ROWS
    yield "lists", list(map(list, ROWS))
    yield "dict", columns
    yield "dicts", [dict(zip(NAMES, row, strict=True)) for row in ROWS]
    yield "generator of a table", tuple(ROWS)
    for name, make in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "table")):
        try:
            yield name, getattr(__import__(name), make)(columns)
        except ImportError:
            pass


@pytest.mark.parametrize("data", [data for _, data in frames()], ids=[name for name, _ in frames()])
def test_forms_of_data(folder, data):
    reader = Table(data, columns=NAMES, file_root=folder)
    (batch,) = reader.next_epoch(3)
    captions, images, labels = batch
    assert captions == ["c0", "c1", "c2"]
    assert [bytes(np.asarray(image)) for image in images.tensors] == [b"x", b"xx", b"xxx"]
    assert labels.torch().tolist() == [[0], [1], [2]]
    assert images.source_info == [str(folder / f"{i}.jpg") for i in range(3)]
    assert reader[1][0] == "c1"


def test_a_file_of_comma_separated_values(folder):
    polars = pytest.importorskip("polars")
    (folder / "a.csv").write_text("path,label\n1.jpg,4\n0.jpg,5\n")
    reader = Table(polars.read_csv(folder / "a.csv"), columns=["path", "label"], file_root=folder)
    assert [(image.shape, label.torch().item()) for image, label in reader.next_epoch()] == [((2,), 4), ((1,), 5)]


def test_which_columns_are_paths(folder):
    whole = [str(folder / "1.jpg"), str(folder / "2.jpg")]
    texts = ["one", "two"]

    def arguments(columns, **how):
        return [
            "file" if isinstance(v, ndd.Tensor) and v.shape == (2,) else "text" if isinstance(v, str) else "other"
            for v in Table(columns, columns=list(columns), **how)[0]
        ]

    assert arguments({"text": texts, "path": whole}) == ["text", "file"]
    assert arguments({"a": whole, "b": whole}) == ["file", "text"]
    assert arguments({"a": whole, "b": whole}, files=["a", "b"]) == ["file", "file"]
    assert arguments({"a": whole, "b": list(map(Path, whole))}) == ["text", "file"]
    assert arguments({"a": texts, "b": [b"123", b"1"]}) == ["text", "other"]
    assert arguments({"a": whole, "b": texts}, files=[]) == ["text", "text"]
    with pytest.raises(RuntimeError, match="No such file"):
        arguments({"a": texts})
    with pytest.raises(RuntimeError, match="expected some of `columns`"):
        arguments({"a": texts}, files="b")


def test_types_of_values():
    data = {
        "bytes": [b"a", b"bc"], "float": [1.5, float("nan")], "bool": [True, False], "array": [np.arange(2), np.arange(3)],
        "object": [{"a": 1}, None], "large": [2**70, 1], "list": [[1], [2, 3]],
    }  # fmt: skip
    (batch,) = Table(data, columns=list(data)).next_epoch(2)
    values = dict(zip(data, batch, strict=True))
    assert [bytes(np.asarray(v)) for v in values["bytes"].tensors] == data["bytes"]
    assert values["float"].dtype == ndd.float64
    assert values["bool"].torch().tolist() == [[True], [False]]
    assert [np.asarray(v).tolist() for v in values["array"].tensors] == [[0, 1], [0, 1, 2]]
    for name in ("object", "large", "list"):
        assert values[name] == data[name]


@pytest.mark.parametrize("kind", ["float32", "int16", "bool", "uint8"])
def test_numbers_keep_the_type_of_their_column(kind):
    numbers = np.array([1, 0, 1], kind)
    pandas, polars, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    frame = pandas.DataFrame({"n": numbers})
    for data in ({"n": numbers}, frame, polars.DataFrame({"n": numbers}), pa.table({"n": numbers})):
        (batch,) = Table(data, columns="n").next_epoch(3)
        assert batch[0].torch().numpy().dtype == kind
    with pytest.raises(RuntimeError, match="data has no column '0'; it has 0"):
        len(Table(pandas.DataFrame({0: numbers}), columns="0"))


def test_rows_without_a_file(folder):
    reader = Table([("0.jpg", 1), (None, 2), ("", 3), ("9.jpg", 4), ("2.jpg", 5)], columns=["p", "n"], file_root=folder,
                   on_error="skip")  # fmt: skip
    with pytest.warns(UserWarning, match="is left out"):
        ((_, numbers),) = reader.next_epoch(5, last_batch="partial")
    assert numbers.torch().flatten().tolist() == [1, 5]
    assert [bad.number for bad in reader.skipped] == [1, 2, 3]


def test_wrong_data(folder):
    for data, columns, said in (
        (ROWS, ["a"], "expected a in each row"), ({"a": [1]}, ["b"], "no column 'b'; it has a"), ([], ["a"], "of one length"),
        ({"a": [1], "b": [1, 2]}, ["a", "b"], r"of one length, got \[1, 2\]"), ([{"a": 1}, {}], ["a"], "in row 1"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=said):
            len(Table(data, columns=columns))
    with pytest.raises(TypeError, match="expected a frame or a list of rows, got int"):
        len(Table(3, columns="a"))
