"""The cost of loading for a network that trains beside it: images trained a second, as a share of the rate with free data.

The sides take turns, each training in its own process (`train_sides.py`); medians of the rounds are shown.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from ndd.bench.libraries import Setting, names_among
from ndd.bench.process import failure, say_left_out
from ndd.bench.rounds import Result
from ndd.bench.train_sides import SIDES
from ndd.demo.folder import PHOTOS, scan

_KERNELS_SHOWN = 8
_LEAST_MICROSECONDS = 0.05  # of GPU time for an image, from which a kernel gets a line
_STEPS = {"gpu": 200, "cpu": 20}


class Training(NamedTuple):
    """A network, a batch size, whether torch.compile compiles it, and ndd's goals beside it."""

    model: str
    batch_size: int
    compiled: bool = False
    share: float | None = None
    cores: float | None = None

    def title(self) -> str:
        """The name in the table."""
        names = {"resnet50": "ResNet-50", "resnet18": "ResNet-18", "small": "small network"}
        return f"{names[self.model]}{' compiled' if self.compiled else ''}, batch {self.batch_size}"


TRAININGS = {
    "gpu": (
        Training("resnet50", 256, share=0.975, cores=1.8),
        Training("resnet50", 256, compiled=True, share=0.96, cores=2.5),
        Training("resnet50", 64, share=0.94, cores=1.5),
        Training("resnet18", 256, share=0.90, cores=4),
    ),
    "cpu": (Training("small", 32),),
}


def measure(
    setting: Setting, data: Path | None, only: str = "", sides: str = "", steps: int | None = None, gpus: int = 1,
    hw_load: float | None = None, numa: str = "",
) -> Iterator[Result]:  # fmt: skip
    """The table of each training whose title contains `only`. `sides`: names of `train_sides.SIDES`, with commas between;
    `gpus`: the number of processes, each with a GPU; `numa`: torchrun's `--numa-binding`."""
    root = data or PHOTOS
    scan(root)  # raises an error for an unusable folder
    chosen = [side for side in names_among(sides, SIDES) if "DALI" not in side or "DALI" in setting.libraries]
    titles = [training.title() for training in TRAININGS[setting.device]]
    if not any([only.lower() in title.lower() for title in titles]):
        raise ValueError(f"--only: expected a part of one of {'; '.join(titles)}, got {only!r}")
    for training in TRAININGS[setting.device]:
        if only.lower() in training.title().lower():
            more = ["--steps", str(steps or _STEPS[setting.device])]
            if hw_load is not None:
                more += ["--hw-load", str(hw_load)]
            measured: dict[str, list[dict[str, Any]]] = {side: [] for side in chosen}
            for _ in range(setting.rounds):
                for side in chosen:
                    numbers = _trained(side, training, setting, root, more, gpus, numa)
                    if numbers is not None:
                        measured[side].append(numbers)
            place = f"{training.title()}, {gpus} x GPU" if gpus > 1 else training.title()
            yield from _rows(place, training, setting, {side: _medians(rounds) for side, rounds in measured.items()})


def _trained(
    side: str, training: Training, setting: Setting, root: Path, more: list[str], gpus: int, numa: str
) -> dict[str, Any] | None:
    """The output of `train_sides`; None if the side cannot run here."""
    start = [sys.executable]
    if gpus > 1:
        start += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={gpus}"]
        start += [f"--numa-binding={numa}"] if numa else []
    command = [
        *start, "-m", "ndd.bench.train_sides", side, "--model", training.model, "--batch-size", str(training.batch_size),
        "--device", setting.device, "--data", str(root), "--threads", str(setting.threads), *more,
    ]  # fmt: skip
    command += ["--compiled"] if training.compiled else []
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    if done.returncode:
        if side in ("ndd", "synthetic"):
            raise RuntimeError(f"training with {side} failed:\n{failure(done)}")
        say_left_out(side, done)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def _medians(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of each number; for kernels, the numbers of the last round."""
    if not rounds:
        return {}
    names = [name for name in rounds[0] if name != "kernels"]
    return {**{name: median([r[name] for r in rounds]) for name in names}, "kernels": rounds[-1].get("kernels", {})}


def _rows(
    place: str, training: Training, setting: Setting, measured: dict[str, dict[str, Any]]
) -> Iterator[Result]:  # fmt: skip
    def number(side: str, name: str) -> float | None:
        return measured.get(side, {}).get(name)

    def row(name: str, unit: str, key: str, other: str = "DALI pipeline", target: str = "") -> Result:
        return Result("train", name, unit, number("ndd", key), number(other, key), target)

    full = number("synthetic", "images_per_second")
    yield row(f"{place}; {setting.device.upper()}, {setting.threads} threads", "images/s", "images_per_second")
    for other in ("DALI dynamic", "DataLoader"):
        if measured.get(other):
            yield row(f"  beside {other} (second column)", "images/s", "images_per_second", other)
    if full is not None:
        yield Result(
            "train", "  with synthetic data (second column)", "images/s", number("ndd", "images_per_second"), full
        )
        goal = f"ndd >= {training.share}" if training.share else ""
        for side in [side for side in measured if side != "synthetic" and measured[side]]:
            share = measured[side]["images_per_second"] / full
            yield Result("train", f"  share of synthetic, {side}", "share", share, None, goal if side == "ndd" else "")
    goal = f"ndd <= {training.cores}" if training.cores else ""
    yield row("  cores busy, workers too", "cores", "cores", target=goal)
    yield row("  waiting of the training thread for a batch", "share", "waiting")
    yield row("  training thread off the CPU in a step (interpreter lock, queue of the GPU)", "ms", "off_cpu_ms")
    if full is not None:
        yield row("  the same with synthetic data (second column)", "ms", "off_cpu_ms", "synthetic")
    yield row("  seconds to the end of the first steps", "s", "warm_seconds")
    yield row("  host memory of the process", "GiB", "host_gib")
    if setting.device == "gpu":
        yield row("  memory of the GPU", "GiB", "gpu_gib")
        yield row("  of it torch's, for data in use or kept to be used again", "GiB", "torch_gib")
        yield from _kernel_rows(measured)


def _kernel_rows(measured: dict[str, dict[str, Any]]) -> Iterator[Result]:
    """GPU time for an image of kernels that do not run with synthetic data: the sum, then ndd's longest ones."""
    own = measured.get("synthetic", {}).get("kernels", {})
    loading = {
        side: {name: each for name, each in numbers.get("kernels", {}).items() if name not in own}
        for side, numbers in measured.items()
    }
    if not own or not loading.get("ndd"):
        return
    sums = {side: sum(kernels.values()) for side, kernels in loading.items()}
    beside = sum(each for name, each in measured["ndd"]["kernels"].items() if name in own)
    yield Result("train", "  GPU time of loading for an image", "us", sums["ndd"], sums.get("DALI pipeline") or None)
    yield Result(
        "train", "  GPU time of the network; with synthetic data (second column)", "us", beside, sum(own.values())
    )
    for name, each in sorted(loading["ndd"].items(), key=lambda item: -item[1])[:_KERNELS_SHOWN]:
        if each >= _LEAST_MICROSECONDS:
            yield Result("train", f"    {name[:60]}", "us", each, None)
