"""`bench mine SCRIPT.py`: a user's own loader beside the same loader written with ndd, each in its own process.

The script defines the two sides:

    dataset = MyDataset("data", transform=transforms)     # for DataLoader; or instead of it:
    def loader():                                         # anything that is iterated once an epoch
        return DataLoader(dataset, batch_size=64, num_workers=8, shuffle=True)

    def ndd_loop():                                       # the same with ndd: yields the batches of an epoch
        for jpegs, labels in reader.next_epoch(batch_size=64):
            yield ndd.resize(ndd.decoders.image(jpegs), size=[224, 224]).torch(), labels.torch()

With `dataset` alone the loader is a DataLoader, shuffled, with a worker for each thread and batches of `batch_size` (the
script's, or 64). `--only NAME` uses the function NAME of the script instead of `ndd_loop`; `--images N` ends each epoch after N
images. Both processes run the top level of the script, so slow code and code for one side belongs in a function.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ndd.bench.libraries import Setting
from ndd.bench.process import failure
from ndd.bench.rounds import Result

SIDES = ("ndd", "yours")


def measure(
    setting: Setting, script: Path | None, batch_size: int | None = None, images: int | None = None, only: str = ""
) -> Iterator[Result]:
    """Images a second and cores of both sides. ValueError without a script."""
    if script is None:
        raise ValueError("bench mine: expected a script: python -m ndd bench mine SCRIPT.py; see help(ndd.bench.mine)")
    if not script.is_file():
        raise FileNotFoundError(
            f"bench mine: expected a file, got {script}: write a script with `dataset` or `loader`, and `ndd_loop`."
        )
    numbers = {}
    for side in SIDES:
        command = [
            sys.executable, "-m", "ndd.bench.mine_side", side, str(script), "--threads", str(setting.threads), "--rounds",
            str(setting.rounds), "--batch-size", str(batch_size or 0), "--images", str(images or 0), "--loop",
            only or "ndd_loop",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
        if done.returncode:
            raise RuntimeError(f"bench mine: the side of {side} failed:\n{failure(done)}")
        numbers[side] = json.loads(done.stdout.strip().splitlines()[-1])
    ours, theirs = numbers["ndd"], numbers["yours"]
    title = f"{script.name}; {setting.threads} threads"
    yield Result("mine", f"{title} (2nd column: yours)", "images/s", ours["rate"], theirs["rate"])
    yield Result(
        "mine", "  images of an epoch, as far as it was looped over", "images", ours["images"], theirs["images"]
    )
    yield Result("mine", "  cores busy, workers too", "cores", ours["cores"], theirs["cores"])
    yield Result("mine", "  time to the first batch", "s", ours["first"], theirs["first"])
