"""Small data for every reader: one entry each. `test_every_reader.py` walks `ndd.readers` and finds its data here."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass
class DataSet:
    """How to make data for a reader, such that a sample tells its number in stored order.

    `make(folder, count)` writes `count` records and returns the reader's arguments; `number(outputs)` finds the number
    in the outputs of a sample (NumPy arrays in declared order); `damage(folder, number)` makes one record unreadable,
    and must leave the rest as it was. `dali` is False where DALI cannot read it on a CPU, `dali_shuffles` where its
    `shuffle_after_epoch` does nothing.
    """

    make: Callable[[Path, int], dict[str, Any]]
    number: Callable[[list[np.ndarray]], int]
    damage: Callable[[Path, int], None]
    dali: bool = True
    dali_shuffles: bool = True


def files(folder, count):
    paths = [folder / f"{i:03}.bin" for i in range(count)]
    for i, path in enumerate(paths):
        path.write_bytes(bytes([i] * (i + 1)))
    return {"files": [str(path) for path in paths]}


def recordio_item(payload, labels=(1.0,), kind=0):
    """One record as MXNet writes it; a single label stands in the header."""
    flag, label = (0, labels[0]) if len(labels) == 1 else (len(labels), 0.0)
    data = struct.pack("<IfQQ", flag, label, 0, 0)
    data += b"" if flag == 0 else struct.pack(f"<{flag}f", *labels)
    return recordio_part(data + payload, kind)


def recordio_part(data, kind):
    return struct.pack("<II", 0xCED7230A, kind << 29 | len(data)) + data + b"\0" * (-len(data) % 4)


def write_recordio(folder, items, name="a"):
    """The files `name.rec` and `name.idx` as arguments of `readers.MXNet`."""
    offsets = np.cumsum([0, *map(len, items)])[:-1]
    (folder / f"{name}.rec").write_bytes(b"".join(items))
    (folder / f"{name}.idx").write_text("".join(f"{i}\t{offset}\n" for i, offset in enumerate(offsets)))
    return {"path": str(folder / f"{name}.rec"), "index_path": str(folder / f"{name}.idx")}


def recordio(folder, count):
    return write_recordio(folder, [recordio_item(b"x" * i, [float(i)] * (1 + i % 3)) for i in range(count)])


def damage_recordio(folder, number):
    offset = int((folder / "a.idx").read_text().splitlines()[number].split()[1])
    with open(folder / "a.rec", "r+b") as file:
        file.seek(offset)
        file.write(b"????")


def arrays(folder, count):
    for i in range(count):
        np.save(folder / f"{i:03}.npy", np.full((2, i + 1), i, np.int16))
    return {"file_root": str(folder)}


def varint(number):
    number &= 2**64 - 1
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def field(number, value):
    """A field of a protobuf message: a number, or bytes."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


def datum(data, label):
    """A record of Caffe."""
    return field(1, 3) + field(4, data) + field(5, label) + field(7, 1)


def tensor(kind, shape, floats=(), integers=(), pixels=None, texts=(), packed=True):
    """One of the tensors of a record of Caffe2."""
    found = b"".join(field(1, extent) for extent in shape) + (b"" if kind is None else field(2, kind))
    if packed:
        found += field(3, np.array(floats, "<f4").tobytes()) + field(4, b"".join(map(varint, integers)))
    else:
        found += b"".join(varint(3 << 3 | 5) + np.float32(value).tobytes() for value in floats)
        found += b"".join(field(4, value) for value in integers)
    found += b"" if pixels is None else field(5, pixels)
    return field(1, found + b"".join(field(6, text) for text in texts))


def write_lmdb(folder, records, keys=None, deleted=0):
    """An LMDB of these records, under keys in their order; `deleted` of the last ones are deleted again."""
    import lmdb

    keys = [b"%08d" % i for i in range(len(records))] if keys is None else keys
    with lmdb.open(str(folder), map_size=1 << 26, sync=False) as environment:
        with environment.begin(write=True) as transaction:
            for key, record in zip(keys, records, strict=True):
                transaction.put(key, record)
        with environment.begin(write=True) as transaction:
            for key in keys[len(keys) - deleted :]:
                transaction.delete(key)
    return str(folder)


def datums(folder, count):
    return {"path": write_lmdb(folder, [datum(b"x" * 700 * (i % 4), i) for i in range(count)])}


def tensors(folder, count):
    records = [tensor(4, [1], texts=[b"x" * i]) + tensor(2, [1], integers=[i]) for i in range(count)]
    return {"path": write_lmdb(folder, records)}


def damage_lmdb(folder, number):
    """Rubs out the key of a record, which stands before it."""
    path = folder / "data.mdb"
    content = path.read_bytes()
    key = b"%08d" % number
    path.write_bytes(content.replace(key, b"\xff" * 8).replace(b"\x08\0" + b"\xff" * 8, b"\x09\0" + b"\xff" * 8))


def fits_images(folder, count):
    from astropy.io import fits

    for i in range(count):
        image = fits.ImageHDU(np.full((2, i + 1), i, np.int16))
        fits.HDUList([fits.PrimaryHDU(), image]).writeto(folder / f"{i:03}.fits")
    return {"file_root": str(folder)}


DATASETS = {
    "Caffe": DataSet(datums, lambda outputs: int(outputs[1][0]), damage_lmdb),
    "Caffe2": DataSet(tensors, lambda outputs: int(outputs[1][0]), damage_lmdb),
    "File": DataSet(files, lambda outputs: int(outputs[1][0]), lambda folder, n: (folder / f"{n:03}.bin").unlink()),
    "Fits": DataSet(
        fits_images,
        lambda outputs: int(outputs[0][0, 0]),
        lambda folder, n: (folder / f"{n:03}.fits").write_bytes(b"?"),
        dali=False,
    ),
    "MXNet": DataSet(recordio, lambda outputs: int(outputs[1][0]), damage_recordio, dali_shuffles=False),
    "Numpy": DataSet(
        arrays, lambda outputs: int(outputs[0][0, 0]), lambda folder, n: (folder / f"{n:03}.npy").write_bytes(b"?")
    ),
}
