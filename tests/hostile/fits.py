"""Mutated FITS files: plain images, read by compiled code and by Python, and compressed ones."""

from __future__ import annotations

import functools
import io
import random
from typing import Any

import numpy as np
from hostile.bounds_checked import Parser, fenced, fenced_copy
from hostile.containers import ALLOWED, written
from hostile.mutation import Framed, Number, mutated

import ndd

BLOCK = 2880


def card(keyword: str, value: Any) -> Any:
    """A card whose number can change."""
    head = f"{keyword:<8}= ".encode()
    if isinstance(value, int):
        return Number(value, lambda number: (head + b"%20d" % number).ljust(80)[:80])
    return (head + f"{value:>20}".encode()).ljust(80)[:80]


def padded(content: bytes, length: int) -> bytes:
    return content.ljust(-(-len(content) // BLOCK) * BLOCK)


def hdu(rng: random.Random, first: bool) -> list[Any]:
    bits = rng.choice((8, 16, 32, 64, -32, -64))
    shape = [rng.choice((1, 2, 7, 40)) for _ in range(rng.choice((0, 1, 2, 2, 3)))]
    if rng.random() < 0.05:
        shape = [70000]  # more than is read at once
    cards = [card("SIMPLE", "T") if first else card("XTENSION", "'IMAGE   '")]
    cards += [card("BITPIX", bits), card("NAXIS", len(shape))]
    cards += [card(f"NAXIS{k}", extent) for k, extent in enumerate(shape, 1)]
    for keyword, value in (
        ("PCOUNT", 0),
        ("GCOUNT", 1),
        ("BLANK", 3),
        ("BZERO", 32768),
        ("BSCALE", 2),
        ("COMMENT", "x"),
    ):
        if rng.random() < 0.25:
            cards.append(card(keyword, value))
    cards += [card(f"KEY{k}", k) for k in range(rng.choice((0, 0, 30, 80)))]
    nbytes = abs(bits) // 8 * int(np.prod(shape)) if shape else 0
    content = rng.randbytes(nbytes)
    return [Framed([*cards, b"END".ljust(80)], padded), Framed([content], padded)]


def make_images(rng: random.Random) -> bytes:
    return mutated(rng, [hdu(rng, k == 0) for k in range(rng.choice((1, 2, 2, 3)))])


def read_images(content: bytes) -> Any:
    """By compiled code, to memory that ends where nothing may be written; and by Python, which agrees."""
    from ndd.readers.formats.fits_batch import FitsNames
    from ndd.readers.formats.fits_file import read_images as by_python

    path = written("a.fits", content)
    names = FitsNames("", [path], [1, 2])
    buffers = [fenced(400) for _ in range(2)]
    rooms = np.array([(buffer.ctypes.data, 0, buffer.nbytes) for buffer in buffers], np.int64)
    names.read(np.array([0]), rooms)
    records = list(
        ndd.experimental.readers.Fits(files=path, hdu_indices=[1])._open(files=path, hdu_indices=[1]).records([0])
    )
    (result,) = by_python([path], [1])
    for each in (result, records[0]):
        if isinstance(each, Exception):
            raise each
    assert np.array_equal(result[0], records[0][0], equal_nan=True), "compiled code and Python differ"
    return result


# Compressed images: what astropy made, taken apart

METHODS = ("RICE_1", "GZIP_1", "GZIP_2", "PLIO_1", "HCOMPRESS_1")
_NUMBERS = (
    "BITPIX",
    "NAXIS",
    "PCOUNT",
    "GCOUNT",
    "TFIELDS",
    "ZBITPIX",
    "ZNAXIS",
    "ZTILE",
    "ZVAL",
    "THEAP",
    "ZBLANK",
    "ZDITHER",
)


@functools.cache
def compressed(method: str, kind: str) -> bytes:
    from astropy.io import fits

    image = np.random.default_rng(0).integers(0, 200, (20, 26)).astype(kind)
    options: dict[str, Any] = {"quantize_method": 1, "dither_seed": 5} if kind == "f4" else {}
    file = io.BytesIO()
    table = fits.CompImageHDU(image, compression_type=method, tile_shape=(10, 13), **options)
    fits.HDUList([fits.PrimaryHDU(), table]).writeto(file)
    return file.getvalue()


def make_compressed(rng: random.Random) -> bytes:
    method = rng.choice(METHODS)
    content = compressed(method, rng.choice(("i2", "i2", "f4")) if method in ("RICE_1", "HCOMPRESS_1") else "i2")
    end = content.index(b"END".ljust(80), BLOCK)
    first = (end // BLOCK + 1) * BLOCK
    cards: list[Any] = []
    for at in range(BLOCK, end, 80):
        text = content[at : at + 80].decode()
        value = text[10:].partition("/")[0].strip()
        known = text.startswith(_NUMBERS) and value.lstrip("-").isdigit()
        cards.append(card(text[:8].rstrip(), int(value)) if known else text.encode())
    rows, width = (
        int(content[content.index(key, BLOCK) :][10:80].split(b"/")[0]) for key in (b"NAXIS2  =", b"NAXIS1  =")
    )
    table = content[first : first + rows * width]
    places: list[Any] = [Number(int.from_bytes(table[k : k + 4], "big"), ">i") for k in range(0, len(table), 4)]
    heap = content[first + len(table) :].rstrip(b"\0")
    pieces = [heap[k : k + 16] for k in range(0, min(len(heap), 320), 16)] + [heap[320:]]
    return content[:BLOCK] + mutated(
        rng, [Framed([*cards, b"END".ljust(80)], padded), Framed([places, pieces], padded)]
    )


def read_compressed(content: bytes) -> Any:
    """Twice, with other things in free memory: the same comes out."""
    from ndd.readers.formats.fits_file import read_images as by_python

    path, result = written("b.fits", content), []
    for fill in (0x11, 0xEE):
        rubbish = [np.full(size, fill, np.uint8) for size in (64, 600, 1200, 4200, 9000)]
        del rubbish
        result.append(by_python([path], [2])[0])
    if isinstance(result[0], Exception):
        raise result[0]
    assert result[0][0].tobytes() == result[1][0].tobytes(), "pixels differ from read to read"
    return result[0]


def make_tile(rng: random.Random) -> tuple[bytes, int, int]:
    content = compressed("HCOMPRESS_1", "i2")
    at = content.index(b"\xdd\x99")
    end = content.index(b"\xdd\x99", at + 2)
    head: list[Any] = [
        b"\xdd\x99",
        *[Number(int.from_bytes(content[at + k : at + k + 4], "big"), ">I") for k in (2, 6, 10)],
    ]
    planes = [Number(content[at + k], "B") for k in (22, 23, 24)]
    body = [content[at + k : at + k + 4] for k in range(25, end - at, 4)]
    return (
        mutated(rng, [head, content[at + 14 : at + 22], planes, body]),
        rng.choice((10, 10, 9)),
        rng.choice((13, 13, 300)),
    )


def read_tile(result: tuple[bytes, int, int]) -> Any:
    from ndd.readers.formats.fits_tiles import is_whole_hcompress, is_whole_plio

    content, height, width = result
    data = fenced_copy(content)
    is_whole_plio(np.frombuffer(content[: len(content) // 2 * 2], np.int16))
    if not is_whole_hcompress(data, height, width):
        raise ValueError("not whole")
    return data


PARSERS: dict[str, Parser] = {
    "fits": Parser(make_images, read_images, ALLOWED),
    "compressed fits": Parser(make_compressed, read_compressed, ALLOWED),
    "hcompress": Parser(make_tile, read_tile, ALLOWED),
}
