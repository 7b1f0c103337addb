"""Large values of Parquet, which are read where they lie in their pages: equal to what pyarrow reads, and to their batch alone."""

import importlib
import tracemalloc

import numpy as np
import pytest

from ndd.readers import Parquet
from ndd.readers.formats.parquet_footer import Leaf
from ndd.readers.formats.parquet_pages import large_values, numbers

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
SIZES = [5000, 0, 12_345, 2048, 70_000, 3000, 9000, 4000, 2100, 30_000, 8191]


def values(count=11, seed=0):
    draws = np.random.default_rng(seed)
    return [draws.integers(0, 256, SIZES[k % 11], np.uint8).tobytes() for k in range(count)]


def read(path, columns="image", **arguments):
    (batch,) = Parquet(path=path, columns=columns, **arguments).next_epoch(1000, last_batch="partial")
    return [bytes(np.asarray(sample)) for sample in batch[0].tensors]


@pytest.fixture
def direct(monkeypatch):
    """The values that were read without pyarrow, by column; None if they could not be."""
    module = importlib.import_module("ndd.readers.formats.parquet_file")
    results = []
    large = module.large_values
    monkeypatch.setattr(module, "large_values", lambda *a: results.append(large(*a)) or results[-1])
    return results


@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "gzip", "brotli", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.drawn(1)
def test_pages_of_every_kind(tmp_path, direct, codec, version, dictionary, nullable):
    rows = values(25)
    rows = [row + bytes([place]) for place, row in enumerate(rows)]  # none is there twice
    plain = pa.table([rows], pa.schema([pa.field("image", pa.binary(), nullable)]))
    struct = pa.struct([pa.field("bytes", pa.binary(), nullable), pa.field("path", pa.string())])
    nested = pa.table([[{"bytes": row, "path": "x"} for row in rows]], pa.schema([pa.field("image", struct, nullable)]))
    for name, table in (
        ("plain", plain),
        ("nested", nested),
        ("large", plain.cast(pa.schema({"image": pa.large_binary()}))),
    ):
        pq.write_table(
            table, tmp_path / f"{name}.parquet", row_group_size=20, compression=codec, data_page_version=version,
            use_dictionary=dictionary, data_page_size=20_000, write_batch_size=3, dictionary_pagesize_limit=50_000,
        )  # fmt: skip
        assert read(tmp_path / f"{name}.parquet") == rows
        assert [result is not None for result in direct] == ([] if codec == "lz4" else [True, True])
        direct.clear()


def test_what_is_unusual_is_read_by_pyarrow(tmp_path, direct):
    rows = values()
    for name, column in (("nulls", [*rows[:5], None, *rows[5:]]), ("shared", [rows[4]] * 7)):
        pq.write_table(pa.table({"image": column}), tmp_path / f"{name}.parquet")
        assert read(tmp_path / f"{name}.parquet", on_error="skip") == [row for row in column if row is not None]
        assert direct.pop() is None
    lists = pa.table({"image": [[rows[0]], [rows[2], rows[4]]], "small": [b"a", b"b"]})
    pq.write_table(lists, tmp_path / "lists.parquet")
    assert read(tmp_path / "lists.parquet", "small") == [b"a", b"b"]
    (batch,) = Parquet(path=tmp_path / "lists.parquet", columns="image").next_epoch(2)
    assert batch[0] == [[rows[0]], [rows[2], rows[4]]]
    assert direct == []


def test_who_writes_to_a_batch_changes_no_other(tmp_path, monkeypatch):
    """Batches may lie in the memory of their row group: what is asked for again is read again."""
    monkeypatch.setattr(importlib.import_module("ndd.readers.stores.chunks"), "_KEPT_BYTES", 100_000)
    for codec in ("none", "snappy"):
        rows = [row + bytes([place]) for place, row in enumerate(values(64))]
        pq.write_table(pa.table({"image": rows}), tmp_path / "a.parquet", row_group_size=8, compression=codec)
        reader = Parquet(path=tmp_path / "a.parquet", columns="image", sampler=[*range(64), *range(64), 3, 3, 60, 3])
        kept = []
        for (batch,) in reader.next_epoch(6, last_batch="partial"):
            got = [np.asarray(sample) for sample in batch.tensors]
            kept.append([array.tobytes() for array in got])
            for array in got:
                array[:] = 0
        assert [row for batch in kept for row in batch] == [*rows, *rows, rows[3], rows[3], rows[60], rows[3]]
        assert bytes(np.asarray(reader[3][0])) == rows[3]
        np.asarray(reader[3][0])[:] = 0
        assert bytes(np.asarray(reader[3][0])) == rows[3]


def test_numbers_in_runs():
    assert numbers(np.array([10, 2], np.uint8), 2, 5).tolist() == [2] * 5  # a run
    packed = np.packbits([int(bit) for n in range(8) for bit in f"{n:03b}"[::-1]], bitorder="little")
    assert numbers(np.array([3, *packed], np.uint8), 3, 6).tolist() == [0, 1, 2, 3, 4, 5]  # groups of eight
    assert numbers(np.array([4, 1, 3, *packed], np.uint8), 3, 5).tolist() == [1, 1, 0, 1, 2]
    for wrong in ([0], [0, 1], [255, 255, 255, 255, 255, 1], [3, 1]):
        with pytest.raises((ValueError, IndexError)):
            numbers(np.array(wrong, np.uint8), 3, 9)


def compact(fields):
    """A struct of Thrift's compact protocol with integers and structs, by number."""
    data, last = bytearray(), 0
    for number, value in fields.items():
        nested = isinstance(value, dict)
        data.append((number - last) << 4 | (12 if nested else 5))
        last = number
        if nested:
            data += compact(value)
        else:
            value = value << 1
            while value >= 128:
                data.append(value & 127 | 128)
                value >>= 7
            data.append(value)
    return bytes(data) + b"\0"


@pytest.mark.parametrize("encoding", [0, 8])
def test_a_page_that_claims_more_values_than_it_can_hold_costs_no_memory(encoding):
    """Its levels are one run of that many."""
    count = 1 << 40
    run = bytearray()
    head = count << 1
    while head >= 128:
        run.append(head & 127 | 128)
        head >>= 7
    levels = bytes([*run, head, 1])
    content = len(levels).to_bytes(4, "little") + levels + bytes(64)
    page = {1: 0, 2: len(content), 3: len(content), 5: {1: count, 2: encoding, 3: 3, 4: 3}}
    data = np.frombuffer(compact(page) + content, np.uint8)
    leaf = Leaf("bytes", 6, 0, count, 0, len(data), 1 << 60, None, None)
    tracemalloc.start()
    try:
        assert large_values(data, leaf, 1) is None
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
