"""Windows of TIFFs: parts of the whole picture, for which only the strips and tiles that they touch are unpacked."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from encoded import KINDS
from picture_writers.tiff import CMYK, DEFLATE, GRAY, LZW, NONE, PALETTE, RGB, YCBCR, tiff
from PIL import Image

import ndd
from ndd.decoders import picture
from ndd.decoders.backend import Options
from ndd.decoders.backends import tiff as backend

HEIGHT, WIDTH = 70, 53
LAYOUTS: dict[str, dict[str, Any]] = {
    "rows": {"rows": 1}, "strips": {"rows": 16}, "one strip": {"rows": HEIGHT}, "tiles": {"tile": 16},
    "planes": {"planes": True}, "planes in tiles": {"planes": True, "tile": 32},
}  # fmt: skip


def stored(channels, bits=8):
    return np.random.default_rng([channels, bits]).integers(0, 1 << bits, (HEIGHT, WIDTH, channels), np.uint64)


FILES = {
    f"{name}, {layout}, {compression}": {**file, **LAYOUTS[layout], "compression": compression}
    for name, file in {
        "gray": {"pixels": stored(1), "colours": GRAY},
        "RGB": {"pixels": stored(3), "colours": RGB},
        "RGB, predicted": {"pixels": stored(3), "colours": RGB, "predictor": 2},
        "RGB of 16 bits": {"pixels": stored(3, 16), "colours": RGB, "bits": 16},
        "CMYK": {"pixels": stored(4), "colours": CMYK},
        "12 bits": {"pixels": stored(1, 12), "bits": 12},
        "five channels": {"pixels": stored(5), "colours": RGB},
        "palette of 2 bits": {
            "pixels": stored(1, 2), "bits": 2, "colours": PALETTE, "tags": {320: list(range(0, 60000, 5000))}
        },
        "YCbCr": {"pixels": stored(3), "colours": YCBCR, "tags": {530: [1, 1]}},
    }.items()
    for layout in LAYOUTS
    for compression in (NONE, LZW, DEFLATE)
    if not (file.get("predictor") == 2 and compression == NONE)
}  # fmt: skip


def windows(count, size=(HEIGHT, WIDTH)):
    rng = np.random.default_rng(11)
    for _ in range(count):
        (y0, y1), (x0, x1) = (np.sort(rng.choice(side + 1, 2, replace=False)).tolist() for side in size)
        yield y0, x0, y1, x1


def options(kind: str, dtype: Any = np.uint8) -> Options:
    return Options(getattr(ndd.types, kind), np.dtype(dtype), True, None)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", FILES)
def test_parts_of_the_whole(name):
    for orientation in (1, 6):
        data = tiff(**FILES[name], orientation=orientation)
        for kind in KINDS:
            whole = picture.decode(data, options(kind))
            for window in windows(6, whole.shape[:2]):
                y0, x0, y1, x1 = window
                part = picture.decode(data, options(kind), window=window)
                np.testing.assert_array_equal(part, whole[y0:y1, x0:x1])
                assert part.flags.c_contiguous
                seen = picture.decode(data, options(kind), seen=window)
                assert seen.shape == whole.shape
                np.testing.assert_array_equal(seen[y0:y1, x0:x1], whole[y0:y1, x0:x1])


@pytest.mark.filterwarnings("error")
def test_floats_that_nobody_wrote_are_not_converted():
    data = tiff(np.full((64, 64, 1), 0.5, np.float32).view(np.uint32).astype(np.uint64), bits=32, kind=3, rows=8)
    seen = picture.decode(data, options("GRAY"), seen=(1, 1, 3, 3))
    np.testing.assert_array_equal(seen[1:3, 1:3], 128)


@pytest.mark.parametrize(
    ("layout", "expected"), [({"rows": 10}, 2), ({"tile": 16}, 4), ({"planes": True, "rows": 10}, 6)]
)
def test_chunks_outside_are_not_unpacked(layout, expected, monkeypatch):
    unpacked, chunk = [], backend._chunk
    monkeypatch.setattr(backend, "_chunk", lambda *rest: unpacked.append(1) or chunk(*rest))
    data = tiff(stored(3), colours=RGB, compression=LZW, **layout)
    picture.decode(data, options("RGB"), window=(25, 10, 35, 20))
    assert len(unpacked) == expected


@pytest.mark.parametrize("layout", [{"rows": 16}, {"tile": 16}])
def test_files_that_are_cut_off_are_errors(layout):
    """Also where the window lies before the place."""
    array = stored(3).astype(np.uint8)
    held = io.BytesIO()
    Image.fromarray(array).save(
        held, "tiff", compression="tiff_lzw", tiffinfo={278: 8}
    )  # the directory is the first part
    before, behind = (
        np.frombuffer(held.getvalue(), np.uint8),
        tiff(stored(3), colours=RGB, compression=DEFLATE, **layout),
    )
    for data, sizes in ((before, (8, 300, -1)), (behind, (8, 20, len(behind) // 2, -40))):
        for size in sizes:
            with pytest.raises(RuntimeError, match=r"expected an encoded image|Failed to decode the image"):
                ndd.decoders.image_crop(ndd.tensor(data[:size]), crop=(8, 8), crop_pos_y=0.0).evaluate()
