"""The decoders without nvImageCodec: the same pixels from simplejpeg, OpenCV and Pillow."""

from __future__ import annotations

import numpy as np
import pytest
from encoded import KINDS, cmyk, made, needs_files, read, real
from selection import drawn

import ndd
from ndd.decoders.backends import opencv, simplejpeg
from ndd.decoders.nvimgcodec import c_api, python_api

needs_nvimgcodec = pytest.mark.skipif(python_api.library() is None, reason="nvImageCodec is not installed")


def decoded(data, kind):
    return np.asarray(ndd.decoders.image(data, output_type=getattr(ndd.types, kind), dtype=ndd.uint16))


@pytest.fixture(params=["all", "without simplejpeg", "Pillow alone"])
def portable(request, monkeypatch):
    """Switches nvImageCodec (and others) off; gives a function that switches them on again."""
    monkeypatch.setattr(python_api, "_module", [None])
    monkeypatch.setattr(c_api, "library", lambda: None)  # else it may be kept for the tests to come
    if request.param != "all":
        monkeypatch.setattr(simplejpeg, "library", lambda: None)
    if request.param == "Pillow alone":
        monkeypatch.setattr(opencv, "opencv", lambda: None)
    return monkeypatch.undo


def compare(files, kinds, undo):
    without = {(name, kind): decoded(data, kind) for name, data in files.items() for kind in drawn(kinds, 3, name)}
    undo()
    for (name, kind), result in without.items():
        expected = decoded(files[name], kind)
        assert result.shape == expected.shape, (name, kind)
        off = np.abs(result.astype(int) - expected.astype(int))
        by_one = kind == "GRAY" and ".tif" in name  # another rule for gray from colour: a step of 8 bits at most
        assert off.max() <= (257 if by_one else 0), (name, kind)


@needs_nvimgcodec
@pytest.mark.drawn(1)
def test_made_files(portable, request):
    alone = "Pillow alone" in request.node.name
    compare(made(), ("RGB", "BGR", "YCbCr") if alone else KINDS, portable)


@needs_nvimgcodec
@needs_files
@pytest.mark.drawn(1)
def test_real_files(portable, request):
    if "Pillow alone" in request.node.name:
        pytest.skip("Pillow has no 16-bit colour and its own rule for gray")
    skipped = {"lossless_gray_8bit.jpg", "lossless_gray_16bit.jpg", "codestream_9bit.j2k"}
    files = {p.name: read(p) for p in real("formats/*/*") + real("imagenet/*/*")[::32] if p.name not in skipped}
    compare(files, KINDS, portable)


@pytest.mark.drawn(1)
def test_windows(portable):
    for name, data in made().items():
        full = np.asarray(ndd.decoders.image(data))
        result = ndd.decoders.image_crop(data, crop=[10, 20], crop_pos_x=1, crop_pos_y=0)
        np.testing.assert_array_equal(np.asarray(result), full[:10, full.shape[1] - 20 :], err_msg=name)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_broken_files_raise(portable):
    jpeg, png = made()["420.jpg"], made()["rgb.png"]
    broken = [jpeg[: len(jpeg) // 2], jpeg[:-2], png[: len(png) // 2], jpeg[:50], np.zeros(99, np.uint8), jpeg[:0]]
    for data in broken + [read(p) for p in real("broken/*") if p.name.startswith(("trunc", "corrupt", "text", "zip"))]:
        with pytest.raises(RuntimeError):
            ndd.decoders.image(data).evaluate()
    out = ndd.decoders.image(ndd.batch([jpeg, *broken]), on_error="skip")
    assert out.batch_size == 1


def test_cmyk(portable):
    result = np.asarray(ndd.decoders.image(cmyk())).astype(int)
    portable()
    assert np.abs(result - np.asarray(ndd.decoders.image(cmyk()))).max() <= 2


def test_peek(portable):
    shapes = {name: np.asarray(ndd.peek_image_shape(data)).tolist() for name, data in made().items()}
    portable()
    for name, data in made().items():
        assert shapes[name] == np.asarray(ndd.peek_image_shape(data)).tolist()


def test_opencv_is_as_talkative_afterwards_as_before(monkeypatch):
    cv2 = pytest.importorskip("cv2")
    monkeypatch.setattr(python_api, "_module", [None])
    monkeypatch.setattr(c_api, "library", lambda: None)  # else it may be kept for the tests to come
    before = cv2.utils.logging.getLogLevel()
    ndd.decoders.image(ndd.batch([made()["rgb.jp2"][:200]] * 20), on_error="fill").evaluate()
    assert cv2.utils.logging.getLogLevel() == before
