"""Encoded images for tests: small ones made here in every format, and the folder of real files where there is one."""

from __future__ import annotations

import functools
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

FOLDER = Path(os.environ.get("NDD_TEST_DATA", Path(__file__).parents[2] / "shared" / "data")) / "images"
KINDS = ("RGB", "BGR", "GRAY", "YCbCr", "ANY_DATA")

needs_files = pytest.mark.skipif(not FOLDER.is_dir(), reason="there is no folder of real images (NDD_TEST_DATA)")


def photo(height: int = 40, width: int = 56, seed: int = 0) -> np.ndarray:
    """Something smooth with edges, as photographs are."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 255, (5, 7, 4), np.uint8)
    smooth = [Image.fromarray(coarse[..., c]).resize((width, height), Image.Resampling.BICUBIC) for c in range(4)]
    return np.stack([np.asarray(s) for s in smooth], axis=-1)


def encode(
    pixels: np.ndarray, kind: str, mode: str | None = None, orientation: int | None = None, **options: Any
) -> np.ndarray:
    """Pixels as the bytes of a file, by Pillow."""
    picture = Image.fromarray(pixels) if mode is None else Image.fromarray(pixels, mode)
    if orientation is not None:
        exif = Image.Exif()
        exif[274] = orientation
        options["exif"] = exif
    held = io.BytesIO()
    picture.save(held, kind, **options)
    return np.frombuffer(held.getvalue(), np.uint8)


@functools.cache
def made() -> dict[str, np.ndarray]:
    """A file of each kind, by name."""
    p = photo()
    rgb, gray = np.ascontiguousarray(p[..., :3]), np.ascontiguousarray(p[..., 0])
    deep = gray.astype(np.uint16) * 251
    two = Image.fromarray(rgb).quantize(16)
    held = io.BytesIO()
    two.save(held, "PNG")
    found = {
        "420.jpg": encode(rgb, "JPEG", quality=90),
        "444.jpg": encode(rgb, "JPEG", quality=90, subsampling=0),
        "422_progressive.jpg": encode(rgb, "JPEG", quality=80, subsampling=1, progressive=True),
        "gray.jpg": encode(gray, "JPEG"),
        "rgb.jpg": encode(rgb, "JPEG", keep_rgb=True, quality=95),
        "odd.jpg": encode(np.ascontiguousarray(photo(33, 47, 3)[..., :3]), "JPEG"),
        "rgb.png": encode(rgb, "PNG"),
        "gray.png": encode(gray, "PNG"),
        "rgba.png": encode(p, "PNG"),
        "gray_16.png": encode(deep, "PNG"),
        "bilevel.png": encode(gray > 128, "PNG"),
        "palette.png": np.frombuffer(held.getvalue(), np.uint8),
        "lossy.webp": encode(rgb, "WEBP", quality=80),
        "rgba.webp": encode(p, "WEBP", lossless=True),
        "rgb.tif": encode(rgb, "TIFF"),
        "rgba.tif": encode(p, "TIFF"),
        "lzw.tif": encode(rgb, "TIFF", compression="tiff_lzw"),
        "gray_16.tif": encode(deep, "TIFF"),
        "rgb.bmp": encode(rgb, "BMP"),
        "rgb.ppm": encode(rgb, "PPM"),
        "gray.pgm": encode(gray, "PPM"),
        "rgb.jp2": encode(rgb, "JPEG2000"),
    }
    for orientation in range(1, 9):
        found[f"turned_{orientation}.jpg"] = encode(rgb, "JPEG", orientation=orientation)
    for kind in ("PNG", "WEBP", "TIFF"):
        for orientation in (3, 6):
            found[f"turned_{orientation}.{kind.lower()}"] = encode(rgb, kind, orientation=orientation)
    return found


def cmyk() -> np.ndarray:
    """A CMYK JPEG."""
    return encode(photo(), "JPEG", mode="CMYK", quality=95)


def real(pattern: str) -> list[Path]:
    """Files of the folder, sorted; none without it."""
    return sorted(FOLDER.glob(pattern)) if FOLDER.is_dir() else []


def read(path: Path) -> np.ndarray:
    return np.fromfile(path, np.uint8)
