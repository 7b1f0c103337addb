"""The main job: JPEG files to normalised torch batches, and those of its parts that may limit it.

The libraries run one after the other, each in its own process (`loop_sides.py`): in one process they would share memory and the
threads of nvImageCodec. Medians of the epochs are shown.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

from ndd.bench.libraries import Setting, names_among
from ndd.bench.loop_pictures import PICTURES, convert_pictures, distinct_files
from ndd.bench.loop_sides import SIDES
from ndd.bench.process import failure, say_left_out
from ndd.bench.rounds import Result
from ndd.demo.folder import PHOTOS, scan

_WORTH_TELLING = 0.05  # ms of CPU time for a batch
_FEW = 4  # batches of large pictures for an epoch
_LEAST = {"cpu": 512, "gpu": 8192}
_TITLES = {
    "random_resized_crop": "decode, random_resized_crop 224, mirror, normalise, torch",
    "resize": "decode, resize 224, normalise, torch",
    "normalize": "decode, normalise",
    "decode": "reading and decoding",
    "read": "reading alone",
}
_TARGETS = {"cpu": {"DALI dynamic": "ratio >= 2.2"}, "gpu": {"DALI pipeline": "ratio >= 1.15"}}


def measure(
    setting: Setting,
    data: Path | None,
    batch_sizes: list[int] | None = None,
    images: int | None = None,
    only: str = "",
    pictures: str = "",
    hw_load: float | None = None,
    sides: str = "",
) -> Iterator[Result]:
    """Images a second of each loop whose name begins with `only`, ndd beside the others; `pictures` converts the files to a
    kind of `loop_pictures.PICTURES` first, or to each of them in turn ("all"); `hw_load` is the decoders' `hw_decoder_load`;
    `sides`: names of `loop_sides.SIDES`, with commas between."""
    chosen = names_among(sides, SIDES)
    for kind in PICTURES if pictures == "all" else [pictures]:
        with tempfile.TemporaryDirectory() as folder:
            root = data or PHOTOS
            if kind:
                root = convert_pictures(Path(folder), root, kind)
            scan(root)  # raises an error for an unusable folder
            count, most = images or _LEAST[setting.device], PICTURES[kind].most if kind else None
            sizes = batch_sizes or ([64] if setting.device == "cpu" else [64, 256])
            if most is not None:  # large pictures
                count, sizes = min(count, _FEW * most), sorted({min(size, most) for size in sizes})
            distinct = root
            if "read".startswith(only):
                distinct = distinct_files(Path(folder, "links"), root, count)
            for batch_size in sizes:
                for loop, title in _TITLES.items():
                    if loop.startswith(only) and (kind or only or loop != "normalize"):
                        files = distinct if loop == "read" else root
                        case = _Case(chosen, files, loop, batch_size, count, kind, hw_load)
                        yield from _compared(setting, case, title)


class _Case(NamedTuple):
    """A loop on the pictures below `root`, by some sides."""

    sides: list[str]
    root: Path
    loop: str
    batch_size: int
    images: int
    pictures: str
    hw_load: float | None


class _Times(NamedTuple):
    """Medians of the epochs, as `loop_sides` prints them; None if the side cannot run here."""

    rate: float | None = None
    caller: float | None = None
    process: float | None = None
    threads: Mapping[str, float] = MappingProxyType({})


def _compared(setting: Setting, case: _Case, title: str) -> Iterator[Result]:
    sides = [side for side in case.sides if side == "ndd" or "DALI" in setting.libraries]
    sides = [side for side in sides if case.loop != "read" or side == "ndd" or "DALI" in side]
    times = {side: _times(side, setting, case) for side in sides}
    ours, theirs = times.get("ndd", _Times()), times.get(SIDES[1], _Times())
    kind = f"{case.pictures} pictures, " if case.pictures else ""
    kind += f"hw_decoder_load={case.hw_load}, " if case.hw_load is not None else ""
    place = f"{kind}batch {case.batch_size}, {setting.device.upper()}, {setting.threads} threads"
    yield Result("loop", f"{title}; {place}", "images/s", ours.rate, theirs.rate, _target(setting, SIDES[1]))
    for side in SIDES[2:]:
        if side in times and times[side].rate is not None:
            name = f"  beside {side} (second column)"
            yield Result("loop", name, "images/s", ours.rate, times[side].rate, _target(setting, side))
    name, target = "  CPU time of the caller's thread for a batch", "ndd < 1" if setting.device == "gpu" else ""
    yield Result("loop", name, "ms", ours.caller, theirs.caller, target)
    yield Result("loop", "  CPU time of the process for an image", "ms", ours.process, theirs.process)
    for thread, each in ours.threads.items():
        if each >= _WORTH_TELLING:
            yield Result("loop", f"  of the threads {thread}", "ms", each, None)


def _target(setting: Setting, side: str) -> str:
    return _TARGETS[setting.device].get(side, "")


def _times(side: str, setting: Setting, case: _Case) -> _Times:
    command = [
        sys.executable, "-m", "ndd.bench.loop_sides", side, case.loop, "--device", setting.device, "--data", str(case.root),
        "--images", str(case.images), "--batch-size", str(case.batch_size), "--threads",
        str(setting.threads), "--rounds", str(setting.rounds),
    ]  # fmt: skip
    if case.hw_load is not None:
        command += ["--hw-load", str(case.hw_load)]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    if case.pictures:  # their kernels are compiled in the first epoch, which is not timed
        environment["NDD_COMPILE_IN_BACKGROUND"] = "0"
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        if side == "ndd":
            raise RuntimeError(f"the loop of ndd failed:\n{failure(done)}")
        say_left_out(side, done)
        return _Times()
    *epochs, threads = json.loads(done.stdout.strip().splitlines()[-1])
    rate, caller, process = map(median, epochs)
    return _Times(rate, caller, process, threads)
