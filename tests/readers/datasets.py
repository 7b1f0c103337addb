"""Small data for every reader: one entry each. `test_every_reader.py` walks `ndd.readers` and finds its data here."""

import json
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


def write_coco(folder, images, annotations=(), categories=({"id": 1}, {"id": 5}), write_files=True, **more):
    """`instances.json` and the image files, whose bytes are their names, as arguments of `readers.COCO`."""
    document = {"images": images, "annotations": list(annotations), "categories": list(categories), **more}
    (folder / "instances.json").write_text(json.dumps({k: v for k, v in document.items() if v is not None}))
    for image in images if write_files else ():
        (folder / image["file_name"]).parent.mkdir(parents=True, exist_ok=True)
        (folder / image["file_name"]).write_bytes(image["file_name"].encode())
    return {"file_root": str(folder), "annotations_file": str(folder / "instances.json")}


def objects(folder, count):
    """Image i has id 10 + i and 1 + i % 3 objects, the box of the first begins at i; the file is not in order."""
    images = [{"id": 10 + i, "file_name": f"{i:03}.jpg", "height": 8, "width": 9} for i in range(count)][::-1]
    boxes = [(i, k) for i in range(count) for k in range(1 + i % 3)]
    annotations = [
        {"id": n, "image_id": 10 + i, "category_id": 5, "bbox": [i + k, 0, 1, 2], "segmentation": [[0, 0, 5, 0, 5, 5]]}
        for n, (i, k) in enumerate(boxes)
    ]
    return {**write_coco(folder, images, annotations), "image_ids": True, "pixelwise_masks": True}


DATASETS = {
    "COCO": DataSet(
        objects, lambda outputs: int(outputs[1][0, 0]), lambda folder, n: (folder / f"{n:03}.jpg").unlink()
    ),
    "File": DataSet(files, lambda outputs: int(outputs[1][0]), lambda folder, n: (folder / f"{n:03}.bin").unlink()),
    "MXNet": DataSet(recordio, lambda outputs: int(outputs[1][0]), damage_recordio, dali_shuffles=False),
    "Numpy": DataSet(
        arrays, lambda outputs: int(outputs[0][0, 0]), lambda folder, n: (folder / f"{n:03}.npy").write_bytes(b"?")
    ),
}
