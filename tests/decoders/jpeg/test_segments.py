"""JPEGs with something between their segments, with several EXIFs, and without their last scans."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from compare import arrays_of
from encoded import photo
from PIL import Image

import ndd
from ndd.decoders.jpeg.segments import lacks_scans, segments, without_junk

WINDOWS = [(0, 0, 16, 16), (10, 20, 50, 40), (80, 100, 10, 20), (0, 0, 89, 119), (41, 3, 7, 100)]


def jpeg(**options):
    rgb = np.ascontiguousarray(photo(90, 120)[..., :3])
    file = io.BytesIO()
    Image.fromarray(rgb).save(file, "JPEG", quality=90, **options)
    return file.getvalue()


def exif(orientation=None, tiff=None):
    """An EXIF segment; without an orientation one that tells something else."""
    tag = (256, 5) if orientation is None else (274, orientation)
    tiff = tiff or struct.pack(">2sHIHHHIHHI", b"MM", 42, 8, 1, tag[0], 3, 1, tag[1], 0, 0)
    body = b"Exif\0\0" + tiff
    return b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body


def places(data):
    return [(s.marker, s.at, s.end) for s in segments(memoryview(data))]


def with_segments(before=b"", behind=b"", data=None):
    """A JPEG with segments behind its start, and behind its frame header."""
    data = data or jpeg()
    end = next(end for marker, _, end in places(data) if marker in (0xC0, 0xC2))
    return data[:2] + before + data[2:end] + behind + data[end:]


def decoded(data, module=ndd, **more):
    return arrays_of(module.decoders.image(module.tensor(np.frombuffer(data, np.uint8)), **more))[0]


def window(data, y, x, height, width, **more):
    result = ndd.decoders.image_slice(
        ndd.tensor(np.frombuffer(data, np.uint8)), [y, x], [height, width], axes=[0, 1], normalized_anchor=False,
        normalized_shape=False, **more,
    )  # fmt: skip
    return arrays_of(result)[0]


def check_windows(data, whole, **more):
    for y, x, height, width in WINDOWS:
        if y + height > whole.shape[0] or x + width > whole.shape[1]:
            continue
        np.testing.assert_array_equal(window(data, y, x, height, width, **more), whole[y : y + height, x : x + width])


def turned(picture, orientation):
    swapped = picture.transpose(1, 0, 2)
    return {
        1: picture, 2: picture[:, ::-1], 3: picture[::-1, ::-1], 4: picture[::-1], 5: swapped, 6: swapped[:, ::-1],
        7: swapped[::-1, ::-1], 8: swapped[::-1],
    }[orientation]  # fmt: skip


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize(
    "junk", [b"\0", b"\1\2\3", bytes(range(100)), bytes(5000), b"\xff\0", b"\xff\xff\0\5", b"\xff\1", b"\xff\xd3"],
    ids=["zero", "three", "hundred", "many", "stuffed", "filled", "TEM", "RST3"],
)  # fmt: skip
def test_junk_between_segments(junk, progressive):
    """As libjpeg, whose users do not notice; DALI refuses such files. Whole, in windows, by gray, and only the size of it."""
    data = jpeg(progressive=progressive)
    whole = decoded(data)
    for _, at, _ in places(data):
        odd = data[:at] + junk + data[at:]
        assert without_junk(np.frombuffer(odd, np.uint8)).tobytes() == data
        assert arrays_of(ndd.peek_image_shape(ndd.tensor(np.frombuffer(odd, np.uint8))))[0].tolist() == [90, 120, 3]
        np.testing.assert_array_equal(decoded(odd), whole)
    check_windows(odd, whole)
    between = with_segments(junk + exif(6) + junk, data=data)
    np.testing.assert_array_equal(decoded(between), turned(whole, 6))
    np.testing.assert_array_equal(decoded(odd, output_type=ndd.types.GRAY), decoded(data, output_type=ndd.types.GRAY))


def test_a_file_without_junk_is_not_copied():
    data = np.frombuffer(jpeg(), np.uint8)
    assert without_junk(data) is data


# What DALI does: the first one with the tag says how, the last one whether.
SEVERAL = {
    "6,8": 6, "8,6": 8, "3,4": 3, "6,3,8": 6, "none,6": 6, "6,none": 6, "none,2": 2, "2,none": 2, "none,none,5": 5, "3,1": 1,
    "1,3": 1, "6,1": 1, "6,0": 1, "6,9": 1, "|6": 6, "|3": 3, "8|6": 8, "2|3": 2, "1|3": 1, "none|7": 7,
}  # fmt: skip
DALI_GIVES_MEMORY_THAT_NOBODY_WROTE = {"1,6": 1, "0,6": 1, "9,6": 1, "3|6": 3}


def told(case):
    before, _, behind = case.partition("|")
    parts = [[exif(None if n == "none" else int(n)) for n in part.split(",") if n] for part in (before, behind)]
    return with_segments(*map(b"".join, parts))


@pytest.mark.parametrize("case", [*SEVERAL, *DALI_GIVES_MEMORY_THAT_NOBODY_WROTE])
def test_several_exif_segments(dali, case):
    data, plain = told(case), decoded(jpeg())
    expected = turned(plain, (SEVERAL | DALI_GIVES_MEMORY_THAT_NOBODY_WROTE)[case])
    if case in SEVERAL and case != "6,3,8":
        np.testing.assert_array_equal(decoded(data, dali), expected)
    whole = decoded(data)
    np.testing.assert_array_equal(whole, expected)
    assert arrays_of(ndd.peek_image_shape(ndd.tensor(np.frombuffer(data, np.uint8))))[0].tolist() == [*whole.shape]
    np.testing.assert_array_equal(window(data, 10, 20, 50, 40), whole[10:60, 20:60])
    np.testing.assert_array_equal(decoded(data, adjust_orientation=False), plain)


@pytest.mark.parametrize("first", [b"XX123456789012345678", b"", b"MM\0*\0\0\0\x08"], ids=["damaged", "empty", "short"])
def test_an_exif_that_is_damaged_does_not_count(first):
    plain = decoded(jpeg())
    for parts in ((exif(tiff=first), exif(6)), (exif(6), exif(tiff=first))):
        np.testing.assert_array_equal(decoded(with_segments(b"".join(parts))), turned(plain, 6))


@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.drawn(1)
def test_progressive_files_without_their_last_scans(subsampling):
    """libjpeg smooths them, and at the edges of a window it has nothing to smooth with."""
    data = jpeg(progressive=True, subsampling=subsampling)
    scans = [at for at in range(len(data)) if data[at : at + 2] == b"\xff\xda"]
    assert len(scans) > 5
    assert not lacks_scans(memoryview(data))
    assert not lacks_scans(memoryview(jpeg()))
    for scan in scans[1:]:
        cut = data[:scan] + b"\xff\xd9"
        assert lacks_scans(memoryview(cut))
        check_windows(cut, decoded(cut))
    short = with_segments(exif(6), data=data[: scans[2]] + b"\xff\xd9")
    check_windows(short, decoded(short))
    grays = {"output_type": ndd.types.GRAY}
    check_windows(cut, decoded(cut, **grays), **grays)


@pytest.mark.parametrize(
    "options", [{}, {"progressive": True}, {"subsampling": 0}, {"restart_marker_blocks": 3}], ids=str
)
@pytest.mark.drawn(1)
def test_windows_of_damaged_files_are_those_of_the_whole(options):
    data, rng, tried = np.frombuffer(jpeg(**options), np.uint8), np.random.default_rng(0), 0
    begin = places(data.tobytes())[-1][2]
    for _ in range(25):
        damaged = data.copy()
        at = int(rng.integers(begin, len(data) - 4))
        damaged[at : at + 2] = rng.integers(0, 255, 2)  # 0xFF would be a mark
        if rng.random() < 0.3:
            damaged = np.concatenate([damaged[:at], np.array([0xFF, 0xD9], np.uint8)])
        try:
            whole = decoded(damaged.tobytes())
        except RuntimeError:
            continue
        tried += 1
        check_windows(damaged.tobytes(), whole)
    assert tried > 15
