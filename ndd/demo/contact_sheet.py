"""One augmented batch as a picture."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from ndd.atomic_file import atomic_file
from ndd.demo.loop import MEAN, STD

_GAP = 4


def save(images: Any, path: Path) -> tuple[int, int]:
    """Writes normalised `[N, 3, H, W]` images as tiles of one PNG; returns its width and height."""
    from PIL import Image

    pixels = images.detach().cpu().numpy().transpose(0, 2, 3, 1) * np.array(STD) + np.array(MEAN)
    pixels = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
    n, height, width, _ = pixels.shape
    columns = math.ceil(math.sqrt(n))
    rows = -(-n // columns)
    sheet = np.full((rows * (height + _GAP) + _GAP, columns * (width + _GAP) + _GAP, 3), 32, np.uint8)
    for i, tile in enumerate(pixels):
        y = _GAP + (i // columns) * (height + _GAP)
        x = _GAP + (i % columns) * (width + _GAP)
        sheet[y : y + height, x : x + width] = tile
    with atomic_file(path) as file:
        Image.fromarray(sheet).save(file, "PNG")
    return sheet.shape[1], sheet.shape[0]
