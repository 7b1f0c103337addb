"""Pictures of one kind for the loop benchmark, converted from those of a folder."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ndd.demo.folder import scan


class Kind(NamedTuple):
    """A kind of files.

    Attributes:
        ending: the ending of their names.
        size: width and height; None: unchanged.
        mode: Pillow's mode.
        options: options of Pillow's encoder.
        most: the largest number of files.
    """

    ending: str
    size: tuple[int, int] | None = None
    mode: str = "RGB"
    options: Mapping[str, Any] = MappingProxyType({})
    most: int | None = None


_JPEG = {"quality": 90}
_TURNED = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"  # EXIF of orientation 6
PICTURES = {
    "420": Kind(".jpg", options={**_JPEG, "subsampling": 2}),
    "422": Kind(".jpg", options={**_JPEG, "subsampling": 1}),
    "444": Kind(".jpg", options={**_JPEG, "subsampling": 0}),
    "cmyk": Kind(".jpg", mode="CMYK", options=_JPEG),
    "turned": Kind(".jpg", options={**_JPEG, "exif": _TURNED}),
    "gray": Kind(".jpg", mode="L", options=_JPEG),
    "progressive": Kind(".jpg", options={**_JPEG, "progressive": True}),
    "small": Kind(".jpg", (64, 64), options=_JPEG),
    "12mp": Kind(".jpg", (4000, 3000), options=_JPEG, most=16),
    "tiny-jpeg": Kind(".jpg", (32, 32), options=_JPEG),
    "tiny-png": Kind(".png", (32, 32)),
    "tiny-mask": Kind(".png", (32, 32), mode="L"),
    "png": Kind(".png"),
    "png-rgba": Kind(".png", mode="RGBA"),
    "png-palette": Kind(".png", mode="P"),
    "webp": Kind(".webp", options={"quality": 90}),
    "webp-lossless": Kind(".webp", options={"lossless": True, "method": 1}),
    "tiff": Kind(".tif", options={"compression": "tiff_lzw"}),
    "tiff-raw": Kind(".tif"),
    "tiff-deflate": Kind(".tif", options={"compression": "tiff_adobe_deflate"}),
    "tiff-cmyk": Kind(".tif", mode="CMYK", options={"compression": "tiff_lzw"}),
    "tiff-packbits": Kind(".tif", options={"compression": "packbits"}),
    "tiff-zstd": Kind(".tif", options={"compression": "zstd"}),
    "tiff-jpeg": Kind(".tif", options={"compression": "jpeg", "quality": 90}),
    "tiff-jpeg-ycbcr": Kind(".tif", mode="YCbCr", options={"compression": "jpeg", "quality": 90}),
    "tiff-predictor": Kind(".tif", options={"compression": "tiff_lzw", "tiffinfo": {317: 2}}),
    "bmp": Kind(".bmp"),
    "bmp-palette": Kind(".bmp", mode="P"),
    "jpeg2000": Kind(".jp2", options={"quality_mode": "rates", "quality_layers": [10]}),
    "pnm": Kind(".ppm"),
}
"""The kinds by name. "tiny" is the size of CIFAR and MNIST; a `tiny-mask` is gray."""


def convert_pictures(folder: Path, root: Path, name: str) -> Path:
    """Files of one kind in `folder`, converted from those below `root`."""
    from PIL import Image

    kind = PICTURES[name]

    def convert(file: str) -> None:
        with Image.open(root / file) as image:
            image = image.convert(kind.mode)
        if kind.size is not None:
            image = image.resize(kind.size)
        target = (folder / file).with_suffix(kind.ending)
        target.parent.mkdir(parents=True, exist_ok=True)
        image.save(target, **kind.options)

    with ThreadPoolExecutor() as threads:
        list(threads.map(convert, scan(root).files[: kind.most]))
    return folder


def distinct_files(folder: Path, root: Path, least: int) -> Path:
    """A folder of at least `least` files: `root`, or `folder` with enough links to its files.

    DALI maps a file while a sample of it waits in the shuffle buffer, and does not open it again for the same name. With a real
    data set that never happens.
    """
    files = scan(root)
    if len(files.files) >= least:
        return root
    for k in range(-(-least // len(files.files))):
        for name in files.files:
            link = folder / Path(name).parent / f"{k}-{Path(name).name}"
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to((root / name).resolve())
    return folder
