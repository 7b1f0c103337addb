"""Readers on records in the page cache; the libraries take turns, each in its own process.

Each reader has a `Kind`: the function that writes the records and returns the reader's arguments.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import sys
import tarfile
import tempfile
import time
import wave
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ndd.bench.libraries import Setting, make_setting
from ndd.bench.process import Process
from ndd.bench.rounds import Result

_BATCH = 256
_SIZES = {100_000: 1.5, 1_000: 1.0}  # bytes of a record, and how much faster than DALI
_EPOCHS_OF_MEMORY = 10

_PIECE = 1 << 20  # bytes

Written = dict[str, Any]  # the reader's arguments


class Kind(NamedTuple):
    """The measurement of a reader: `make(folder, records)` writes the records and returns the reader's arguments."""

    make: Callable[[Path, Sequence[bytes]], Written]
    devices: tuple[str, ...] = ("cpu",)
    dali_devices: tuple[str, ...] = ("cpu", "gpu")


def _files(folder: Path, records: Sequence[bytes]) -> Written:
    """Each different record once, and hard links to it: 20,000 files of 100 kB take no disk."""
    (folder / "class").mkdir()
    for i, data in enumerate(_distinct(records)):
        (folder / f"{i}.data").write_bytes(data)
    for i in range(len(records)):
        os.link(folder / f"{i % len(_distinct(records))}.data", folder / "class" / f"{i:06}.jpg")
    return {"file_root": str(folder)}


def _arrays(folder: Path, records: Sequence[bytes]) -> Written:
    (folder / "class").mkdir()
    (folder / "data").mkdir()
    for i, data in enumerate(_distinct(records)):
        np.save(folder / "data" / f"{i}.npy", np.frombuffer(data, np.uint8))
    for i in range(len(records)):
        os.link(folder / "data" / f"{i % len(_distinct(records))}.npy", folder / "class" / f"{i:06}.npy")
    return {"file_root": str(folder / "class")}


def _recordio(folder: Path, records: Sequence[bytes]) -> Written:
    with open(folder / "a.rec", "wb") as rec, open(folder / "a.idx", "w") as index:
        for i, data in enumerate(records):
            index.write(f"{i}\t{rec.tell()}\n")
            item = struct.pack("<IfQQ", 0, float(i % 1000), i, 0) + data
            rec.write(struct.pack("<II", 0xCED7230A, len(item)) + item + b"\0" * (-len(item) % 4))
    return {"path": str(folder / "a.rec"), "index_path": str(folder / "a.idx")}


def _tfrecord(folder: Path, records: Sequence[bytes]) -> Written:
    with open(folder / "a.tfrecord", "wb") as out, open(folder / "a.idx", "w") as index:
        for i, data in enumerate(records):
            features = _feature(b"image", _field(1, _field(1, data))) + _feature(
                b"label", _field(3, _field(1, _varint(i % 1000)))
            )
            example = _field(1, features)
            start = out.tell()
            out.write(struct.pack("<QI", len(example), 0) + example + bytes(4))  # no reader here checks the CRCs
            index.write(f"{start} {out.tell() - start}\n")
    return {"path": str(folder / "a.tfrecord"), "index_path": str(folder / "a.idx"), "features": _FEATURES}


_FEATURES = "features"  # a placeholder for the measured library's


def _feature(name: bytes, value: bytes) -> bytes:
    """An entry of the map of an Example."""
    return _field(1, _field(1, name) + _field(2, value))


def _field(number: int, data: bytes) -> bytes:
    """A field of bytes in protobuf's wire format."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes([*encoded, number])


def _webdataset(folder: Path, records: Sequence[bytes]) -> Written:
    import io

    lines = []
    with tarfile.open(folder / "a.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        for i, data in enumerate(records):
            words = []
            for ending, content in (("jpg", data), ("cls", b"%d" % (i % 1000))):
                member = tarfile.TarInfo(f"{i:06}.{ending}")
                member.size = len(content)
                words += [ending, str(tar.offset + 512), str(member.size), member.name]
                tar.addfile(member, io.BytesIO(content))
            lines.append(" ".join(words))
    (folder / "a.idx").write_text(f"v1.2 {len(lines)}\n" + "\n".join(lines) + "\n")
    return {"paths": str(folder / "a.tar"), "index_paths": str(folder / "a.idx"), "ext": ["jpg", "cls"]}


def _coco(folder: Path, records: Sequence[bytes]) -> Written:
    _files(folder, records)
    images = [{"id": i, "file_name": f"{i:06}.jpg", "width": 640, "height": 480} for i in range(len(records))]
    boxes = [
        {"id": i, "image_id": i, "category_id": i % 3 + 1, "bbox": [1, 2, 30, 40], "area": 1200, "iscrowd": 0}
        for i in range(len(records))
    ]
    categories = [{"id": i, "name": str(i)} for i in (1, 2, 3)]
    text = json.dumps({"images": images, "annotations": boxes, "categories": categories})
    (folder / "a.json").write_text(text)
    return {"file_root": str(folder / "class"), "annotations_file": str(folder / "a.json"), "ratio": True}


def _caffe(folder: Path, records: Sequence[bytes]) -> Written:
    """Datum: 4 is the data, 5 the label."""
    return _lmdb(folder, [_field(4, data) + b"\x28" + _varint(i % 1000) for i, data in enumerate(records)])


def _caffe2(folder: Path, records: Sequence[bytes]) -> Written:
    """TensorProtos of a string (data_type 4, string_data 6) and an int32 (data_type 2, int32_data 4)."""
    return _lmdb(
        folder,
        [
            _field(1, b"\x10\x04" + _field(6, data)) + _field(1, b"\x08\x01\x10\x02\x20" + _varint(i % 1000))
            for i, data in enumerate(records)
        ],
    )


def _lmdb(folder: Path, values: Sequence[bytes]) -> Written:
    import importlib

    lmdb = importlib.import_module("lmdb")
    with lmdb.open(str(folder), map_size=1 << 34, sync=False) as base, base.begin(write=True) as writing:
        for i, value in enumerate(values):
            writing.put(b"%08d" % i, value)
    return {"path": str(folder)}


def _fits(folder: Path, records: Sequence[bytes]) -> Written:
    (folder / "data").mkdir()
    (folder / "files").mkdir()
    cards = "SIMPLE  =                    T", "BITPIX  =                    8", "NAXIS   =                    0"
    for i, data in enumerate(_distinct(records)):
        extension = (
            "XTENSION= 'IMAGE   '", "BITPIX  =                    8", "NAXIS   =                    1",
            f"NAXIS1  = {len(data):>20}", "PCOUNT  =                    0", "GCOUNT  =                    1",
        )  # fmt: skip
        blocks = _cards(*cards, "EXTEND  =                    T") + _cards(*extension) + data + bytes(-len(data) % 2880)
        (folder / "data" / f"{i}.fits").write_bytes(blocks)
    for i in range(len(records)):
        os.link(folder / "data" / f"{i % len(_distinct(records))}.fits", folder / "files" / f"{i:06}.fits")
    return {"file_root": str(folder / "files")}


def _cards(*lines: str) -> bytes:
    text = "".join(f"{line:<80}" for line in (*lines, "END"))
    return text.encode().ljust(-(-len(text) // 2880) * 2880)


def _recordings(folder: Path, records: Sequence[bytes]) -> Written:
    """WAV files of 16 bits and one channel, each different one once."""
    paths = [folder / f"{i}.wav" for i in range(len(_distinct(records)))]
    for path, data in zip(paths, _distinct(records), strict=True):
        with wave.open(str(path), "wb") as out:
            out.setparams((1, 2, 16_000, 0, "NONE", ""))
            out.writeframes(data[: len(data) // 2 * 2])
    lines = [{"audio_filepath": str(paths[i % len(paths)]), "text": str(i)} for i in range(len(records))]
    (folder / "a.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return {"manifest_filepaths": str(folder / "a.json")}


KINDS = {
    "File": Kind(_files),
    "Numpy": Kind(_arrays),
    "MXNet": Kind(_recordio),
    "TFRecord": Kind(_tfrecord),
    "Webdataset": Kind(_webdataset),
    "COCO": Kind(_coco),
    "Caffe": Kind(_caffe),
    "Caffe2": Kind(_caffe2),
    "NemoAsr": Kind(_recordings),
    "Fits": Kind(_fits, devices=("cpu", "gpu"), dali_devices=("gpu",)),
}


class _Records(Sequence[bytes]):
    """`count` records that repeat a few."""

    def __init__(self, distinct: list[bytes], count: int):
        self.distinct, self._count = distinct, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: Any) -> Any:
        if not 0 <= place < self._count:
            raise IndexError(place)
        return self.distinct[place % len(self.distinct)]


def _distinct(records: Sequence[bytes]) -> list[bytes]:
    return records.distinct if isinstance(records, _Records) else list(records)


def contents(data: Path | None, size: int) -> list[bytes]:
    """Photographs of about this size from the folder; noise if they are smaller or there is no folder."""
    records: list[bytes] = []
    if data is not None and size > 10_000:
        paths = sorted(p for p in data.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
        records = [p.read_bytes() for p in paths if size / 3 < p.stat().st_size < size * 3][:64]
    draws = np.random.default_rng(0)
    return records or [draws.integers(0, 256, size, np.uint8).tobytes() for _ in range(64)]


def _as_from_a_disk(folder: Path) -> None:
    """Rewrites large files in pieces of 1 MB. The page cache groups pages by the write or disk read that filled them, and
    `read` of a file written in pieces of 16 kB (a tar by Python) takes up to twice as long."""
    for path in [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size > _PIECE]:
        with open(path, "rb") as old, open(folder / "anew", "wb", buffering=0) as new:
            while piece := old.read(_PIECE):
                new.write(piece)
        os.replace(folder / "anew", path)


def measure(setting: Setting, data: Path | None, only: str = "", records: int | None = None) -> Iterator[Result]:
    """For whole epochs: samples a second, CPU time of a sample, the memory that ten epochs add, and the time to the first
    batch."""
    count = records or 20_000
    for name, kind in KINDS.items():
        if only.lower() not in name.lower() or setting.device not in kind.devices:
            continue
        for size in _SIZES:
            folder = Path(tempfile.mkdtemp(prefix="ndd-bench-"))
            try:
                arguments = kind.make(folder, _Records(contents(data, size), count))
                _as_from_a_disk(folder)
                sides = [side for side in setting.libraries if side == "ndd" or setting.device in kind.dali_devices]
                rates = _alternating(sides, name, arguments, setting, count)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            title = f"readers.{name}, {count:,} records of {size // 1000} kB, batch {_BATCH}, {setting.threads} threads"
            title += ", GPU" if setting.device == "gpu" else ""
            for text, key, unit, target in (
                (title, "rate", "samples/s", f"ratio >= {_SIZES[size]}"),
                ("  CPU time of a record", "cpu", "us", ""),
                (f"  memory that {_EPOCHS_OF_MEMORY} epochs added", "added", "MB", ""),
                ("  memory of the process", "memory", "MB", ""),
                ("  a new reader until its first batch", "first", "ms", ""),
            ):
                ours, theirs = rates["ndd"][key], rates.get("DALI", {}).get(key)
                yield Result("readers", text, unit, ours, theirs, target)


def _alternating(
    sides: list[str], name: str, arguments: Written, setting: Setting, count: int
) -> dict[str, dict[str, float]]:
    """The best of the epochs' rates and CPU times, since other load can only make them worse. The libraries take turns by
    epoch, each in one process for all epochs."""
    options = setting.device, str(setting.threads), json.dumps(arguments)
    processes = {side: Process("ndd.bench.readers", side, name, *options) for side in sides}
    try:
        answers = {side: process.ask("first") for side, process in processes.items()}
        epochs: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
        for turn in range(max(setting.rounds, _EPOCHS_OF_MEMORY)):
            for side in sides if turn % 2 == 0 else sides[::-1]:
                epochs[side].append(processes[side].ask("epoch"))
        for side in sides:
            rate, cpu = max(epoch["rate"] for epoch in epochs[side]), min(epoch["cpu"] for epoch in epochs[side])
            answers[side] |= {**processes[side].ask("memory"), "rate": rate, "cpu": cpu}
        return answers
    finally:
        for process in processes.values():
            process.close()


def _resident() -> float:
    """MB of this process's own memory (without pages of files, if the system tells)."""
    try:
        text = Path("/proc/self/status").read_text()
        return int(text.partition("RssAnon:")[2].split()[0]) / 1024
    except (OSError, IndexError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _answer(side: str, name: str, device: str, threads: str, arguments: str) -> None:
    """The process of one library: an answer for each line of the input."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a library's own output must not mix with the answers
    setting = make_setting(device, int(threads), side == "DALI")
    library = setting.libraries[side]
    options = json.loads(arguments)
    if device == "gpu":
        options["device"] = device
    reader = made_reader(side, name, options, library)
    before = 0.0

    def epoch() -> dict[str, float]:
        count, start, cpu = 0, time.perf_counter(), time.process_time()
        for batch in reader.next_epoch(batch_size=_BATCH):
            values = list(batch.values()) if isinstance(batch, dict) else batch
            for value in values:
                value.evaluate()
            count += values[0].batch_size
        setting.synchronize()
        rate = count / (time.perf_counter() - start)
        return {"rate": rate, "cpu": (time.process_time() - cpu) / count * 1e6}

    def first() -> float:
        start = time.perf_counter()
        next(iter(made_reader(side, name, options, library).next_epoch(batch_size=_BATCH)))
        return (time.perf_counter() - start) * 1e3

    for line in sys.stdin:
        if line.strip() == "first":
            epoch()  # imports, compiles, fills memory pools
            answer = {"first": min(first() for _ in range(3))}
            before = _resident()
        elif line.strip() == "epoch":
            answer = epoch()
        else:
            answer = {"memory": _resident(), "added": _resident() - before}
        print(json.dumps(answer), file=out, flush=True)


def made_reader(side: str, name: str, dataset: Written, library: Any = None) -> Any:
    """The reader of a `Kind` in the library of a side, with the arguments that its `make` returned."""
    if library is None:
        import ndd as library
    if dataset.get("features") == _FEATURES:
        dataset = {**dataset, "features": _features(side)}
    return getattr(library.readers if hasattr(library.readers, name) else library.experimental.readers, name)(**dataset)


def _features(side: str) -> Any:
    import importlib

    tfrecord: Any = importlib.import_module("nvidia.dali.tfrecord" if side == "DALI" else "ndd.tfrecord")
    return {
        "image": tfrecord.FixedLenFeature((), tfrecord.string, ""),
        "label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
    }


if __name__ == "__main__":
    _answer(*sys.argv[1:])
