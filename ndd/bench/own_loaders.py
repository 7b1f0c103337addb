"""Readers of today's formats beside each format's own loader: photographs decoded and cropped at random to 224 x 224.

The loaders decode with Pillow in a worker process for each core, as their documentation shows. Each side runs in its own
process; a loader whose library is not installed has no number.
"""

from __future__ import annotations

import importlib
import io
import json
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ndd._execution.cpus import cpu_count
from ndd.bench.process import failure
from ndd.bench.rounds import Result

_BATCH, _SIZE = 64, 224
_COUNT = 1024  # photographs, of which 64 differ


class Loader(NamedTuple):
    """A format: the function that writes its data, the reader's arguments, and the data set of its own library."""

    write: Callable[[Path, Sequence[bytes]], None]
    arguments: Callable[[Path], dict[str, Any]]
    own: Callable[[Path], Any]
    library: str


def _parquet(folder: Path, pictures: Sequence[bytes]) -> None:
    pa: Any = importlib.import_module("pyarrow")
    rows = [{"bytes": data, "path": None} for data in pictures]
    table = pa.table({"image": rows, "label": list(range(len(rows)))})
    importlib.import_module("pyarrow.parquet").write_table(table, folder / "a.parquet", row_group_size=100)


def _arrow(folder: Path, pictures: Sequence[bytes]) -> None:
    datasets: Any = importlib.import_module("datasets")
    rows = {"image": [{"bytes": data, "path": None} for data in pictures], "label": list(range(len(pictures)))}
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(folder / "data")


def _samples(pictures: Sequence[bytes]) -> list[bytes]:
    """Samples of a picture and a label of 8 bytes, with their sizes."""
    return [struct.pack("<II", len(d), 8) + d + struct.pack("<q", i) for i, d in enumerate(pictures)]


def _shard(samples: list[bytes], between: bytes = b"") -> bytes:
    offsets = [4 * (len(samples) + 2) + len(between)]
    for sample in samples:
        offsets.append(offsets[-1] + len(sample))
    return struct.pack(f"<{len(samples) + 2}I", len(samples), *offsets) + between + b"".join(samples)


def _mds(folder: Path, pictures: Sequence[bytes]) -> None:
    content = _shard([sample[:4] + sample[8:] for sample in _samples(pictures)], b"{}")
    (folder / "shard.00000.mds").write_bytes(content)
    raw = {"basename": "shard.00000.mds", "bytes": len(content), "hashes": {}}
    shard = {
        "column_names": ["image", "label"], "column_encodings": ["jpeg", "int"], "column_sizes": [None, 8], "format": "mds",
        "compression": None, "hashes": [], "raw_data": raw, "samples": len(pictures), "size_limit": 1 << 30, "version": 2,
        "zip_data": None,
    }  # fmt: skip
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": [shard]}))


def _litdata(folder: Path, pictures: Sequence[bytes]) -> None:
    content = _shard(_samples(pictures))
    (folder / "chunk-0-0.bin").write_bytes(content)
    leaf = {"type": None, "context": None, "children_spec": []}
    spec = {"type": "builtins.dict", "context": '["image", "label"]', "children_spec": [leaf, leaf]}
    config = {
        "chunk_bytes": 1 << 30, "chunk_size": None, "compression": None, "data_format": ["bytes", "int"],
        "data_spec": json.dumps([1, spec]), "encryption": None, "item_loader": "PyTreeLoader",
    }  # fmt: skip
    chunk = {"chunk_bytes": len(content), "chunk_size": len(pictures), "dim": None, "filename": "chunk-0-0.bin"}
    (folder / "index.json").write_text(json.dumps({"chunks": [chunk], "config": config, "updated_at": "0"}))


def _zip(folder: Path, pictures: Sequence[bytes]) -> None:
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        for i, data in enumerate(pictures):
            archive.writestr(f"class/{i:06}.jpg", data)


def _tars(folder: Path, pictures: Sequence[bytes]) -> None:
    """A tar for each core: the library's workers take whole archives."""
    cores = cpu_count()
    for shard in range(cores):
        write_tar(folder / f"{shard}.tar", list(enumerate(pictures))[shard::cores])


def write_tar(path: Path, pictures: Sequence[tuple[int, bytes]]) -> None:
    """A tar of pictures and their numbers, which are their names and labels."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for i, data in pictures:
            for ending, content in (("jpg", data), ("cls", b"%d" % (i % 1000))):
                member = tarfile.TarInfo(f"{i:06}.{ending}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


def _own_tars(folder: Path) -> Any:
    paths = sorted(str(path) for path in folder.glob("*.tar"))
    return _library("webdataset", "WebDataset")(paths, shardshuffle=len(paths)).shuffle(1000).rename(image="jpg")


def _files(folder: Path, pictures: Sequence[bytes]) -> None:
    for i, data in enumerate(pictures):
        (folder / f"{i:06}.jpg").write_bytes(data)


def _rows(folder: Path) -> list[tuple[str, int]]:
    return [(str(path), i) for i, path in enumerate(sorted(folder.glob("*.jpg")))]


class _OfPaths:
    """A map-style data set over files, as for a CSV of paths."""

    def __init__(self, rows: Sequence[tuple[Any, int]], archive: str | None = None):
        self._rows, self._path, self._archive = rows, archive, None

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, i: int) -> dict[str, Any]:
        name, label = self._rows[i]
        if self._path is None:
            return {"image": Path(name).read_bytes(), "label": label}
        if self._archive is None:  # each worker opens its own
            self._archive: Any = zipfile.ZipFile(self._path)
        return {"image": self._archive.read(name), "label": label}


def _zip_rows(path: str) -> list[tuple[str, int]]:
    with zipfile.ZipFile(path) as archive:
        return [(name, i) for i, name in enumerate(archive.namelist())]


def _library(name: str, attribute: str) -> Any:
    return getattr(importlib.import_module(name), attribute)


_BOTH = ["image", "label"]
LOADERS = {
    "Parquet": Loader(
        _parquet, lambda f: {"path": str(f), "columns": _BOTH},
        lambda f: _library("datasets", "Dataset").from_parquet(str(f / "a.parquet"), cache_dir=str(f)), "datasets",
    ),
    "HuggingFace": Loader(
        _arrow, lambda f: {"dataset": str(f / "data"), "columns": _BOTH},
        lambda f: _library("datasets", "load_from_disk")(str(f / "data")), "datasets",
    ),
    "MDS": Loader(
        _mds, lambda f: {"path": str(f), "columns": _BOTH},
        lambda f: _library("streaming", "StreamingDataset")(local=str(f), batch_size=_BATCH), "mosaicml-streaming",
    ),
    "LitData": Loader(
        _litdata, lambda f: {"path": str(f), "columns": _BOTH},
        lambda f: _library("litdata", "StreamingDataset")(str(f)), "litdata",
    ),
    "Webdataset": Loader(
        _tars, lambda f: {"paths": sorted(map(str, f.glob("*.tar"))), "ext": ["jpg", "cls"]}, _own_tars, "webdataset",
    ),
    "Zip": Loader(
        _zip, lambda f: {"path": str(f)}, lambda f: _OfPaths(_zip_rows(str(f / "a.zip")), str(f / "a.zip")), "zipfile",
    ),
    "Table": Loader(
        _files, lambda f: {"data": _rows(f), "columns": ["path", "label"]}, lambda f: _OfPaths(_rows(f)), "a map-style data set",
    ),
}  # fmt: skip


def measure(pictures: Sequence[bytes], only: str = "", count: int = _COUNT, rounds: int = 3) -> Iterator[Result]:
    """Images a second of the reader and of the format's own loader, the best of some epochs of each in turn."""
    workers = cpu_count()
    for name, loader in LOADERS.items():
        if only.lower() not in name.lower():
            continue
        folder = Path(tempfile.mkdtemp(prefix="ndd-bench-"))
        try:
            try:
                loader.write(folder, [pictures[i % len(pictures)] for i in range(count)])
            except ImportError:
                continue
            rates: dict[str, list[float]] = {"ndd": [], "own": []}
            for turn in range(rounds):
                for side in ("ndd", "own") if turn % 2 == 0 else ("own", "ndd"):
                    rate = _rate(side, name, folder, workers)
                    rates[side] += [] if rate is None else [rate]
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        text = f"readers.{name} beside {loader.library}, decoded and cropped, batch {_BATCH}, {workers} workers"
        theirs = max(rates["own"], default=None)
        yield Result("readers", text, "images/s", max(rates["ndd"]), theirs, "ratio >= 2")


def _rate(side: str, name: str, folder: Path, workers: int) -> float | None:
    command = [sys.executable, "-m", "ndd.bench.own_loaders", side, name, str(folder), str(workers)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return float(done.stdout.split()[-1])
    if side == "own" and "ModuleNotFoundError" in done.stderr:
        return None
    raise RuntimeError(f"bench: {side} of readers.{name} ended with an error:\n{failure(done)}")


def _ours(name: str, folder: Path) -> Iterable[int]:
    import ndd

    reader = getattr(ndd.readers, name)(**LOADERS[name].arguments(folder), shuffle="global")
    for images, _ in reader.next_epoch(_BATCH, last_batch="partial"):
        crops = ndd.decoders.image_random_crop(images)
        yield ndd.resize(crops, size=[_SIZE, _SIZE]).torch().shape[0]


def _theirs(name: str, folder: Path, workers: int) -> Iterable[int]:
    from torch.utils.data import DataLoader, IterableDataset

    data: Any = LOADERS[name].own(folder)
    shuffle = None if isinstance(data, IterableDataset) else True
    loader: Any = DataLoader(data, _BATCH, shuffle=shuffle, num_workers=workers, collate_fn=_collated)
    for images in loader:
        yield len(images)


def _collated(samples: list[dict[str, Any]]) -> Any:
    """In the worker: pictures decoded and cropped, as torch's tensor."""
    import numpy as np
    import torch

    image: Any = importlib.import_module("PIL.Image")
    draws = np.random.default_rng()
    crops = []
    for sample in samples:
        picture = sample["image"]
        picture = (
            picture["bytes"] if isinstance(picture, dict) else picture
        )  # a Parquet file that does not say: a picture
        picture = image.open(io.BytesIO(picture)) if isinstance(picture, bytes | memoryview) else picture
        picture = picture.convert("RGB")
        width, height = (max(1, int(extent * draws.uniform(0.3, 1))) for extent in picture.size)
        left, top = int(draws.integers(picture.size[0] - width + 1)), int(draws.integers(picture.size[1] - height + 1))
        crops.append(np.asarray(picture.resize((_SIZE, _SIZE), 2, (left, top, left + width, top + height))))
    return torch.from_numpy(np.stack(crops))


def _answer(side: str, name: str, folder: str, workers: str) -> None:
    def epoch() -> float:
        begun = time.perf_counter()
        count = sum(_ours(name, Path(folder)) if side == "ndd" else _theirs(name, Path(folder), int(workers)))
        return count / (time.perf_counter() - begun)

    epoch()  # imports, compiles, fills the page cache
    print(max(epoch() for _ in range(2)))


if __name__ == "__main__":
    _answer(*sys.argv[1:])
