"""The images for measurements: encoded files, and decoded arrays for both libraries."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ndd.demo.folder import PHOTOS, Folder, scan


def folder(data: Path | None, least: int) -> Folder:
    """The files below `data`, or the embedded ones, repeated until there are at least `least`."""
    return scan(data or PHOTOS).repeated(least)


def decoded(data: Path | None, count: int) -> list[np.ndarray]:
    """`count` RGB images, uint8 HWC, in the sizes of the files."""
    from PIL import Image

    files = folder(data, count)
    step = max(1, len(files.files) // count)  # from all classes
    images = []
    for name in files.files[::step][:count]:
        with Image.open(files.root / name) as image:
            images.append(np.array(image.convert("RGB")))
    return images
