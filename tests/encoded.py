"""Encoded images for tests: small ones made here in every format, and the folder of real files where there is one."""

from __future__ import annotations

import functools
import io
import os
import struct
import zlib
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from PIL import Image

from ndd.demo.folder import PHOTOS

FOLDER = Path(os.environ.get("NDD_TEST_DATA", Path(__file__).parents[2] / "shared" / "data")) / "images"
KINDS = ("RGB", "BGR", "GRAY", "YCbCr", "ANY_DATA")

needs_files = pytest.mark.skipif(not FOLDER.is_dir(), reason="there is no folder of real images (NDD_TEST_DATA)")


def photograph() -> np.ndarray:
    """One of the photographs of the demo, RGB."""
    return np.asarray(Image.open(PHOTOS / "nature" / "flower.jpg").convert("RGB"))


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
    result = {
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
        result[f"turned_{orientation}.jpg"] = encode(rgb, "JPEG", orientation=orientation)
    for kind in ("PNG", "WEBP", "TIFF"):
        for orientation in (3, 6):
            result[f"turned_{orientation}.{kind.lower()}"] = encode(rgb, kind, orientation=orientation)
    return result


def cmyk() -> np.ndarray:
    """A CMYK JPEG."""
    return encode(photo(), "JPEG", mode="CMYK", quality=95)


def real(pattern: str) -> list[Path]:
    """Files of the folder, sorted; none without it."""
    return sorted(FOLDER.glob(pattern)) if FOLDER.is_dir() else []


def read(path: Path) -> np.ndarray:
    return np.fromfile(path, np.uint8)


@functools.cache
def rare() -> dict[str, np.ndarray]:
    """Rarer kinds of the formats that OpenCV and Pillow decode: TIFF, BMP, PNM, JPEG 2000; by name."""
    import cv2

    p = photo()
    rgb, gray = np.ascontiguousarray(p[..., :3]), np.ascontiguousarray(p[..., 0])
    deep, deep_gray = p.astype(np.uint16) * 251, gray.astype(np.uint16) * 251
    result: dict[str, np.ndarray] = {}

    def by_pillow(name: str, picture: Image.Image, kind: str, **options: Any) -> None:
        held = io.BytesIO()
        picture.save(held, kind, **options)
        result[name] = np.frombuffer(held.getvalue(), np.uint8)

    palette = Image.fromarray(rgb).quantize(200)
    for compression in ("tiff_deflate", "packbits", "jpeg"):
        by_pillow(f"{compression}.tif", Image.fromarray(rgb), "TIFF", compression=compression)
    by_pillow("palette.tif", palette, "TIFF")
    by_pillow("bilevel.tif", Image.fromarray(gray > 128), "TIFF", compression="group4")
    by_pillow("cmyk.tif", Image.fromarray(p, "CMYK"), "TIFF")
    by_pillow("float.tif", Image.fromarray(gray.astype(np.float32) / 255), "TIFF")
    by_pillow("pages.tif", Image.fromarray(rgb), "TIFF", save_all=True, append_images=[Image.fromarray(gray)])
    for orientation in (2, 5, 6):
        result[f"turned_{orientation}_8.tif"] = encode(rgb, "TIFF", orientation=orientation)
        result[f"turned_{orientation}_16.tif"] = encode(deep_gray, "TIFF", orientation=orientation)
    for name, pixels in (("rgb_16", deep[..., :3]), ("rgba_16", deep), ("rgb_float", rgb.astype(np.float32) / 255)):
        result[f"{name}.tif"] = cv2.imencode(".tif", pixels)[1].reshape(-1)

    by_pillow("palette.bmp", palette, "BMP")
    by_pillow("bilevel.bmp", Image.fromarray(gray > 128), "BMP")
    by_pillow("gray.bmp", Image.fromarray(gray), "BMP")
    by_pillow("32_bits.bmp", Image.fromarray(p), "BMP")
    top_down = bytearray(encode(rgb, "BMP").tobytes())
    top_down[22:26] = (-40).to_bytes(4, "little", signed=True)
    result["top_down.bmp"] = np.frombuffer(bytes(top_down), np.uint8)
    words = (rgb[::-1].astype(np.uint16) >> [3, 2, 3]) @ np.array([1 << 11, 1 << 5, 1], np.uint16)
    start = b"BM" + np.array([66 + words.size * 2, 0, 66, 40, 56, 40, 1 | 16 << 16, 3, words.size * 2], "<u4").tobytes()
    masks = np.array([0, 0, 0, 0, 0xF800, 0x7E0, 0x1F], "<u4").tobytes()
    result["565.bmp"] = np.frombuffer(start + masks + words.astype("<u2").tobytes(), np.uint8)

    for name, magic, largest, pixels in (
        ("max_100.pgm", b"P5", 100, gray % 101), ("max_100.ppm", b"P6", 100, rgb % 101),
        ("max_1000.pgm", b"P5", 1000, (deep_gray % 1001).astype(">u2")), ("16.pgm", b"P5", 65535, deep_gray.astype(">u2")),
        ("16.ppm", b"P6", 65535, deep[..., :3].astype(">u2")),
    ):  # fmt: skip
        result[name] = np.frombuffer(b"%s # c\n56 40\n%d\n" % (magic, largest) + pixels.tobytes(), np.uint8)
    result["ascii.pbm"] = np.frombuffer(b"P1\n56 40\n" + b" ".join(b"%d" % v for v in (gray > 128).ravel()), np.uint8)
    by_pillow("bilevel.pbm", Image.fromarray(photo(33, 47)[..., 0] > 128), "PPM")

    for name, picture in (("rgb", rgb), ("gray", gray), ("rgba", p), ("gray_16", deep_gray)):
        of = Image.fromarray(picture)
        by_pillow(f"{name}_tiles.jp2", of, "JPEG2000", tile_size=(32, 32))
        by_pillow(f"{name}_lossy.jp2", of, "JPEG2000", irreversible=True, quality_mode="rates", quality_layers=[10])
        by_pillow(f"{name}.j2k", of, "JPEG2000", no_jp2=True)
    result["rgb_16.jp2"] = cv2.imencode(".jp2", deep[..., :3])[1].reshape(-1)
    by_pillow("ycc.jp2", Image.fromarray(rgb).convert("YCbCr"), "JPEG2000")
    return result


def banded_tiff(
    pixels: np.ndarray,
    *,
    colours: int = 1,
    planes: bool = False,
    compression: int = 1,
    differences: bool = False,
    tile: int = 0,
    order: Literal["<", ">"] = "<",
    extra: int = 0,
    orientation: int = 1,
) -> np.ndarray:
    """A TIFF of any number of channels, in strips of 16 rows or square tiles. `colours`: 1 gray, 2 RGB; `extra`: what the
    other channels are; `compression`: 1 none, 5 LZW, 8 deflate; `differences`: to the pixel on the left."""
    height, width, channels = pixels.shape
    rows, columns = (tile, tile) if tile else (16, width)
    grids = [pixels[:, :, c : c + 1] for c in range(channels)] if planes else [pixels]
    body, places, sizes = bytearray((b"II*\0" if order == "<" else b"MM\0*") + bytes(4)), [], []
    for grid in grids:
        for top, left in np.ndindex(-(-height // rows), -(-width // columns)):
            part = grid[top * rows : (top + 1) * rows, left * columns : (left + 1) * columns]
            if tile:
                part = np.pad(part, ((0, tile - part.shape[0]), (0, tile - part.shape[1]), (0, 0)))
            if differences:
                part = np.diff(part, axis=1, prepend=part[:, :1] * 0)
            flat = np.frombuffer(part.astype(part.dtype.newbyteorder(order)).tobytes(), np.uint8)
            stored = _packed(flat.reshape(len(part), -1), compression)
            places.append(len(body))
            sizes.append(len(stored))
            body += stored
    kind = {"u": 1, "f": 3}[pixels.dtype.kind]
    tags = {
        256: [width], 257: [height], 258: [pixels.itemsize * 8] * channels, 259: [compression], 262: [colours],
        274: [orientation], 277: [channels], 284: [1 + planes], 317: [1 + differences], 339: [kind] * channels,
    } | ({322: [tile], 323: [tile], 324: places, 325: sizes} if tile else {273: places, 278: [rows], 279: sizes})  # fmt: skip
    if channels > (3 if colours == 2 else 1):
        tags[338] = [extra] * (channels - (3 if colours == 2 else 1))
    entries = b""
    for tag, numbers in sorted(tags.items()):
        code = "H" if tag in (258, 259, 262, 274, 277, 284, 317, 338, 339) else "I"
        held = struct.pack(f"{order}{len(numbers)}{code}", *numbers)
        if len(held) > 4:
            held, place = struct.pack(f"{order}I", len(body)), held
            body += place
        entries += struct.pack(f"{order}HHI", tag, 3 if code == "H" else 4, len(numbers)) + held.ljust(4, b"\0")
    body[4:8] = struct.pack(f"{order}I", len(body))
    return np.frombuffer(bytes(body) + struct.pack(f"{order}H", len(tags)) + entries + bytes(4), np.uint8)


def _packed(rows: np.ndarray, compression: int) -> bytes:
    if compression == 1:
        return rows.tobytes()
    if compression == 8:
        return zlib.compress(rows.tobytes())
    held = io.BytesIO()
    Image.fromarray(rows).save(held, "TIFF", compression="tiff_lzw", strip_size=1 << 30)
    with Image.open(held) as image:
        (place,), (size,) = image.tag_v2[273], image.tag_v2[279]  # pyright: ignore[reportAttributeAccessIssue]
    return held.getvalue()[place : place + size]
