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
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from ndd.bench.libraries import Setting
from ndd.bench.loop_pictures import convert_pictures, distinct_files
from ndd.bench.loop_sides import SIDES
from ndd.bench.rounds import Result
from ndd.demo.folder import PHOTOS, scan

_WORTH_TELLING = 0.05  # ms of CPU time for a batch
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
) -> Iterator[Result]:
    """Images a second of each loop whose name begins with `only`, ndd beside the others; `pictures` converts the files to a
    kind of `loop_pictures.PICTURES` first; `hw_load` is the decoders' `hw_decoder_load`."""
    with tempfile.TemporaryDirectory() as folder:
        root = data or PHOTOS
        if pictures:
            root = convert_pictures(Path(folder), root, pictures)
        scan(root)  # raises an error for an unusable folder
        distinct = root
        if "read".startswith(only):
            distinct = distinct_files(Path(folder, "links"), root, images or _LEAST[setting.device])
        for batch_size in batch_sizes or ([64] if setting.device == "cpu" else [64, 256]):
            for loop, title in _TITLES.items():
                if loop.startswith(only) and (pictures or only or loop != "normalize"):
                    files = distinct if loop == "read" else root
                    yield from _compared(setting, files, batch_size, loop, title, images, pictures, hw_load)


def _compared(
    setting: Setting,
    root: Path,
    batch_size: int,
    loop: str,
    title: str,
    images: int | None,
    pictures: str,
    hw_load: float | None,
) -> Iterator[Result]:
    sides = [side for side in SIDES if side == "ndd" or "DALI" in setting.libraries]
    sides = [side for side in sides if loop != "read" or side == "ndd" or "DALI" in side]
    rates: dict[str, float | None] = {}
    spent: dict[str, float | None] = {}
    others: dict[str, dict[str, float]] = {}
    for side in sides:
        rates[side], spent[side], others[side] = _rate(side, setting, root, batch_size, loop, images, hw_load)
    kind = f"{pictures} pictures, " if pictures else ""
    kind += f"hw_decoder_load={hw_load}, " if hw_load is not None else ""
    place = f"{kind}batch {batch_size}, {setting.device.upper()}, {setting.threads} threads"
    yield Result(
        "loop", f"{title}; {place}", "images/s", rates["ndd"], rates.get("DALI dynamic"), _target(setting, SIDES[1])
    )
    for side in sides[2:]:
        if rates[side] is not None:
            name = f"  beside {side} (second column)"
            yield Result("loop", name, "images/s", rates["ndd"], rates[side], _target(setting, side))
    name = "  CPU time of the caller's thread for a batch"
    yield Result(
        "loop", name, "ms", spent["ndd"], spent.get("DALI dynamic"), "ndd < 1" if setting.device == "gpu" else ""
    )
    for thread, each in others["ndd"].items():
        if each >= _WORTH_TELLING:
            yield Result("loop", f"  of the threads {thread}", "ms", each, None)


def _target(setting: Setting, side: str) -> str:
    return _TARGETS[setting.device].get(side, "")


def _rate(
    side: str, setting: Setting, root: Path, batch_size: int, loop: str, images: int | None, hw_load: float | None
) -> tuple[float | None, float | None, dict[str, float]]:
    """Images a second of one side, the caller's CPU time for a batch in ms, and the CPU time of Python's other threads; None if
    it cannot run here."""
    command = [
        sys.executable, "-m", "ndd.bench.loop_sides", side, loop, "--device", setting.device, "--data", str(root),
        "--images", str(images or _LEAST[setting.device]), "--batch-size", str(batch_size), "--threads",
        str(setting.threads), "--rounds", str(setting.rounds),
    ]  # fmt: skip
    if hw_load is not None:
        command += ["--hw-load", str(hw_load)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    if done.returncode:
        if side == "ndd":
            raise RuntimeError(f"the loop of ndd failed:\n{done.stderr[-2000:]}")
        print(f"{side} does not run here: {(done.stderr.strip().splitlines() or ['no message'])[-1][:160]}")
        return None, None, {}
    rates, spent, others = json.loads(done.stdout.strip().splitlines()[-1])
    return median(rates), median(spent), others
