"""TIFFs whose directories are damaged: what no other library reads is an error, and what one of them reads still is a picture."""

from __future__ import annotations

import io
import struct

import cv2
import numpy as np
import pytest
from picture_writers.tiff import DEFLATE, FLOAT, RGB, tiff
from PIL import Image

import ndd

RNG = np.random.default_rng(4)
COLOURS = RNG.integers(0, 1 << 16, (21, 30, 3), np.uint64)
ASCII, FLOAT64, SIGNED_SHORT = 2, 12, 8


def entry_of(data, tag):
    """The place of a tag's entry in a little-endian file."""
    start = struct.unpack_from("<I", data, 4)[0]
    (count,) = struct.unpack_from("<H", data, start)
    return next(
        start + 2 + 12 * k for k in range(count) if struct.unpack_from("<H", data, start + 2 + 12 * k)[0] == tag
    )


def changed(tag, *, kind=None, count=None, name=None, bits=16, **arguments):
    """A file in which an entry has another type, count or tag."""
    data = tiff(COLOURS >> np.uint64(16 - bits), bits=bits, colours=RGB, rows=21, **arguments).copy()
    at = entry_of(data, tag)
    for place, form, number in ((at + 2, "<H", kind), (at + 4, "<I", count), (at, "<H", name)):
        if number is not None:
            data[place : place + struct.calcsize(form)] = np.frombuffer(struct.pack(form, number), np.uint8)
    return data


DAMAGED = {
    "bits as bytes without a meaning": changed(258, kind=7),
    "bits 2^31 times": changed(258, count=1 << 31),
    "no bits": changed(258, name=65000),
    "compression as float64": changed(259, kind=FLOAT64),
    "channels never": changed(277, count=0, bits=8),
    "channels twice, no bits": changed(277, count=2, tags={258: None}),
    "channels as float64": changed(277, kind=FLOAT64, bits=8),
    "no channels": changed(277, name=65000, bits=8),
    "colours 2^31 times": changed(262, count=1 << 31),
    "more extra channels than channels": changed(258, tags={338: [0, 0, 0, 0]}),
    "an extra channel of a kind that is none": changed(258, tags={338: [7]}),
    "tiles without a place": changed(258, tags={322: [16], 323: [16]}, compression=DEFLATE),
}


def others_read(data):
    """Whether Pillow or OpenCV makes a picture of it."""
    try:
        with Image.open(io.BytesIO(data.tobytes())) as picture:
            picture.load()
            return True
    except Exception:  # of many kinds
        return cv2.imdecode(data, cv2.IMREAD_UNCHANGED) is not None


@pytest.mark.filterwarnings("ignore")  # Pillow's, of tags
@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_directories_are_errors(name):
    assert not others_read(DAMAGED[name])
    for files in (DAMAGED[name], ndd.batch([DAMAGED[name]] * 3)):
        with pytest.raises(
            RuntimeError,
            match=r"image: (3 of 3 .*\n *)?sample 0: (Failed to decode the image of 21x30|expected an encoded)",
        ):
            ndd.decoders.image(files, device="cpu").evaluate()


ODD = {
    "signed channels": changed(277, kind=SIGNED_SHORT),
    "one strip without its size": changed(279, count=0),
    "one strip with 2^31 sizes": changed(279, count=1 << 31),
    "orientation as text": changed(274, kind=ASCII),
    "no sample format": changed(339, name=65000),
    "extra channels": changed(258, tags={338: [1]}),
    "no extra channels": changed(338, count=0, tags={338: [1, 1]}),
    "5 floats": tiff(RNG.random((21, 30, 5)).astype(np.float32), bits=32, kind=FLOAT, tags={338: [0, 0]}),
}


@pytest.mark.parametrize("name", ODD)
def test_what_can_still_be_read_is(name):
    result = np.asarray(ndd.decoders.image(ODD[name], device="cpu", output_type=ndd.types.ANY_DATA))
    assert result.shape[:2] == (21, 30)
