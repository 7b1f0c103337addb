"""No kind of loop leaves a kilobyte behind at an iteration."""

from __future__ import annotations

import ctypes
import gc
import os
import re
import sys
import tempfile

import cv2
import numpy as np
import pytest
from waiting import let_read_on

import ndd
from ndd import fn
from ndd._tensor.memory import free_bytes
from ndd.decoders.video.file import VideoFile

BATCH, ITERATIONS = 4, 8  # of an epoch
EPOCHS = 8
LIMIT = 600  # bytes an iteration


class MallInfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None) if sys.platform == "linux" else None
if mallinfo:
    mallinfo.restype = MallInfo

pytestmark = pytest.mark.skipif(not mallinfo, reason="the C library does not say how much memory is in use")


def in_use() -> int:
    """Bytes that this process uses: exact, where the resident set moves by megabytes. The pool's are not counted."""
    assert mallinfo
    gc.collect()
    said = mallinfo()
    return said.uordblks + said.hblkhd - free_bytes() + in_use_by_python()


def in_use_by_python() -> int:
    """Bytes in use in Python's own allocator, which tells stderr alone."""
    with tempfile.TemporaryFile() as file:
        stderr = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            sys._debugmallocstats()
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        file.seek(0)
        said = re.search(rb"# bytes in allocated blocks +=\s+([\d,]+)", file.read())
    assert said
    return int(said[1].replace(b",", b""))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("pictures")
    for i in range(ITERATIONS * BATCH):
        cv2.imwrite(str(root / f"{i}.jpg"), np.full((20, 24, 3), i, np.uint8))
    return sorted(map(str, root.iterdir()))


def eager(files):
    reader = ndd.readers.File(files=files, random_shuffle=True)

    def epoch():
        for jpegs, _labels in reader.next_epoch(batch_size=BATCH):
            images = ndd.resize(ndd.decoders.image(jpegs), size=[16, 16])
            ndd.crop_mirror_normalize(images, mirror=ndd.random.coin_flip(batch_size=BATCH)).torch()
        let_read_on(reader)  # what is read ahead is in use as well

    return epoch


def captured(files):
    reader = ndd.readers.File(files=files, random_shuffle=True)

    def epoch():
        for jpegs, labels in reader.next_epoch(batch_size=BATCH, capture=True):
            images = ndd.flip(ndd.decoders.image(jpegs))
            images.torch()
            labels.torch()
        let_read_on(reader)

    return epoch


@ndd.pipeline_def(batch_size=BATCH, num_threads=1, device_id=None)
def pictures(files):
    jpegs, labels = fn.readers.file(files=files, name="R", random_shuffle=True)
    return fn.resize(fn.decoders.image(jpegs), size=[16, 16]), labels


def pipeline(files):
    pipe = pictures(files)

    def epoch():
        for _ in range(ITERATIONS):
            pipe.run()

    return epoch


def iterator(files):
    from ndd.plugin.pytorch import DALIGenericIterator

    batches = DALIGenericIterator(pictures(files), ["images", "labels"], reader_name="R", auto_reset=True)

    def epoch():
        for _ in batches:
            pass

    return epoch


def growth(epoch):
    """Bytes that an iteration leaves behind: the middle one of three measurements, for what pipelines read ahead is in use as
    well. Most differ from 0 by less than 100; one of twenty does by 1000, up or down."""

    def epochs():
        for _ in range(EPOCHS):
            epoch()
        return in_use()

    before, result = epochs(), []
    for _ in range(3):
        now = epochs()
        result.append((now - before) / (EPOCHS * ITERATIONS))
        before = now
        if len(result) == 2 and (result[0] < LIMIT) == (result[1] < LIMIT):
            break
    return sorted(result)[1]


@pytest.mark.parametrize("loop", [eager, captured, pipeline, iterator])
@pytest.mark.drawn(1)
def test_a_loop_leaves_nothing_behind(files, loop):
    assert growth(loop(files)) < LIMIT


@pytest.mark.parametrize("size", [1000, 100])
def test_a_kilobyte_that_is_left_behind_is_seen(files, size):
    """One of the C library's, or some small ones of Python's own allocator."""
    epoch, left = eager(files), []

    def leaking():
        epoch()
        left.extend([bytes(size) for _ in range(ITERATIONS * 1000 // size)])

    assert growth(leaking) > LIMIT


def test_a_video_that_is_searched_leaves_nothing_behind(tmp_path):
    """A generator of PyAV 18 that is dropped in the middle keeps a packet, 150 bytes."""
    path = str(tmp_path / "a.mp4")
    ndd.io.video.write(path, np.zeros((8, 32, 64, 3), np.uint8))
    video = VideoFile(path)

    def back_and_forth():
        for _ in range(60):
            video.frame(3)
            video.frame(0)

    assert growth(back_and_forth) < LIMIT
