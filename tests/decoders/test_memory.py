"""Too little memory is no damage: no good picture is dropped for it, in any format."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import warm_interpreter
from encoded import made
from memory import least_growth

import ndd
from ndd.decoders.backend import Options
from ndd.decoders.jpeg.header import first_scan
from ndd.decoders.nvimgcodec import python_api
from ndd.decoders.registry import read_header as header_of
from ndd.types import DALIImageType

CHILD = """
import resource, sys
import cv2, numpy as np
import ndd

def limit(nbytes):
    resource.setrlimit(resource.RLIMIT_AS, (nbytes, resource.RLIM_INFINITY))

suffix = sys.argv[1]
picture = cv2.resize(np.random.default_rng(0).integers(0, 255, (30, 40, 3), dtype=np.uint8), (1000, 800))
small = cv2.imencode(suffix, picture[:64, :64])[1].reshape(-1)
ndd.decoders.image(ndd.batch([small] * 4)).evaluate()  # starts threads, loads libraries
batch = ndd.batch([cv2.imencode(suffix, picture)[1].reshape(-1)] * 4)
expected = np.asarray(ndd.decoders.image(batch.tensors[0]))
short = 0
with open("/proc/self/status") as file:
    taken = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmSize"))
for megabytes in (0, 1, 2, 4, 6, 9, 13, 18, 30, 50):
    limit(taken + (megabytes << 20))
    try:
        found = ndd.decoders.image(batch, on_error="skip", max_pixels=10**7 + megabytes).evaluate()
    except MemoryError:
        short += 1
    else:
        assert not found.dropped, (megabytes, found.dropped)
        assert found.batch_size == 4
        del found
limit(resource.RLIM_INFINITY)
found = ndd.decoders.image(batch, on_error="skip")
assert not found.dropped
np.testing.assert_array_equal(np.asarray(found.tensors[3]), expected)
print("short of memory", short, "times")
"""


@pytest.mark.skipif(python_api.library() is None, reason="the leak was nvImageCodec's")
@pytest.mark.parametrize("end", [b"", b"\xff\xd9"], ids=["cut off", "an end inside the scan header"])
@pytest.mark.drawn(1)
def test_cut_off_jpegs_leave_nothing_behind(end):
    """Cut where the last byte is that of a whole block, and where a scan's header lacks a byte: 13 kB each, once."""
    data = made()["420.jpg"].tobytes()
    pixels = first_scan(memoryview(data))[0]
    cut = [np.frombuffer(data[: pixels - len(end) - i] + end, np.uint8) for i in range(3)]
    options = Options(DALIImageType.RGB, np.uint8, True, None)
    headers = [header_of(picture) for picture in cut]

    def decode_them():
        for _ in range(100):  # more than a megabyte in all
            for picture, header in zip(cut, headers, strict=True):
                assert python_api.decode(picture, header, options, None) is None

    assert least_growth(decode_them, parts=3) < 1 << 20


def test_jpegs_without_their_end_decode_if_no_pixel_is_missing():
    """As in DALI: a decoder that has all rows looks no further, but it looks some bytes ahead."""
    data = made()["420.jpg"]
    np.testing.assert_array_equal(
        ndd.decoders.image(np.append(data[:-2], np.zeros(100, np.uint8))), ndd.decoders.image(data)
    )
    for cut in (data[:-2], data[:-1], data[: len(data) // 2]):
        with pytest.raises(RuntimeError, match="cut off"):
            ndd.decoders.image(cut).evaluate()


def test_no_memory_to_read_a_file_with(monkeypatch, tmp_path):
    path = tmp_path / "picture.jpg"
    path.write_bytes(made()["420.jpg"].tobytes())

    def short(*_arguments, **_named):
        raise MemoryError("no memory")

    monkeypatch.setattr(np, "fromfile", short)
    for policy in ("raise", "skip", "fill"):
        with pytest.raises(MemoryError, match="no memory"):
            ndd.imread([path], on_error=policy).evaluate()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space")
@pytest.mark.parametrize("suffix", [".jpg", ".png", ".tif", ".jp2", ".gif"])
def test_memory_pressure_is_not_damage(suffix):
    done = warm_interpreter.run(CHILD, suffix, timeout=250)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[-2]) > 0, done.stdout
