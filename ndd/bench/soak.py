"""Long runs and abrupt exits: memory must not grow, samples must not be lost, and processes must end without output.

`python -m ndd bench soak` counts failures and measures the memory that an iteration leaves behind; the target of every count is
0. There is no comparison with DALI, where some parts crash or hang.
"""

from __future__ import annotations

import collections
import gc
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import ndd
from ndd._tensor.memory import free_bytes
from ndd.bench.libraries import Setting
from ndd.bench.photographs import folder
from ndd.bench.rounds import Result

_BATCH = 8
_SMALL = 96  # pixels: small, because the number of iterations matters
_FLAT = "<= 0.5"  # kB an iteration; the first fifth, which fills pools and caches, does not count
_PROCESS_SECONDS = 300.0


def measure(setting: Setting, data: Path | None, count: int | None, only: str) -> Iterator[Result]:
    """The parts whose name contains `only`, each with its own number of repetitions unless `count` is given."""
    for name, (part, usual) in _PARTS.items():
        if only in name:
            yield from part(setting, data, count or usual)


def _result(name: str, unit: str, value: float, target: str) -> Result:
    return Result("soak", name, unit, float(value), None, target)


def _reader(data: Path | None, **options: Any) -> ndd.readers.File:
    files = folder(data, 64)
    return ndd.readers.File(
        file_root=str(files.root), files=files.files, labels=list(range(len(files.files))), **options
    )


def _memory() -> int:
    """Resident bytes of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _gpu_memory() -> int:
    """Bytes of GPU memory that torch and the decoders use."""
    import torch

    free, whole = torch.cuda.mem_get_info()
    return whole - free


def _growth(work: Callable[[int], Any], count: int) -> float:
    """Kilobytes of host memory that one of `count` iterations leaves behind, without the first fifth."""
    return _growths(work, count, [_memory])[0]


def _growths(work: Callable[[int], Any], count: int, measures: list[Callable[[], int]]) -> list[float]:
    """The same for several kinds of memory, each with a function that returns the bytes in use."""
    first = max(count // 5, 1)
    for i in range(first):
        work(i)
    gc.collect()
    before = [measure() for measure in measures]
    for i in range(first, first + count):
        work(i)
    gc.collect()
    return [(measure() - old) / 1024 / count for measure, old in zip(measures, before, strict=True)]


def _loop(setting: Setting, data: Path | None, count: int) -> Iterator[Result]:
    """The loop of the README, repeated."""
    reader, where = _reader(data, random_shuffle=True), setting.device
    epoch = iter(())

    def iteration(_: int) -> None:
        nonlocal epoch
        jpegs = next(epoch, None)
        if jpegs is None:
            epoch = iter(reader.next_epoch(batch_size=_BATCH))
            jpegs = next(epoch)
        images = ndd.decoders.image(jpegs[0], device=where)
        images = ndd.random_resized_crop(images, size=[_SMALL, _SMALL])
        mirror = ndd.random.coin_flip(batch_size=_BATCH)
        ndd.crop_mirror_normalize(images, mean=[120.0], std=[60.0], mirror=mirror).torch()

    # Over thousands of iterations, a loop that runs ahead now and then has more buffers of a size in use than before.
    places = {"host kept for reuse": free_bytes, "host, other": lambda: _memory() - free_bytes()}
    if where == "gpu":
        places["GPU"] = _gpu_memory
    for place, grown in zip(places, _growths(iteration, count, list(places.values())), strict=True):
        name = f"{count:,} iterations of the loop, {where.upper()}: memory of the {place}"
        yield _result(name, "kB/iter.", grown, "1 GiB in all" if place.endswith("reuse") else _FLAT)


def _threads(setting: Setting, data: Path | None, count: int) -> Iterator[Result]:
    """Eight threads, each with its own loop, take batches of one reader: no sample is lost or read twice."""
    reader, lock = _reader(data), threading.Lock()
    seen: list[int] = []
    errors: list[BaseException] = []
    batches = 8 * max(count // 8, 1)
    left = iter(range(batches))

    def work() -> None:
        try:
            while True:
                with lock:
                    if next(left, None) is None:
                        return
                    jpegs, labels = reader(batch_size=_BATCH)
                images = ndd.decoders.image(jpegs, device=setting.device)
                small = ndd.resize(images, size=[_SMALL, _SMALL])
                flipped = ndd.flip(ndd.brightness(small, brightness=1.5)).torch()
                if tuple(flipped.shape) != (_BATCH, _SMALL, _SMALL, 3):
                    raise RuntimeError(f"a batch of shape {tuple(flipped.shape)}")
                with lock:
                    seen.extend(labels.torch().flatten().tolist())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times, rest = divmod(batches * _BATCH, len(reader))
    numbers = collections.Counter(seen)
    wrong = sum(numbers[i] != times + (i < rest) for i in range(len(reader)))
    yield _result(
        f"8 threads, one reader, {batches:,} batches: samples lost or twice, errors", "", wrong + len(errors), "0"
    )


def _abandoned(setting: Setting, data: Path | None, count: int) -> Iterator[Result]:
    """Epochs left at a random place; every second one with a reset, so that both ways to continue are used."""
    reader, chance = _reader(data), random.Random(0)
    others = set(threading.enumerate())

    def iteration(i: int) -> None:
        stop = chance.randrange(4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the reader warns of epochs that were left
            for place, (jpegs, _) in enumerate(reader.next_epoch(batch_size=_BATCH)):
                images = ndd.resize(ndd.decoders.image(jpegs, device=setting.device), size=[_SMALL, _SMALL])
                if place == stop:
                    break
        images.evaluate()  # otherwise the queue of unevaluated calls grows
        if i % 2:
            reader.reset()

    grown = _growth(iteration, count)
    yield _result(f"{count:,} epochs left in the middle: memory", "kB/epoch", grown, "<= 5")
    reader.close()
    time.sleep(0.2)
    alive = sum(thread.name.startswith("ndd-read") for thread in set(threading.enumerate()) - others)
    yield _result("  threads of the reader that are left", "", alive, "0")


@ndd.operator(register=False)
def _fails(images, /, *, at: int = 0):
    """Copies, and fails at one sample."""
    return ndd.like(images)


@_fails.plan
def _(images, *, at):
    return ndd.Plan(images.shapes, {"bad": np.arange(len(images.shapes)) == at})


@_fails.cpu
def _(image, out, bad):
    if bad:
        raise LookupError("no luck")
    out[...] = image


def _exceptions(setting: Setting, data: Path | None, count: int) -> Iterator[Result]:
    """Errors in every place: at the call, in a decoder, in a user's operator, in the loop. The next call must work."""
    jpegs = _reader(data).fetch(range(_BATCH))[0].evaluate()
    damaged: Any = ndd.batch([np.asarray(t)[: 200 + 50 * i] for i, t in enumerate(jpegs.tensors)])
    wrong = 0

    def iteration(i: int) -> None:
        nonlocal wrong
        images = ndd.resize(ndd.decoders.image(jpegs, device=setting.device), size=[_SMALL, _SMALL])
        kinds: list[Callable[[], Any]] = [
            lambda: ndd.resize(images, size=[-1, 5, 7]).evaluate(),
            lambda: ndd.decoders.image(damaged, device=setting.device).evaluate(),
            lambda: ndd.flip(_fails(images.cpu(), at=i % _BATCH)).evaluate(),
            lambda: ndd.crop(images, crop=[_SMALL * 2, 1]).evaluate(),
            lambda: ndd.nonsense(images),  # type: ignore[attr-defined]
        ]
        try:
            kinds[i % len(kinds)]()
        except (ValueError, RuntimeError, LookupError, AttributeError, TypeError, IndexError):
            pass
        else:
            wrong += 1
        kept = ndd.decoders.image(damaged if i % 2 else jpegs, on_error="skip", device=setting.device).evaluate()
        wrong += kept.batch_size != (0 if i % 2 else _BATCH)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grown = _growth(iteration, count)
    yield _result(f"{count:,} errors in every place: calls that went wrong", "", wrong, "0")
    yield _result("  memory", "kB/error", grown, _FLAT)


_START = """
import logging, os, random, sys, threading, time
import numpy as np
import ndd
logging.getLogger("ndd").setLevel(logging.ERROR)  # not: that it compiles, which is not a fault
images = ndd.batch([np.full((60, 50, 3), i, np.uint8) for i in range(4)], layout="HWC")
chance = random.Random(int(sys.argv[1]))
"""
_EXIT = """
for number in range(4):  # four forked ones end in the same way before it does: a start takes much longer
    child = os.fork()
    if not child:
        chance.seed(number + int(sys.argv[1]))
        break
    if os.waitpid(child, 0)[1]:
        print("a child failed", file=sys.stderr)
reader = ndd.readers.File(files=[ndd.__file__] * 100)
epoch = reader.next_epoch(batch_size=4)
data, labels = next(epoch)
work = [ndd.gaussian_blur(images, sigma=float(1 + i)) for i in range(chance.randrange(60))]
if chance.random() < 0.3:
    threading.Thread(target=lambda: [w.evaluate() for w in work], daemon=True).start()
with ndd.EvalMode.deferred:
    later = ndd.flip(images)
time.sleep(chance.uniform(0, 0.05))
if chance.random() < 0.3:
    sys.exit(0)
"""
_FORK = """
for i in range(25):
    pending = [ndd.resize(images, size=[10 + i, 12]), ndd.flip(images), ndd.hsv(images, hue=3.0 + i)]
    time.sleep(chance.uniform(0, 0.1))
    child = os.fork()
    if not child:
        import signal
        signal.alarm(60)
        good = False
        try:
            good = np.asarray(ndd.flip(images).select(2)).max() == 2
            good = good and all([np.asarray(p.select(0)).size for p in pending])
        finally:
            os._exit(0 if good else 1)
    if os.waitpid(child, 0)[1]:
        print("a child failed", file=sys.stderr)
    [p.evaluate() for p in pending]
"""
_FIRST = """
import numba, signal
numba.njit(lambda x: x + 1)(1)  # the compiler is got ready once for all children: 1 s
calls = [  # two that share kernels, one with its own; quick to compile
    lambda: ndd.brightness(images, brightness=2.0), lambda: ndd.contrast(images, contrast=2.0),
    lambda: ndd.lookup_table(images, keys=[1], values=[2.0]),
]
def work(i):
    try:
        calls[i % 3]().evaluate()
    except BaseException as error:
        failed.append(error)
        print(repr(error), file=sys.stderr)
failed = []
def first_calls():
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    return len(failed)
for number in range(5):
    os.environ["NDD_CACHE_DIR"] = os.path.join(os.environ["NUMBA_CACHE_DIR"], str(number))
    children = []
    for _ in range(2):
        children.append(os.fork())
        if not children[-1]:
            signal.alarm(120)
            os._exit(first_calls())
    for child in children:
        if os.waitpid(child, 0)[1]:
            print("a child failed", file=sys.stderr)
"""


def _processes(code: str, count: int, side_by_side: int = 1, empty_cache: bool = False) -> int:
    """The number of `count` rounds of processes that ended with a code other than 0 or with output."""
    wrong = 0
    for _ in range(count):
        seed = random.randrange(2**32)
        with tempfile.TemporaryDirectory(prefix="ndd-soak-") as cache:
            own = {"NUMBA_CACHE_DIR": cache, "NDD_CACHE_DIR": cache} if empty_cache else {}
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **own}
            running = [
                subprocess.Popen(
                    [sys.executable, "-c", _START + code, str(seed)],
                    env=environment,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                for _ in range(side_by_side)
            ]
            for process in running:
                try:
                    said = process.communicate(timeout=_PROCESS_SECONDS)[1]
                except subprocess.TimeoutExpired:
                    process.kill()
                    said = f"no end in {_PROCESS_SECONDS:.0f} s: {process.communicate()[1]}"
                if process.returncode or said:
                    wrong += 1
                    print(f"process of seed {seed}: code {process.returncode}: {said[-500:]}", file=sys.stderr)
    return wrong


def _exits(setting: Setting, data: Path | None, count: int) -> Iterator[Result]:
    wrong = _processes(_EXIT, -(-count // 5))
    name = f"{count} ends with work queued, four of five of forked processes: not silent, or another code than 0"
    yield _result(name, "", wrong, "0")


def _forks(setting: Setting, data: Path | None, count: int) -> Iterator[Result]:
    wrong = _processes(_FORK, -(-count // 25))
    yield _result(f"{count} forks at random moments: processes with a child that failed or hung", "", wrong, "0")


def _first_calls(setting: Setting, data: Path | None, count: int) -> Iterator[Result]:
    wrong = _processes(_FIRST, -(-count // 5), side_by_side=2, empty_cache=True)
    name = f"{count} times four processes of 8 threads on an empty cache: pairs of processes that failed"
    yield _result(name, "", wrong, "0")


_PARTS: dict[str, tuple[Callable[[Setting, Path | None, int], Iterator[Result]], int]] = {
    "loop": (_loop, 10_000),
    "threads": (_threads, 2_000),
    "abandoned": (_abandoned, 1_000),
    "exceptions": (_exceptions, 5_000),
    "exits": (_exits, 200),
    "forks": (_forks, 500),
    "first calls": (_first_calls, 50),
}
