"""Recipes of torchvision's references: `ndd.torchvision` beside torchvision in a DataLoader with as many workers as threads.

The sides take turns, each in its own process (`torchvision_sides.py`); medians of the rounds are shown.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from ndd.bench.libraries import Setting
from ndd.bench.process import failure, say_left_out
from ndd.bench.rounds import Result
from ndd.bench.torchvision_sides import RECIPES, SIDES
from ndd.demo.folder import PHOTOS, scan

_LEAST = {"cpu": 512, "gpu": 8192}
_BATCH = {"imagenet": 64, "SSDlite": 24, "segmentation": 8}
_TARGETS = {"cpu": "ratio >= 2.0", "gpu": "ratio >= 5.0"}


def measure(
    setting: Setting, data: Path | None, batch_size: int | None = None, images: int | None = None, only: str = ""
) -> Iterator[Result]:
    """Images a second of each recipe whose name contains `only`."""
    root = data or PHOTOS
    scan(root)  # raises an error for an unusable folder
    for recipe in RECIPES:
        if only.lower() not in recipe.lower():
            continue
        batch = batch_size or next(size for name, size in _BATCH.items() if recipe.startswith(name))
        count = images or _LEAST[setting.device]
        rates = {side: _rate(side, recipe, setting, root, batch, count) for side in SIDES}
        title = (
            f"{recipe}; batch {batch}, {setting.device.upper()}, {setting.threads} threads (2nd column: torchvision)"
        )
        yield Result("torchvision", title, "images/s", rates["ndd"], rates["torchvision"], _TARGETS[setting.device])


def _rate(side: str, recipe: str, setting: Setting, root: Path, batch: int, images: int) -> float | None:
    """Images a second of one side; None if it cannot run here."""
    command = [
        sys.executable, "-m", "ndd.bench.torchvision_sides", side, recipe, "--device", setting.device, "--data", str(root),
        "--images", str(max(images, batch)), "--batch-size", str(batch), "--threads", str(setting.threads), "--rounds",
        str(setting.rounds),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    if done.returncode:
        if side == "ndd":
            raise RuntimeError(f"the recipe {recipe} of ndd failed:\n{failure(done)}")
        say_left_out(side, done)
        return None
    return median(json.loads(done.stdout.strip().splitlines()[-1]))
