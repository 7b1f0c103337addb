"""Mutated shards of MDS and LitData, zip archives, Parquet and Arrow files, and what reads them."""

from __future__ import annotations

import functools
import io
import json
import random
import struct
import zipfile
from typing import Any

from hostile.bounds_checked import Parser, scratch_folder
from hostile.containers import all_records, written
from hostile.mutation import EXTREMES, Framed, Number, encoded, extreme, mutated

import ndd
from ndd.readers.formats import parquet_pages


def plain_number(form: str) -> Any:
    """A frame of a length before its content."""
    width = 1 << 8 * struct.calcsize(form)
    return lambda content, length: struct.pack(form, length % width) + content


def spoiled(rng: random.Random, value: Any) -> Any:
    """A document of JSON in which something is another thing."""
    if isinstance(value, dict) and value:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: spoiled(rng, value[key])}
    if isinstance(value, list) and value:
        place = rng.randrange(len(value))
        return [*value[:place], spoiled(rng, value[place]), *value[place + rng.choice((0, 1, 1, 1)) :]]
    if isinstance(value, int) and rng.random() < 0.7:
        return extreme(rng, value)
    return rng.choice((None, "", "x", "../x", -1, 1.5, [], {}, True, value, *EXTREMES[::7]))


def shard(rng: random.Random, samples: list[list[Any]], between: bytes = b"") -> bytes:
    """A count, offsets and samples, mutated."""
    whole = [encoded(sample) for sample in samples]
    first = 4 * (len(whole) + 2) + len(between)
    offsets = [first + sum(map(len, whole[:k])) for k in range(len(whole) + 1)]
    parts: list[Any] = [Number(len(whole), "<I"), *[Number(offset, "<I") for offset in offsets], between, *samples]
    return mutated(rng, parts) if rng.random() < 0.7 else encoded(parts)


# MDS

_ENCODINGS = {
    "bytes": lambda rng: [b"x" * rng.choice((0, 1, 9))],
    "str": lambda rng: [rng.choice((b"", b"text", b"\xff"))],
    "json": lambda rng: [rng.choice((b"{}", b"[1]", b"[" * 3000))],
    "str_int": lambda rng: [rng.choice((b"12", b"-", b"9" * 5000))],
    "str_decimal": lambda rng: [rng.choice((b"1.5", b"1e999999999", b"x"))],
    "pil": lambda rng: [Number(2, "<I"), Number(2, "<I"), Number(3, "<I"), rng.choice((b"RGB", b"L  ")), bytes(12)],
    "list[jpeg]": lambda rng: [bytes(4), Number(2, "<I"), Number(1, "<I"), Number(2, "<I"), b"abc"],
    "ndarray": lambda rng: [Number(33, "<B"), Number(2 << 2 | 2, "<B"), Number(2, "<I"), Number(1, "<I"), bytes(8)],
    "ndarray:int16": lambda rng: [Number(1 << 2, "<B"), Number(2, "<B"), bytes(4)],
}


def make_mds(rng: random.Random) -> tuple[dict[str, Any], bytes]:
    names = rng.sample(list(_ENCODINGS), 3)
    samples: list[list[Any]] = []
    for _ in range(rng.randrange(1, 5)):
        fields: list[list[Any]] = [_ENCODINGS[name](rng) for name in names]
        samples.append([*[Number(len(encoded(field)), "<I") for field in fields], *fields, Number(7, "<q")])
    content = shard(rng, samples, b"{}")
    index: Any = {"version": 2, "shards": [{
        "column_names": [*"abc", "n"], "column_encodings": [*names, "int"], "column_sizes": [None, None, None, 8],
        "compression": None, "format": "mds", "samples": len(samples), "zip_data": None,
        "raw_data": {"basename": "shard.mds", "bytes": len(content)},
    }]}  # fmt: skip
    return spoiled(rng, index) if rng.random() < 0.3 else index, content


def read_mds(result: tuple[Any, bytes]) -> Any:
    written("index.json", json.dumps(result[0]).encode())
    written("shard.mds", result[1])
    return all_records(ndd.readers.MDS(path=str(scratch_folder()), columns=["n", "c", "b", "a"]))


# LitData

_LEAVES = {
    "bytes": lambda rng: [b"x" * rng.choice((0, 1, 9))],
    "str": lambda rng: [rng.choice((b"", b"text", b"\xff"))],
    "int": lambda rng: [Number(5, "<q")],
    "numpy": lambda rng: [Number(9, "<I"), Number(2, "<I"), Number(1, "<I"), Number(2, "<I"), bytes(8)],
    "tensor": lambda rng: [Number(0, ">I"), Number(2, ">I"), Number(2, ">I"), Number(1, ">I"), bytes(8)],
    "no_header_tensor:17": lambda rng: [bytes(rng.choice((0, 8, 16, 9)))],
    "jpeg_array": lambda rng: [Number(2, "<I"), Number(1, "<I"), Number(2, "<I"), b"abc"],
    "json": lambda rng: nested_value(rng, 3),
}


def nested_value(rng: random.Random, depth: int) -> list[Any]:
    """LitData's compact form of lists and dicts."""
    text = Framed([b"ab"], plain_number("<I"))
    kind = rng.randrange(6 if depth else 5)
    if kind == 0:
        return [b"\1", Number(2, "<I"), text, Framed([b""], plain_number("<I"))]
    if kind == 1:
        return [b"\2", Number(1, "<I"), bytes(8)]
    if kind == 2:
        return [b"\6", Number(1, "<I"), Number(1, "<I"), text, b"\x12", bytes(8)]
    if kind == 3:
        return [b"\0", Framed([b"[1]"], plain_number("<I"))]
    if kind == 4:
        return [b"\7", text]
    return [b"\5", Number(1, "<I"), text, nested_value(rng, depth - 1)]


def make_litdata(rng: random.Random) -> tuple[dict[str, Any], bytes]:
    kinds = rng.sample(list(_LEAVES), 3)
    samples: list[list[Any]] = []
    for _ in range(rng.randrange(1, 5)):
        fields: list[list[Any]] = [_LEAVES[kind](rng) for kind in kinds]
        samples.append([*[Number(len(encoded(field)), "<I") for field in fields], *fields])
    content = shard(rng, samples)
    leaf = {"type": None, "context": None, "children_spec": []}
    spec = {"type": "builtins.tuple", "context": "null", "children_spec": [leaf] * 3}
    index: Any = {
        "chunks": [{"chunk_bytes": len(content), "chunk_size": len(samples), "filename": "chunk.bin"}],
        "config": {"compression": None, "data_format": kinds, "data_spec": json.dumps([1, spec]), "item_loader": "PyTreeLoader"},
    }  # fmt: skip
    if rng.random() < 0.2:
        index["config"].update(compression="zstd", compression_level="batch")
        ends = [Number(sum(len(encoded(s)) for s in samples[:k]), "<I") for k in range(len(samples) + 1)]
        frames = [
            b"LDFZ01\0\0",
            Number(1, "<H"),
            bytes(2),
            Number(len(samples), "<I"),
            Number(2, "<I"),
            Number(0, "<I"),
        ]
        content = mutated(rng, [*frames, *ends])
    return spoiled(rng, index) if rng.random() < 0.3 else index, content


def read_litdata(result: tuple[Any, bytes]) -> Any:
    written("index.json", json.dumps(result[0]).encode())
    written("chunk.bin", result[1])
    return all_records(ndd.readers.LitData(path=str(scratch_folder()), columns=["2", "1", "0"]))


# Zip


def make_zip(rng: random.Random) -> bytes:
    """An archive as `zipfile` writes it, in pieces: headers whose numbers can be changed, and data."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for k in range(rng.randrange(1, 4)):
            archive.writestr(f"a/{k}.jpg", b"data " * rng.choice((0, 3, 60)), rng.choice((0, 8)))
    data = out.getvalue()
    parts: list[Any] = []
    at = 0
    forms = {b"PK\3\4": "<4s5H3I2H", b"PK\1\2": "<4s6H3I5H2I", b"PK\5\6": "<4s4H2IH"}
    while at < len(data):
        form = forms.get(data[at : at + 4])
        if form is None:
            following = [p for p in (data.find(magic, at + 1) for magic in forms) if p > 0]
            end = min(following, default=len(data))
            parts.append(data[at:end])
            at = end
            continue
        values = struct.unpack_from(form, data, at)
        kinds = "".join(letter * int(count or 1) for count, letter in _counted(form[3:]))
        parts += [values[0], *[Number(v, f"<{kind}") for v, kind in zip(values[1:], kinds, strict=True)]]
        at += struct.calcsize(form)
    return mutated(rng, parts)


def _counted(form: str) -> list[tuple[str, str]]:
    import re

    return re.findall(r"(\d*)([HIs])", form)


def read_zip(content: bytes) -> Any:
    return all_records(ndd.readers.Zip(path=written("a.zip", content)))


# Parquet and Arrow, whose libraries are well kept: what is ours are the places in them


NAMES = ["image", "label", "data", "text", "list", "views", "fixed", "kinds", "nested", "real", "flag", "sound"]


@functools.cache
def columns() -> Any:
    import pyarrow as pa

    media = [{"bytes": b"x" * i, "path": None} for i in range(6)]
    return pa.table({
        "image": media, "label": range(6), "data": [b"y" * i for i in range(6)], "text": ["a", "b", None, "d", "e", "f"],
        "list": [[1] * i for i in range(6)], "views": pa.array([b"0123456789abcdef" * (i % 2) for i in range(6)], pa.binary_view()),
        "fixed": pa.array([b"abc"] * 6, pa.binary(3)), "kinds": pa.array([b"p", b"q"] * 3, pa.large_binary()),
        "nested": [[[1.0, 2.0]] * (i % 3) for i in range(6)], "real": pa.array([1.5, None] * 3, pa.float32()),
        "flag": [True, False] * 3, "sound": [{"bytes": b"z", "path": ""}] * 4 + [{"bytes": None, "path": "none.wav"}] * 2,
    })  # fmt: skip


def spoiled_bytes(rng: random.Random, content: bytes) -> bytes:
    """Some bytes are others, more often near the end, where a Parquet file describes itself; or it is cut off."""
    if rng.random() < 0.1:
        return content
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        place = rng.randrange(len(data)) if rng.random() < 0.5 else len(data) - 1 - rng.randrange(len(data) // 3)
        data[place] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(data[: rng.randrange(len(data))] if rng.random() < 0.1 else data)


_WRITTEN: list[dict[str, Any]] = [
    {"compression": "none"}, {"compression": "snappy"}, {"compression": "zstd", "use_dictionary": False},
    {"compression": "gzip", "data_page_version": "2.0"}, {"compression": "brotli", "write_page_index": True},
    {"compression": "lz4", "write_page_checksum": True, "data_page_size": 16}, {"use_dictionary": False, "store_schema": False},
    {"use_dictionary": False, "column_encoding": {
        "label": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY", "data": "DELTA_LENGTH_BYTE_ARRAY", "real": "BYTE_STREAM_SPLIT",
    }},
]  # fmt: skip
"""How a Parquet file is written."""


@functools.cache
def parquet_file(number: int) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    table = columns()
    if int(pa.__version__.split(".")[0]) < 20:  # Parquet files take no views there
        views = pa.array(table["views"].to_pylist(), pa.binary())
        table = table.set_column(table.column_names.index("views"), "views", views)
    out = io.BytesIO()
    parquet.write_table(table, out, row_group_size=4, **_WRITTEN[number])
    return out.getvalue()


def some_names(rng: random.Random) -> list[str]:
    """Some columns: a damaged one hides what the others cost."""
    return NAMES if rng.random() < 0.3 else rng.sample(NAMES, 2)


def make_parquet(rng: random.Random) -> tuple[bytes, list[str], int]:
    """A file, columns, and the bytes from which values count as large: those are read without pyarrow."""
    return spoiled_bytes(rng, parquet_file(rng.randrange(len(_WRITTEN)))), some_names(rng), rng.choice((1, 1 << 11))


def read_parquet(made: tuple[bytes, list[str], int]) -> Any:
    path = written("a.parquet", made[0])
    before, parquet_pages.LARGE = parquet_pages.LARGE, made[2]
    try:
        return all_records(ndd.readers.Parquet(path=path, columns=made[1]))
    finally:
        parquet_pages.LARGE = before


@functools.cache
def arrow_file(codec: str | None, is_file: bool) -> bytes:
    import pyarrow as pa

    out = io.BytesIO()
    new, options = pa.ipc.new_file if is_file else pa.ipc.new_stream, pa.ipc.IpcWriteOptions(compression=codec)
    with new(out, columns().schema, options=options) as stream:
        stream.write_table(columns(), max_chunksize=4)
    return out.getvalue()


def make_arrow(rng: random.Random) -> tuple[bytes, list[str]]:
    return spoiled_bytes(rng, arrow_file(rng.choice((None, "lz4", "zstd")), rng.random() < 0.4)), some_names(rng)


def read_arrow(made: tuple[bytes, list[str]]) -> Any:
    path = written("a.arrow", made[0])
    return all_records(ndd.readers.HuggingFace(dataset=path, columns=made[1]))


ALLOWED = (ValueError, RuntimeError, OSError)
PARSERS: dict[str, Parser] = {
    "mds": Parser(make_mds, read_mds, ALLOWED),
    "litdata": Parser(make_litdata, read_litdata, ALLOWED),
    "zip": Parser(make_zip, read_zip, ALLOWED),
    "parquet": Parser(make_parquet, read_parquet, ALLOWED),
    "arrow": Parser(make_arrow, read_arrow, ALLOWED),
}
