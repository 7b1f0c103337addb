"""The main job: JPEG files to normalised torch batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ndd.bench.libraries import Setting
from ndd.bench.photographs import folder
from ndd.bench.rounds import Result, interleaved
from ndd.demo.folder import Folder
from ndd.demo.loop import MEAN, STD

_LEAST = {"cpu": 512, "gpu": 8192}


def measure(
    setting: Setting, data: Path | None, batch_sizes: list[int] | None = None, images: int | None = None
) -> Iterator[Result]:
    """Images a second, an epoch being one side of one round."""
    default = [64] if setting.device == "cpu" else [64, 256]
    for batch_size in batch_sizes or default:
        files = folder(data, images or _LEAST[setting.device])
        sides = {name: _epochs(library, setting, files, batch_size) for name, library in setting.libraries.items()}
        for side in sides.values():
            side()  # opens readers, compiles, fills memory pools
        found = interleaved(sides, setting.rounds)
        target = "ratio >= 1.7" if setting.device == "cpu" else "ratio >= 1.0"
        place = f"{setting.device.upper()}, {setting.threads} threads"
        name = f"decode, resize 224, normalise, torch; batch {batch_size}, {place}"
        yield Result("loop", name, "images/s", found["ndd"], found.get("DALI"), target)


def _epochs(library: Any, setting: Setting, files: Folder, batch_size: int) -> Callable[[], float]:
    """A function that runs one epoch and gives images a second."""
    reader = library.readers.File(
        file_root=str(files.root), files=files.files, labels=files.labels, random_shuffle=True
    )

    def epoch() -> float:
        count = 0
        setting.settle()
        start = time.perf_counter()
        for jpegs, labels in reader.next_epoch(batch_size=batch_size):
            images = library.decoders.image(jpegs, device=setting.device)
            images = library.resize(images, size=[224, 224])
            images = library.crop_mirror_normalize(images, mean=MEAN, std=STD)
            count += len(images.torch())
            labels.torch()
        setting.settle()
        return count / (time.perf_counter() - start)

    return epoch
