"""TIFFs with JPEG compression: libtiff's pixels, by the kernel for baseline JPEGs where it reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from encoded import KINDS, photo
from picture_writers.tiff import GRAY, JPEG, RGB, YCBCR, as_jpeg, tiff

import ndd
from ndd._compiled.background import background
from ndd.decoders import picture
from ndd.decoders.backend import Options, Unreadable
from ndd.decoders.backends import pillow, tiff as backend
from ndd.decoders.headers.tiff_directory import STRIP_BYTES, Directory
from ndd.decoders.registry import read_header

PICTURE = np.ascontiguousarray(photo(75, 109)[..., :3])
FORMS: dict[str, dict[str, Any]] = {
    "gray": {"colours": GRAY},
    "RGB": {"colours": RGB},
    "4:4:4": {"colours": YCBCR, "tags": {530: [1, 1]}},
    "4:2:2": {"colours": YCBCR, "tags": {530: [2, 1]}},
    "4:2:0": {"colours": YCBCR, "tags": {530: [2, 2]}},
}
LAYOUTS: dict[str, dict[str, Any]] = {
    "strips": {"rows": 16},
    "one strip": {"rows": 75},
    "tiles": {"tile": 32},
    "tables in each chunk": {"rows": 32, "tables": False},
    "big-endian BigTIFF in tiles": {"tile": 48, "order": ">", "big": True},
    "the last bit first": {"rows": 48, "fill_order": 2},  # nobody turns the bits of a JPEG
    "turned": {"rows": 24, "orientation": 6},
}


@pytest.fixture(autouse=True)
def _compiled(monkeypatch):
    monkeypatch.setattr(background, "allowed", False)


def file(form: str, tables: bool = True, **layout: Any) -> np.ndarray:
    options = dict(FORMS[form])
    tags = dict(options.pop("tags", {})) | ({} if tables else {347: None})
    pixels = PICTURE[..., 1:2] if form == "gray" else PICTURE
    return tiff(pixels, compression=JPEG, tags=tags, **options, **layout)


def by_libtiff(data: np.ndarray, kind: str, monkeypatch) -> np.ndarray | None:
    with monkeypatch.context() as patch:
        patch.setattr(backend, "_is_plain", lambda tags: False)
        try:
            return np.asarray(ndd.decoders.image(ndd.tensor(data), output_type=getattr(ndd.types, kind)))
        except RuntimeError:
            return None


def by_kernel(data: np.ndarray, kind: str, monkeypatch) -> np.ndarray:
    with monkeypatch.context() as patch:
        patch.setattr(pillow, "opened", lambda *_: pytest.fail("Pillow got the file"))
        return np.asarray(ndd.decoders.image(ndd.tensor(data), output_type=getattr(ndd.types, kind)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_pixels(form, layout, monkeypatch):
    data = file(form, **LAYOUTS[layout])
    # Pillow reads neither big-endian BigTIFF nor YCbCr whose last bit comes first.
    known = {k: v for k, v in LAYOUTS[layout].items() if k not in ("order", "big", "fill_order")}
    for kind in KINDS:
        ours = by_kernel(data, kind, monkeypatch)
        theirs = by_libtiff(file(form, **known), kind, monkeypatch)
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.oracle
@pytest.mark.parametrize("form", FORMS)
def test_against_the_oracle(dali, form):
    for layout in ("strips", "tiles", "turned"):
        data = file(form, **LAYOUTS[layout])
        for kind in KINDS:
            number = int(getattr(ndd.types, kind))
            with dali.EvalMode.sync_cpu:
                theirs = np.asarray(dali.decoders.image(dali.tensor(data), output_type=number)).astype(int)
            ours = np.asarray(ndd.decoders.image(ndd.tensor(data), output_type=getattr(ndd.types, kind)))
            assert np.abs(ours - theirs).max() <= (kind == "YCbCr"), (layout, kind)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.drawn(1)
def test_windows(form, monkeypatch):
    rng = np.random.default_rng(5)
    options = Options(ndd.types.RGB, np.dtype(np.uint8), True, None)
    monkeypatch.setattr(pillow, "opened", lambda *_: pytest.fail("Pillow got the file"))
    for layout in ("strips", "one strip", "tiles", "turned"):
        data = file(form, **LAYOUTS[layout])
        whole = picture.decode(data, options)
        for _ in range(12):
            (y0, y1), (x0, x1) = (np.sort(rng.choice(n + 1, 2, replace=False)).tolist() for n in whole.shape[:2])
            part = picture.decode(data, options, window=(y0, x0, y1, x1))
            np.testing.assert_array_equal(part, whole[y0:y1, x0:x1])
            seen = picture.decode(data, options, used=(y0, x0, y1, x1))
            np.testing.assert_array_equal(seen[y0:y1, x0:x1], part)


def alike(data: np.ndarray, monkeypatch) -> bool:
    """Whether the kernel reads a file; what comes out is libtiff's, an error too."""
    options = Options(ndd.types.RGB, np.dtype(np.uint8), True, None)
    try:
        read = backend.decode(data, read_header(data), options, None) is not None
    except Unreadable:
        return False
    try:
        ours = np.asarray(ndd.decoders.image(ndd.tensor(data)))
    except RuntimeError:
        ours = None
    theirs = by_libtiff(data, "RGB", monkeypatch)
    assert (ours is None) == (theirs is None)
    if ours is not None:
        np.testing.assert_array_equal(ours, theirs)
    return read


def test_other_files_are_left_to_libtiff(monkeypatch):
    """Chunks of another number of bits or subsampling, and tables that are missing, too large, or none."""
    good = file("4:2:0", rows=32)
    assert alike(good, monkeypatch)
    size = bytes(good).index(b"\xff\xc0", bytes(good).index(b"\xff\xc0") + 1) + 5
    for place, value in ((size + 6, 0x11), (size + 4, 1), (size - 1, 12)):
        damaged = good.copy()
        damaged[place] = value
        assert not alike(damaged, monkeypatch)
    for place, value in ((size + 1, 16), (size + 3, 50)):  # smaller: libtiff leaves the rest of the chunk unwritten
        damaged = good.copy()
        damaged[place] = value
        with pytest.raises(RuntimeError, match="damaged"):
            ndd.decoders.image(ndd.batch([good, damaged])).evaluate()
    begin, end = [0xFF, 0xD8], [0xFF, 0xD9]
    for tables in (
        begin + end, [7] * 30, [*begin, 0xFF, 0xDB], begin + [0] * 5000 + end, [*as_jpeg(PICTURE[:32], YCBCR, (2, 2), 2)],
    ):  # fmt: skip
        data = tiff(PICTURE, colours=YCBCR, compression=JPEG, tags={530: [2, 2], 347: tables}, rows=32)
        assert alike(data, monkeypatch) == (tables == begin + end)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.drawn(1)
def test_damaged_files_as_by_libtiff(form, monkeypatch):
    good, rng, read = file(form, rows=32), np.random.default_rng(4), 0
    end = int(good[4:8].view("<u4")[0])
    for trial in range(30):
        data = good.copy()
        data[rng.integers(8, end, 1 + trial % 3)] = rng.integers(0, 256, 1 + trial % 3)
        read += alike(data, monkeypatch)
    assert 0 < read < 30


def test_a_chunk_that_is_there_many_times(monkeypatch):
    """Each place of a file may be named as often as it likes, but not copied as often."""
    form: dict[str, Any] = {"pixels": PICTURE[:8], "colours": RGB, "compression": JPEG, "rows": 8}
    alone = Directory(tiff(**form).data)
    size = next(alone.number(e.code, e.place) for e in alone.entries() if e.tag == STRIP_BYTES)
    for count, read in ((3, True), (4000, False)):
        data = tiff(**form, tags={257: [8 * count], 273: [8] * count, 279: [size] * count})
        assert alike(data, monkeypatch) == read
