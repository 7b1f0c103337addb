"""Data sets of Hugging Face: what the library wrote or holds in memory, with pictures that nobody decodes."""

import importlib
import struct
from typing import Any

import numpy as np
import pytest

import ndd
from ndd.readers import HuggingFace

datasets: Any = None
pa = pytest.importorskip("pyarrow")
Image = pytest.importorskip("PIL.Image")
COLUMNS = ["image", "label", "caption", "box"]


@pytest.fixture(scope="module", autouse=True)
def _library():
    """Its import takes a second, which collecting shall not."""
    global datasets
    datasets = pytest.importorskip("datasets")


@pytest.fixture(scope="module")
def dataset():
    pictures = [Image.fromarray(np.full((4, 5, 3), i, np.uint8)) for i in range(12)]
    features = datasets.Features({
        "image": datasets.Image(), "label": datasets.ClassLabel(num_classes=12), "caption": datasets.Value("string"),
        "box": datasets.Sequence(datasets.Value("float32")),
    })  # fmt: skip
    rows = {"image": pictures, "label": range(12), "caption": [f"number {i}" for i in range(12)], "box":
            [[i, 2 * i] for i in range(12)]}  # fmt: skip
    return datasets.Dataset.from_dict(rows, features=features)


def expected(dataset):
    raw = dataset.cast_column("image", datasets.Image(decode=False))
    return [(row["image"]["bytes"], row["label"], row["caption"], row["box"]) for row in raw]


def found(reader):
    return [
        (bytes(np.asarray(image)), label.torch().item(), caption, box.torch().tolist())
        for image, label, caption, box in reader.next_epoch()
    ]


def test_a_dataset_in_memory(dataset):
    assert found(HuggingFace(dataset, columns=COLUMNS)) == expected(dataset)
    chosen = dataset.shuffle(seed=1).select(range(2, 9)).filter(lambda row: row["label"] % 2 == 0)
    assert found(HuggingFace(chosen, columns=COLUMNS)) == expected(chosen)
    assert found(HuggingFace(chosen.with_format("torch"), columns=COLUMNS)) == expected(chosen)
    joined = datasets.concatenate_datasets([chosen, dataset])
    assert sorted(found(HuggingFace(joined, columns=COLUMNS, shuffle="global"))) == sorted(expected(joined))


def test_pictures_decode(dataset):
    (images, labels, *_) = next(HuggingFace(dataset, columns=COLUMNS, shuffle="global").next_epoch(6))
    pixels = ndd.decoders.image(images).torch()
    assert pixels[:, 0, 0, 0].tolist() == labels.torch().flatten().tolist()


@pytest.mark.parametrize("shards", [1, 3])
def test_a_folder_that_the_library_wrote(dataset, tmp_path, shards):
    dataset.save_to_disk(tmp_path / "data", num_shards=shards)
    assert found(HuggingFace(tmp_path / "data", columns=COLUMNS)) == expected(dataset)
    loaded = datasets.load_from_disk(tmp_path / "data")
    reader = HuggingFace(loaded, columns=COLUMNS)
    assert found(reader) == expected(dataset)
    assert reader[0][0].source_info.startswith(str(tmp_path))


@pytest.mark.parametrize("kind", ["new_stream", "new_file"])
def test_files_of_arrow(tmp_path, kind):
    table = pa.table({"n": range(10), "data": [b"x" * i for i in range(10)], "text": [str(i) for i in range(10)]})
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as out, getattr(pa.ipc, kind)(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    reader = HuggingFace(tmp_path / "a.arrow", columns=["text", "n", "data"], shuffle="global")
    rows = sorted((n.torch().item(), text, data.shape[0]) for text, n, data in reader.next_epoch())
    assert rows == [(i, str(i), i) for i in range(10)]


def test_paths_of_pictures(tmp_path):
    Image.fromarray(np.zeros((2, 2, 3), np.uint8)).save(tmp_path / "a.png")
    data = datasets.Dataset.from_dict({"image": [str(tmp_path / "a.png")]}).cast_column("image", datasets.Image())
    assert bytes(np.asarray(HuggingFace(data, columns="image")[0][0])) == (tmp_path / "a.png").read_bytes()


def test_wrong_data(dataset, tmp_path):
    for wrong in (datasets.DatasetDict(train=dataset), dataset.to_iterable_dataset(), 3):
        with pytest.raises(TypeError, match=r"expected a datasets\.Dataset of one split"):
            len(HuggingFace(wrong, columns="image"))
    with pytest.raises(RuntimeError, match="has no column 'colour'"):
        len(HuggingFace(dataset, columns=["image", "colour"]))
    with pytest.raises(RuntimeError, match="no rows"):
        len(HuggingFace(dataset.select([]), columns="image"))
    (tmp_path / "a.arrow").write_bytes(struct.pack("<II", 0xFFFFFFFF, 16) + bytes(16))
    with pytest.raises(RuntimeError, match="is the file damaged"):
        len(HuggingFace(tmp_path, columns="image"))
    table = pa.table({"a": ["x"]})
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    content = (tmp_path / "a.arrow").read_bytes()
    length = struct.unpack_from("<I", content, 4)[0]
    (tmp_path / "a.arrow").write_bytes(content[: 8 + length - 40] + b"\xff" * 40 + content[8 + length :])
    with pytest.raises(RuntimeError, match=r"a\.arrow: expected a schema of Arrow"):
        len(HuggingFace(tmp_path, columns="a"))
    table = pa.table({"a": pa.array(["x"]).dictionary_encode()})
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(RuntimeError, match="expected plain columns, got dictionaries"):
        len(HuggingFace(tmp_path, columns="a"))


@pytest.mark.parametrize("column", ["text", "list", "data"])
def test_offsets_that_lead_out_of_the_file(tmp_path, column):
    """The library would follow them, and end the process."""
    path = tmp_path / "a.arrow"
    table = pa.table({"text": ["ab", "cde", "f"], "list": [[1, 2], [3], [4]], "data": [b"xy", b"z", b""]})
    with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    offsets = {"text": (0, 2, 5, 6), "list": (0, 2, 3, 4), "data": (0, 2, 3, 3)}[column]
    content = path.read_bytes()
    right = struct.pack("<4i", *offsets)
    assert content.count(right) == 1
    path.write_bytes(content.replace(right, struct.pack("<4i", 0, 1 << 30, (1 << 30) + 9, offsets[3])))
    with pytest.raises(RuntimeError, match=r"HuggingFace.*a\.arrow"):
        HuggingFace(path, columns=column)[0]
    others = [name for name in table.column_names if name != column]
    assert len(HuggingFace(path, columns=others)[0]) == 2  # a column that nobody wants harms none


def test_names_that_are_no_text(tmp_path):
    path = tmp_path / "a.arrow"
    with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, pa.schema([("label", pa.int64())])) as stream:
        stream.write_table(pa.table({"label": [1]}))
    path.write_bytes(path.read_bytes().replace(b"label", b"la\xffel"))
    with pytest.raises(RuntimeError, match=r"HuggingFace: .*a\.arrow: expected a schema of Arrow"):
        len(HuggingFace(path, columns="label"))


def test_batches_of_arrow_files_may_be_written_to(tmp_path, monkeypatch):
    """Also where there are more record batches than stay decoded: the library's own memory may not be written to."""
    monkeypatch.setattr(importlib.import_module("ndd.readers.stores.chunks"), "_KEPT_BYTES", 100_000)
    table = pa.table({"image": [bytes([number]) * 5000 for number in range(64)]})
    with pa.ipc.new_stream(str(tmp_path / "a.arrow"), table.schema) as stream:
        stream.write_table(table, max_chunksize=8)
    reader = HuggingFace(tmp_path, columns="image")
    for _ in range(2):
        seen = []
        for (batch,) in reader.next_epoch(8):
            for sample in batch.tensors:
                seen.append(np.asarray(sample).tobytes())
                sample.torch().zero_()
        assert seen == table["image"].to_pylist()
