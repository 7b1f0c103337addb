"""The loop of the README: files to augmented torch batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ndd
from ndd.demo.folder import Folder

SIDE = 96
MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]


def open_reader(folder: Folder, seed: int) -> Any:
    """A reader of the folder's files in random order."""
    return ndd.readers.File(
        file_root=str(folder.root), files=folder.files, labels=folder.labels, random_shuffle=True, seed=seed
    )


def augmented(reader: Any, batch_size: int, device: str) -> Iterator[tuple[Any, Any]]:
    """One epoch of (images `[N, 3, SIDE, SIDE]` float32, labels `[N]` int64) as torch tensors on `device`."""
    for jpegs, labels in reader.next_epoch(batch_size=batch_size):
        images = ndd.decoders.image(jpegs, device=device)
        images = ndd.random_resized_crop(images, size=[SIDE, SIDE], random_area=[0.25, 1.0])
        mirror = ndd.random.coin_flip(batch_size=batch_size)
        images = ndd.crop_mirror_normalize(images, mean=MEAN, std=STD, mirror=mirror)
        yield images.torch(), labels.torch().flatten().to("cuda" if device == "gpu" else "cpu").long()
