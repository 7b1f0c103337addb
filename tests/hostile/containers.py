"""Mutated containers of records, and what reads them: TFRecord, protobuf, LMDB, RecordIO, tar, `.npy`, LZ4."""

from __future__ import annotations

import gzip
import os
import random
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from hostile.bounds_checked import Parser, fenced, fenced_copy, scratch_folder
from hostile.mutation import Framed, Number, encoded, extreme, mutated

import ndd
from ndd.readers.formats.crc32c import masked_crc32c

# What is common to several


def all_records(reader: Any) -> list[Any]:
    """All records of a reader, read through its store; raises what is wrong with the first that is broken, as the reader says
    it."""
    result: list[Any] = []
    try:
        store = reader._open(**reader._arguments)
    except (RuntimeError, OSError, ValueError):
        raise_named(reader, 0)
        raise
    try:
        for start in range(0, min(len(store), 64), 8):
            result += list(store.records(list(range(start, min(start + 8, len(store))))))
    finally:
        close = getattr(store, "close", None)
        if close is not None:
            close()
    for number, record in enumerate(result):
        if isinstance(record, BaseException):
            raise_named(reader, number)
            raise record
        for sample in record:
            if isinstance(sample, np.ndarray):
                sample.sum()  # all of it can be read
    return result


def raise_named(reader: Any, number: int) -> None:
    """Raises the error of a sample, which names the reader and its file."""
    try:
        reader[number]
    except (RuntimeError, OSError, ValueError) as error:
        said = str(error)
        folders = str(scratch_folder()), os.getcwd()  # the paths of a manifest may be relative
        if reader._display not in said or not any(folder in said for folder in folders):
            raise AssertionError(f"an error that does not name its reader and its file: {error!r}") from error
        raise
    finally:
        reader.close()


def written(name: str, content: bytes) -> str:
    """The path of a file with this content."""
    path = scratch_folder() / name
    path.write_bytes(content)
    return str(path)


def index_lines(rng: random.Random, rows: list[list[Any]], spoil: bool) -> bytes:
    """Lines of words; with `spoil` some number, word or line is another one."""
    if spoil:
        row = rng.choice(rows)
        if rng.random() < 0.2:
            rows.insert(rng.randrange(len(rows)), list(row))
        else:
            place = rng.randrange(len(row))
            value = row[place]
            row[place] = extreme(rng, value) if isinstance(value, int) else rng.choice(("", "x" * 300, "-", "٣"))
    return "".join(" ".join(map(str, row)) + "\n" for row in rows).encode()


# Protobuf


def varint(number: int) -> bytes:
    """As protobuf writes it, in more bytes than there should be where the number is too large."""
    number, result = number % (1 << 70), b""
    while number > 127:
        result, number = result + bytes([number & 127 | 128]), number >> 7
    return result + bytes([number])


def message(number: int, parts: list[Any]) -> Framed:
    """A field with a length."""
    tag = varint(number << 3 | 2)
    return Framed(parts, lambda content, length: tag + varint(length) + content)


def scalar(number: int, value: int) -> list[Any]:
    """A field that is a varint."""
    return [Number(number << 3, varint), Number(value, varint)]


def group(number: int, parts: list[Any]) -> list[Any]:
    """A field of the old form."""
    return [Number(number << 3 | 3, varint), parts, Number(number << 3 | 4, varint)]


def values(rng: random.Random, kind: int) -> Framed:
    """A list of bytes (1), floats (2) or integers (3) of a `tf.train.Feature`."""
    count = rng.choice((0, 2, 2, 2, 2, 50))
    if kind == 1:
        return message(1, [message(1, [b"text"[: rng.randrange(5)]]) for _ in range(count)])
    if kind == 2:
        floats = [struct.pack("<f", k) for k in range(count)]
        return message(2, [message(1, floats)] if rng.random() < 0.6 else [[b"\x0d", f] for f in floats])
    integers: list[Any] = [Number(rng.choice((0, 1, 300, -1, 2**62)), varint) for _ in range(count)]
    return message(3, [message(1, integers)] if rng.random() < 0.6 else [[b"\x08", i] for i in integers])


KEYS = (b"ints", b"floats", b"text", b"two", b"pairs", b"other")


def example(rng: random.Random) -> list[Any]:
    """A `tf.train.Example`; features may change the type of their list."""
    entries = []
    for key in rng.sample(KEYS, rng.randrange(1, len(KEYS) + 1)):
        kind = {b"ints": 3, b"floats": 2, b"text": 1, b"two": 3, b"pairs": 2}.get(key, 3)
        kinds = [kind] if rng.random() < 0.6 else rng.choices((1, 2, 3), k=rng.randrange(1, 4)) + [kind]
        entries.append(message(1, [message(1, [key]), message(2, [values(rng, k) for k in kinds])]))
    if rng.random() < 0.1:
        entries.append(group(9, [scalar(1, 5), group(2, [])]))
    return [message(1, entries)]


def features() -> dict[str, Any]:
    from ndd import tfrecord as tfrec

    return {
        "ints": tfrec.VarLenFeature(tfrec.int64, 0),
        "floats": tfrec.VarLenFeature(tfrec.float32, 0.0),
        "text": tfrec.FixedLenFeature((), tfrec.string, ""),
        "two": tfrec.FixedLenFeature([2], tfrec.int64, -1),
        "pairs": tfrec.VarLenFeature([2], tfrec.float32, 0.0),
    }


# TFRecord


def record_frame(content: bytes, length: int) -> bytes:
    """A record of a TFRecord file; only the checksum of its length is looked at."""
    head = struct.pack("<Q", length % (1 << 64))
    return head + struct.pack("<I", int(masked_crc32c(np.frombuffer(head, np.uint8), 0, 8))) + content + bytes(4)


def make_tfrecord(rng: random.Random) -> tuple[bytes, bytes | None]:
    frames = [Framed(example(rng), record_frame) for _ in range(rng.randrange(1, 4))]
    sizes = [len(encoded(frame)) for frame in frames]
    index = None
    listed = rng.random() < 0.3
    if listed:
        rows: list[list[Any]] = [[sum(sizes[:k]), size] for k, size in enumerate(sizes)]
        index = index_lines(rng, rows, rng.random() < 0.7)
    content = mutated(rng, list(frames))
    if rng.random() < 0.2:  # compressed as a whole; perhaps damaged then
        content = rng.choice((gzip.compress, zlib.compress))(content)
        content = mutated(rng, [content]) if rng.random() < 0.3 else content
    return content, index


def read_tfrecord(result: tuple[bytes, bytes | None]) -> Any:
    content, index = result
    path = written("a.tfrecord", content)
    listed = None if index is None else written("a.tfrecord.idx", index)
    return all_records(ndd.readers.TFRecord(path=path, index_path=listed, features=features()))


# Records of Caffe and Caffe2


def make_datum(rng: random.Random) -> bytes:
    return mutated(
        rng, [scalar(1, 3), scalar(2, 4), message(4, [b"pixels"]), scalar(5, 7), message(6, [b"\0\0\x80?" * 3])]
    )


def made_records(store: Any, content: bytes) -> Any:
    """What a store of LMDB makes of one record, which ends where nothing may be read."""
    data = fenced_copy(content)
    (record,) = store.contents(data, np.array([0]), np.array([len(content)]))
    if isinstance(record, BaseException):
        raise record
    return record


def read_datum(content: bytes) -> Any:
    from ndd.readers.caffe import _Datums

    store = object.__new__(_Datums)
    store._image = store._label = True
    return made_records(store, content)


def tensor(rng: random.Random, kind: int, count: int) -> Framed:
    """A tensor of Caffe2: 1 floats, 2 integers, 3 bytes, 4 text."""
    numbers = [Number(rng.choice((0, 1, 2)), varint) for _ in range(count)]
    body: dict[int, list[Any]] = {
        1: [message(3, [struct.pack("<f", k) for k in range(count)])]
        if rng.random() < 0.5
        else [b"\x1d\0\0\x80?"] * count,
        2: [message(4, numbers)] if rng.random() < 0.5 else [[b"\x20", number] for number in numbers],
        3: [message(5, [bytes(count)])],
        4: [message(6, [b"a text"])],
    }
    return message(1, [scalar(1, count), scalar(2, kind), *body[kind]])


def make_tensors(rng: random.Random) -> tuple[int, bytes]:
    label = rng.randrange(5)
    kinds = [rng.choice((3, 4)), *[2] * (label != 4), *[1] * (label == 3), rng.choice((1, 2)), 2]
    counts = [rng.choice((1, 5)), *[1] * (len(kinds) - 3), 2, 4]
    if rng.random() < 0.1:
        rng.shuffle(kinds)
    return label, mutated(rng, [tensor(rng, kind, count) for kind, count in zip(kinds, counts, strict=True)])


def read_tensors(result: tuple[int, bytes]) -> Any:
    from ndd.readers.caffe2 import _Tensors

    label, content = result
    store = object.__new__(_Tensors)
    store._image, store._label, store._num_labels, store._additional, store._box = True, label, 3, 1, True
    store._labels = {4: 0, 3: 2}.get(label, 1)
    store._wanted = 2 + store._labels + 1
    return made_records(store, content)


# LMDB

PAGE = 512  # bytes, the smallest that is worth it


def lmdb_page(content: bytes) -> bytes:
    return content[:PAGE].ljust(PAGE, b"\0")


def meta_page(number: int, root: int, depth: int, entries: int, last: int, transaction: int) -> Framed:
    parts = [
        Number(number, "<Q"), bytes(2), Number(8, "<H"), bytes(4), Number(0xBEEFC0DE, "<I"), Number(1, "<I"), bytes(16),
        Number(PAGE, "<I"), bytes(44), bytes(4), Number(0, "<H"), Number(depth, "<H"), bytes(24), Number(entries, "<Q"),
        Number(root, "<Q"), Number(last, "<Q"), Number(transaction, "<Q"),
    ]  # fmt: skip
    return Framed(parts, lambda content, length: lmdb_page(content))


def tree_page(number: int, kind: int, nodes: list[list[Any]]) -> Framed:
    """A branch (1) or a leaf (2): nodes lie behind the table of their places."""
    sizes = [(len(encoded(node)) + 1) & ~1 for node in nodes]
    first = 16 + 2 * len(nodes)
    places = [Number(first + sum(sizes[:k]), "<H") for k in range(len(nodes))]
    head = [Number(number, "<Q"), bytes(2), Number(kind, "<H"), Number(first, "<H"), Number(PAGE, "<H"), *places]
    padded = [[node, bytes(size - len(encoded(node)))] for node, size in zip(nodes, sizes, strict=True)]
    return Framed([*head, *padded], lambda content, length: lmdb_page(content))


def make_lmdb(rng: random.Random) -> bytes:
    """A branch, two leaves, and a record on pages of its own."""
    record = encoded([message(4, [b"pixels" * 3]), scalar(5, 3)])
    large = encoded([message(4, [b"x" * 700]), scalar(5, 4)])

    def inside(key: bytes) -> list[Any]:
        return [Number(len(record), "<H"), Number(0, "<H"), Number(0, "<H"), Number(len(key), "<H"), key, record]

    def outside(key: bytes, page: int) -> list[Any]:
        head = [Number(len(large), "<H"), Number(0, "<H"), Number(1, "<H"), Number(len(key), "<H"), key]
        return [*head, Number(page, "<Q")]

    branch = [[Number(page, "<H"), Number(0, "<H"), Number(0, "<H"), Number(2, "<H"), b"k%d" % page] for page in (3, 4)]
    overflow = [Number(5, "<Q"), bytes(2), Number(4, "<H"), Number(2, "<I"), large]
    pages = [
        meta_page(0, 2**64 - 1, 0, 0, 1, 0), meta_page(1, 2, 2, 4, 6, 1), tree_page(2, 1, branch),
        tree_page(3, 2, [inside(b"k1"), inside(b"k2")]), tree_page(4, 2, [inside(b"k3"), outside(b"k4", 5)]),
        Framed(overflow, lambda content, length: content[: 2 * PAGE].ljust(2 * PAGE, b"\0")),
    ]  # fmt: skip
    return mutated(rng, pages)


def read_lmdb(content: bytes) -> Any:
    return all_records(ndd.readers.Caffe(path=written("data.mdb", content)))


# RecordIO


def recordio_part(parts: list[Any], kind: int = 0) -> Framed:
    def frame(content: bytes, length: int) -> bytes:
        return struct.pack("<II", 0xCED7230A, (kind << 29 | length) % (1 << 32)) + content + bytes(-len(content) % 4)

    return Framed(parts, frame)


def make_recordio(rng: random.Random) -> tuple[bytes, bytes]:
    items: list[Any] = []
    for k in range(rng.randrange(1, 5)):
        count = rng.choice((0, 0, 1, 3))
        head = [Number(count, "<I"), struct.pack("<f", k), bytes(16), *[struct.pack("<f", i) for i in range(count)]]
        if rng.random() < 0.3:
            items.append(
                [recordio_part([*head, b"first"], 1), recordio_part([b"middle"], 2), recordio_part([b"last"], 3)]
            )
        else:
            items.append(recordio_part([*head, b"image"[: rng.randrange(6)]]))
    sizes = [len(encoded(item)) for item in items]
    rows: list[list[Any]] = [[k, sum(sizes[:k])] for k in range(len(sizes))]
    return mutated(rng, items), index_lines(rng, rows, rng.random() < 0.3)


def read_recordio(result: tuple[bytes, bytes]) -> Any:
    from ndd.readers.mxnet import scan_recordio

    path, index = written("a.rec", result[0]), written("a.idx", result[1])
    try:
        scan_recordio(path)
    except ValueError:
        pass
    return all_records(ndd.readers.MXNet(path=path, index_path=index))


# Tar


def octal(digits: int) -> Callable[[int], bytes]:
    """A number of a tar header; in base 256 where it has no room."""

    def form(value: int) -> bytes:
        text = b"%0*o\0" % (digits, abs(value))
        return (
            text
            if value >= 0 and len(text) == digits + 1
            else b"\x80" + (value % (1 << 8 * digits)).to_bytes(digits, "big")
        )

    return form


def tar_header(name: bytes, size: int, kind: bytes, magic: bytes = b"ustar\x0000") -> Framed:
    def frame(content: bytes, length: int) -> bytes:
        head = content.ljust(512, b"\0")[:512]
        total = sum(head[:148]) + sum(head[156:]) + 8 * 32
        return head[:148] + b"%06o\0 " % (total % 8**6) + head[156:]

    fields = [
        name.ljust(100, b"\0")[:100], octal(7)(0o644), octal(7)(0), octal(7)(0), Number(size, octal(11)), octal(11)(0),
        bytes(8), kind, bytes(100), magic, bytes(80), bytes(155),
    ]  # fmt: skip
    return Framed(fields, frame)


def tar_member(name: bytes, content: bytes, kind: bytes = b"0", magic: bytes = b"ustar\x0000") -> list[Any]:
    return [tar_header(name, len(content), kind, magic), content.ljust(-(-len(content) // 512) * 512, b"\0")]


def pax(rng: random.Random, name: bytes) -> list[Any]:
    fields = [(b"path", name)] if rng.random() < 0.8 else [(b"size", str(extreme(rng, 5)).encode())]
    fields += [(b"comment", b"x" * rng.randrange(20))] if rng.random() < 0.3 else []
    content = b""
    for key, value in fields:
        length = len(key) + len(value) + 3 + 2
        length = extreme(rng, length) if rng.random() < 0.2 else length
        content += b"%d %s=%s\n" % (length, key, value)
    return tar_member(b"pax", content, rng.choice((b"x", b"x", b"g")))


def make_tar(rng: random.Random) -> tuple[bytes, bytes | None]:
    members: list[Any] = []
    for k in range(rng.randrange(1, 4)):
        for ending in (b"bin", b"cls"):
            name = b"%03d.%s" % (k, ending)
            if rng.random() < 0.2:
                members.append(pax(rng, name))
            elif rng.random() < 0.2:
                members.append(tar_member(b"././@LongLink", name + b"\0", b"L", b"ustar  \0"))
            kind = rng.choices((b"0", b"\0", b"7", b"5", b"2", b"S"), (20, 4, 4, 2, 2, 1))[0]
            members.append(tar_member(name, b"x" * rng.choice((0, 5, 512, 700)), kind))
    index = None
    if rng.random() < 0.25:
        rows: list[list[Any]] = [["v1.2", 1], ["bin", 512, 5, "000.bin", "cls", 1536, 5, "000.cls"]]
        index = index_lines(rng, rows, rng.random() < 0.8)
    return mutated(rng, [*members, bytes(1024)]), index


def read_tar(result: tuple[bytes, bytes | None]) -> Any:
    path = written("a.tar", result[0])
    index = None if result[1] is None else written("tar.idx", result[1])
    reader = ndd.readers.Webdataset(paths=path, index_paths=index, ext=["bin", "cls"])
    return all_records(reader)


# .npy


def npy_text(rng: random.Random, shape: list[Any], kind: str) -> bytes:
    extents = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    fortran = rng.choices(("False", "True", "0"), (9, 1, 0.3))[0]
    return b"{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }" % (
        kind.encode(),
        fortran.encode(),
        extents.encode(),
    )


def npy_frame(version: int) -> Callable[[bytes, int], bytes]:
    def frame(content: bytes, length: int) -> bytes:
        head, wide = b"\x93NUMPY" + bytes([version, 0]), version > 1
        return head + (length % (1 << (32 if wide else 16))).to_bytes(4 if wide else 2, "little") + content

    return frame


def npy(rng: random.Random, kind: str, ndim: int, spoil: bool) -> bytes:
    shape: list[Any] = [rng.choice((0, 1, 2, 3, 10)) for _ in range(ndim)]
    nbytes = int(np.prod(shape, initial=1)) * max(np.dtype(kind).itemsize, 1)
    if spoil and rng.random() < 0.6:
        for _ in range(rng.choice((1, 1, 2))):
            shape.insert(rng.randrange(len(shape) + 1), extreme(rng, 3))
        shape = shape[: rng.choice((1, 2, 3, 70))]
    version = 1 if rng.random() < 0.8 else rng.choice((2, 3))
    text = npy_text(rng, shape, kind)
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    parts = [Framed([text], npy_frame(version)), bytes(nbytes)]
    return mutated(rng, parts) if spoil else encoded(parts)


def make_npy(rng: random.Random) -> list[bytes]:
    """Files of one batch: of several shapes, some of them broken."""
    kind = rng.choice(("|u1", "<i2", "<f4", ">f4", "<f8", "|b1", "<f2"))
    if rng.random() < 0.1:
        kind = rng.choice(("<c8", "|O", "<U3", ">i8"))
    ndim = rng.choice((0, 1, 2, 2, 3))
    return [npy(rng, kind, ndim, rng.random() < 0.3) for _ in range(3)]


def read_npy(files: list[bytes]) -> Any:
    from ndd.decoders.headers.npy import read_header, read_shapes

    texts = [fenced_copy(content) for content in files]
    try:
        first = read_header(texts[0])
    except ValueError:
        pass
    else:
        addresses = np.array([text.ctypes.data for text in texts], np.int64)
        sizes, shapes = np.array(list(map(len, files)), np.int64), np.zeros((3, len(first.shape)), np.int64)
        read_shapes(first, texts[0], addresses, sizes, shapes)
    paths = [written(f"{k}.npy", content) for k, content in enumerate(files)]
    try:
        all_records(
            ndd.readers.Numpy(files=paths, roi_start=[1], roi_shape=[2], roi_axes=[0], out_of_bounds_policy="pad")
        )
    except (ValueError, RuntimeError, OSError):
        pass
    try:
        all_records(ndd.readers.Numpy(files=paths))
    except (ValueError, RuntimeError, OSError):
        pass
    return ndd.decoders.numpy(ndd.batch([np.frombuffer(f, np.uint8) for f in files])).evaluate()


# LZ4


def lz4_length(rest: int) -> bytes:
    """What stands behind a token whose nibble is 15."""
    rest = max(rest, 0)
    return b"\xff" * min(rest // 255, 1 << 16) + bytes([rest % 255])


def make_lz4(rng: random.Random) -> tuple[bytes, int]:
    parts: list[Any] = []
    room = 0
    for _ in range(rng.randrange(5)):
        literals, copied = rng.choice((1, 3, 15, 20, 300)), rng.choice((4, 8, 19, 100, 600))
        token = min(literals, 15) << 4 | min(copied - 4, 15)
        parts.append([
            Number(token, "B"), Number(literals - 15, lz4_length) if literals > 14 else b"", b"l" * literals,
            Number(rng.randrange(1, room + literals + 1), "<H"), Number(copied - 19, lz4_length) if copied > 18 else b"",
        ])  # fmt: skip
        room += literals + copied
    parts.append([Number(5 << 4, "B"), b"12345"])
    room += 5
    return mutated(rng, parts), max(0, room + rng.choice((0, 0, 0, -1, 1, -room, 5, -10, 300, 100_000)))


def read_lz4(output: tuple[bytes, int]) -> Any:
    from ndd.decoders.lz4 import inflate_lz4

    content, room = output
    result = inflate_lz4(fenced_copy(content), fenced(room))
    if result < 0:
        raise ValueError("damaged")
    return result


def make_chunks(rng: random.Random) -> tuple[dict[str, Any], int]:
    block = b"\x17a\x01\x00\x50bcdef"
    count = rng.randrange(1, 5)
    how: dict[str, Any] = {"chunk_offsets": [len(block) * k for k in range(count)], "chunk_sizes": [len(block)] * count}
    for _ in range(rng.randrange(3)):
        listed = how[rng.choice(("chunk_offsets", "chunk_sizes"))]
        place = rng.randrange(len(listed))
        listed[place] = max(-(2**63), min(extreme(rng, listed[place]), 2**63 - 1))
    if rng.random() < 0.5:
        del how[rng.choice(("chunk_offsets", "chunk_sizes"))]
    how["shape"] = [rng.choice((17, 17, 18, 16, 0, -1))]
    return how, count


def read_chunks(result: tuple[dict[str, Any], int]) -> Any:
    how, count = result
    return ndd.decoders.inflate(fenced_copy(b"\x17a\x01\x00\x50bcdef" * count), **how).evaluate()


ALLOWED = (ValueError, RuntimeError, OSError)
PARSERS: dict[str, Parser] = {
    "tfrecord": Parser(make_tfrecord, read_tfrecord, ALLOWED),
    "caffe": Parser(make_datum, read_datum, ALLOWED),
    "caffe2": Parser(make_tensors, read_tensors, ALLOWED),
    "lmdb": Parser(make_lmdb, read_lmdb, ALLOWED),
    "recordio": Parser(make_recordio, read_recordio, ALLOWED),
    "tar": Parser(make_tar, read_tar, ALLOWED),
    "npy": Parser(make_npy, read_npy, ALLOWED),
    "lz4": Parser(make_lz4, read_lz4, ALLOWED),
    "inflate": Parser(make_chunks, read_chunks, ALLOWED),
}
