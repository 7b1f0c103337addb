"""The main job: JPEG files to normalised torch batches, and the parts of it that may bound it."""

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

Stage = Callable[[Any, str, Any], Any]  # (library, device, encoded batch) -> something to evaluate


def _read(library: Any, device: str, jpegs: Any) -> Any:
    return jpegs.evaluate()


def _decode(library: Any, device: str, jpegs: Any) -> Any:
    return library.decoders.image(jpegs, device=device).evaluate()


def _whole(library: Any, device: str, jpegs: Any) -> Any:
    images = library.decoders.image(jpegs, device=device)
    images = library.resize(images, size=[224, 224])
    return library.crop_mirror_normalize(images, mean=MEAN, std=STD).torch()


def measure(
    setting: Setting, data: Path | None, batch_sizes: list[int] | None = None, images: int | None = None
) -> Iterator[Result]:
    """Images a second, an epoch being one side of one round. The whole loop first, then reading, and with decoding."""
    place = f"{setting.device.upper()}, {setting.threads} threads"
    target = "ratio >= 1.7" if setting.device == "cpu" else "ratio >= 1.0"
    for batch_size in batch_sizes or ([64] if setting.device == "cpu" else [64, 256]):
        files = folder(data, images or _LEAST[setting.device])
        stages: list[tuple[str, Stage, str]] = [
            ("decode, resize 224, normalise, torch", _whole, target),
            ("  of which reading alone", _read, ""),
            ("  reading and decoding", _decode, ""),
        ]
        for title, stage, wanted in stages:
            found = _rates(setting, files, batch_size, stage)
            yield Result(
                "loop", f"{title}; batch {batch_size}, {place}", "images/s", found["ndd"], found.get("DALI"), wanted
            )


def _rates(setting: Setting, files: Folder, batch_size: int, stage: Stage) -> dict[str, float]:
    sides = {name: _epochs(library, setting, files, batch_size, stage) for name, library in setting.libraries.items()}
    for side in sides.values():
        side()  # opens readers, compiles, fills memory pools
    return interleaved(sides, setting.rounds)


def _epochs(library: Any, setting: Setting, files: Folder, batch_size: int, stage: Stage) -> Callable[[], float]:
    """A function that runs one epoch and gives images a second."""
    reader = library.readers.File(
        file_root=str(files.root), files=files.files, labels=files.labels, random_shuffle=True
    )

    def epoch() -> float:
        count = 0
        setting.settle()
        start = time.perf_counter()
        for jpegs, labels in reader.next_epoch(batch_size=batch_size):
            stage(library, setting.device, jpegs)
            count += len(labels.torch())
        setting.settle()
        return count / (time.perf_counter() - start)

    return epoch
