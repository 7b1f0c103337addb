"""Readers over a slow bucket, beside a plain client of the bucket: `bench readers --store`.

The store is on the loopback and answers 50 ms after each request. The client (obstore) requests the same bytes over as many
connections: ranges of 2 MB in stored order, and one picture a request in shuffled order, as the readers do. Parquet is shuffled
within a buffer of samples, so its row groups are read whole in both orders. With large ranges an epoch reads the files five
times, so that it lasts as long as twenty answers. Each kind runs in its own process, in which both sides take turns.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ndd.bench.own_loaders import LOADERS, write_tar
from ndd.bench.rounds import Result
from ndd.bench.slow_store import slow_store

_SIZE = 100_000  # bytes of a picture
_SHARDS = 8
_RANGE = 1 << 21
_BATCH = 32
_TIMES = 5  # reads of the files in an epoch of large ranges
_LATENCY = 0.05
_OPTIONS: dict[str, Any] = {"skip_signature": True, "region": "us-east-1"}
_FILES = {"Parquet": "parquet/*/a.parquet", "MDS": "mds/*/*.mds", "Webdataset": "*.tar", "File": "files/*/*.jpg"}


def measure(only: str = "", pictures: int | None = None, connections: int = 32) -> Iterator[Result]:
    """Pictures a second and CPU time of a picture, for the readers and for the client."""
    count = pictures or 2000
    root = Path(tempfile.mkdtemp(prefix="ndd-bench-"))
    try:
        _write(root / "pictures", count)
        with slow_store(root, _LATENCY) as url:
            for kind in _FILES:
                for order in ("stored", "shuffled"):
                    if only.lower() in kind.lower() and (kind != "Parquet" or _has_pyarrow()):
                        yield from _rows(kind, order, count, _both(url, root, kind, order, connections), connections)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _rows(kind: str, order: str, count: int, said: dict[str, list[float]], connections: int) -> Iterator[Result]:
    text = f"readers.{kind}, {count} objects" if kind == "File" else f"readers.{kind}, {count} pictures"
    name = f"{text}, {order}, {connections} connections"
    yield Result("readers", name, "images/s", said["ndd"][0], said["plain"][0], "ratio >= 0.9")
    yield Result("readers", "  CPU time of a picture", "us", said["ndd"][1], said["plain"][1])
    yield Result("readers", "  memory that the epochs took, at most", "MB", said["memory"][0], None)


def _has_pyarrow() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


def _write(folder: Path, count: int) -> None:
    """Writes pictures, which are noise, in shards of each format."""
    draws = np.random.default_rng(0)
    kept = [draws.integers(0, 256, _SIZE, np.uint8).tobytes() for _ in range(32)]
    for shard, numbers in enumerate(np.array_split(np.arange(count), _SHARDS)):
        # All differ: Parquet would store a repeated picture once.
        pictures = [number.to_bytes(8, "little") + kept[number % len(kept)][8:] for number in numbers.tolist()]
        for kind in ("mds", "files", "parquet"):
            (folder / kind / str(shard)).mkdir(parents=True)
        LOADERS["MDS"].write(folder / "mds" / str(shard), pictures)
        LOADERS["Table"].write(folder / "files" / str(shard), pictures)
        write_tar(folder / f"{shard}.tar", list(zip(numbers.tolist(), pictures, strict=True)))
        if _has_pyarrow():
            LOADERS["Parquet"].write(folder / "parquet" / str(shard), pictures)


def _both(url: str, root: Path, kind: str, order: str, connections: int) -> dict[str, list[float]]:
    command = [sys.executable, "-m", "ndd.bench.stores", url, str(root), kind, order, str(connections)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _reader(names: Sequence[str], kind: str, shuffled: bool) -> Any:
    import ndd

    if kind == "Parquet":
        order: dict[str, Any] = {"random_shuffle": True} if shuffled else {}
        return ndd.readers.Parquet(path=names, columns=["image", "label"], **order)
    order = {"shuffle": "global"} if shuffled else {}
    if kind == "MDS":
        return ndd.readers.MDS(path=[name.rpartition("/")[0] for name in names], columns=["image", "label"], **order)
    if kind == "File":
        return ndd.readers.File(files=names, **order)
    return ndd.readers.Webdataset(paths=names, ext=["jpg", "cls"], **order)


def _of_reader(names: Sequence[str], kind: str, shuffled: bool) -> tuple[float, float]:
    """Pictures a second, and CPU seconds of a picture, of a new reader with its index."""
    reader = _reader(names, kind, shuffled)
    len(reader)
    begun, cpu, count = time.perf_counter(), time.process_time(), 0
    for images, _ in reader.next_epoch(_BATCH, last_batch="partial"):
        count += images.batch_size
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    reader.close()
    return count / seconds, cpu / count


def _of_client(
    url: str, files: Sequence[tuple[str, int]], size: int, count: int, connections: int
) -> tuple[float, float]:
    """The same for the client, with ranges of `size` bytes."""
    obstore: Any = importlib.import_module("obstore")
    config = {"endpoint": url, **_OPTIONS}
    store = obstore.store.from_url("s3://pictures", config=config, client_options={"allow_http": True})
    jobs = iter([(name, at, min(at + size, total)) for name, total in files for at in range(0, total, size)])
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                job = next(jobs, None)
            if job is None:
                return
            obstore.get_range(store, job[0], start=job[1], end=job[2])

    begun, cpu = time.perf_counter(), time.process_time()
    threads = [threading.Thread(target=work) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count / (time.perf_counter() - begun), (time.process_time() - cpu) / count


def _most_memory() -> float:
    """The largest MB of memory of this process."""
    text = Path("/proc/self/status").read_text() if os.path.exists("/proc/self/status") else ""
    return int(text.partition("VmHWM:")[2].split()[0]) / 1024 if text else 0.0


def _answer(url: str, root: str, kind: str, order: str, connections: str) -> None:
    import ndd

    folder, shuffled = Path(root) / "pictures", order == "shuffled"
    paths = sorted(folder.glob(_FILES[kind]))
    count = len(list(folder.glob(_FILES["File"])))
    files = [(str(path.relative_to(folder)), path.stat().st_size) for path in paths]
    size = _RANGE if kind == "Parquet" or not (shuffled or kind == "File") else _SIZE
    times = _TIMES if size == _RANGE else 1
    count, files = count * times, files * times
    names = [f"s3://pictures/{name}" for name, _ in files]
    rates: dict[str, list[tuple[float, float]]] = {"ndd": [], "plain": []}
    with ndd.io.object_store(endpoint=url, connections=int(connections), **_OPTIONS):
        before = _most_memory()
        for _ in range(4):  # the first is for imports, compiling and connecting
            rates["ndd"].append(_of_reader(names, kind, shuffled))
            rates["plain"].append(_of_client(url, files, size, count, int(connections)))
        memory = _most_memory() - before
    answer = {side: [max(r for r, _ in said[1:]), min(c for _, c in said[1:]) * 1e6] for side, said in rates.items()}
    print(json.dumps({**answer, "memory": [memory]}))


if __name__ == "__main__":
    os.environ.pop("NDD_OBJECT_CACHE", None)
    _answer(*sys.argv[1:])
