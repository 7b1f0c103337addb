"""How values show: DALI's text in `repr`, pictures and tables in notebooks."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest

import ndd

RNG = np.random.default_rng(3)
TENSORS = {
    "numbers": [1, 2, 3],
    "int": 5,
    "float": 5.5,
    "bool": True,
    "matrix": [[1.5, 2], [3, 4]],
    "cube": np.arange(24).reshape(2, 3, 4),
    "image": np.zeros((100, 200, 3), np.uint8),
    "empty": np.zeros((0,), np.float32),
    "empty matrix": np.zeros((2, 0), np.float32),
    "long": np.arange(1001),
    "just short enough": np.arange(1000).reshape(10, 100),
    "half": RNG.random((3, 4, 5)).astype(np.float16),
    "wide": np.arange(2000).reshape(2, 1000),
    "infinite": np.array([1.5, np.inf, np.nan]),
}
BATCHES = {
    "ragged": [[1, 2, 3], [4, 5]],
    "scalars": [1, 2, 3],
    "floats": [1.0, 2.0],
    "many": list(np.arange(17)),
    "images": [np.zeros((2, 3, 3), np.uint8)] * 3,
    "large images": [np.zeros((200, 300, 3), np.uint8), np.zeros((100, 30, 3), np.uint8)] * 9,
    "videos": [np.zeros((k, 10, 10, 3)) for k in range(1, 15)],
    "nothing in it": [np.zeros((0, 3))],
    **{
        f"{n} by {m}": np.zeros((n, m), np.uint8)
        for n, m in ((5, 201), (6, 166), (6, 167), (1001, 0), (251, 4), (7, 0))
    },
    **{f"shapes {k}": [np.zeros(10)] * k + [np.zeros(3)] * (12 - k) for k in (4, 5, 6, 12)},
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", TENSORS)
def test_tensor_text_equals_dali(dali, name):
    assert repr(ndd.tensor(TENSORS[name])) == repr(dali.tensor(TENSORS[name]))
    if np.ndim(TENSORS[name]) == 2:
        assert repr(ndd.tensor(TENSORS[name], layout="HW")) == repr(dali.tensor(TENSORS[name], layout="HW"))


@pytest.mark.oracle
@pytest.mark.parametrize("name", BATCHES)
def test_batch_text_equals_dali(dali, name):
    assert repr(ndd.batch(BATCHES[name])) == repr(dali.batch(BATCHES[name]))


@pytest.mark.oracle
def test_an_empty_batch_and_print_options(dali):
    assert repr(ndd.batch([], dtype=ndd.int32)) == repr(dali.batch([], dtype=dali.int32))
    with np.printoptions(precision=2, threshold=10):
        x = np.linspace(0, 1, 30)
        assert repr(ndd.tensor(x)) == repr(dali.tensor(x))
        assert repr(ndd.batch([x] * 7)) == repr(dali.batch([x] * 7))


def test_gpu_values_print(emulated_gpu):
    assert 'device="gpu:0"' in repr(ndd.tensor([1]).gpu())
    assert "[1 2]" in repr(ndd.batch([[1, 2]]).gpu())


def test_a_failed_value_raises_its_error():
    with pytest.raises(RuntimeError, match="out of range"):
        repr(ndd.tensor([1])[5])


def picture(html):
    """The picture in a page, decoded."""
    from PIL import Image

    result = re.search(r'src="data:image/(png|jpeg);base64,([^"]+)"', html)
    assert result, html[:300]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(result.group(2)))))


def test_an_image_is_a_picture():
    image = RNG.integers(0, 256, (40, 50, 3)).astype(np.uint8)
    for value in (
        ndd.tensor(image, layout="HWC"),
        ndd.tensor(image.transpose(2, 0, 1).copy(), layout="CHW"),
        ndd.tensor(image, layout="HWC", dtype=ndd.float32),
    ):
        np.testing.assert_array_equal(picture(value._repr_html_()), image)
    np.testing.assert_array_equal(picture(ndd.tensor(image[..., 0], layout="HW")._repr_html_())[..., 1], image[..., 0])


def test_floats_are_stretched():
    shown = picture(ndd.tensor(np.linspace(-2, 3, 400, dtype=np.float32).reshape(20, 20), layout="HW")._repr_html_())
    assert (shown.min(), shown.max()) == (0, 255)
    shown = picture(ndd.tensor(np.full((20, 20, 3), 0.5, np.float32), layout="HWC")._repr_html_())
    assert shown[0, 0, 0] in (127, 128)
    assert picture(ndd.tensor(np.full((20, 20), np.nan, np.float32), layout="HW")._repr_html_()).max() == 0


def test_a_batch_is_a_contact_sheet():
    b = ndd.batch([np.full((30, 40 + i, 3), 10 * i, np.uint8) for i in range(6)], layout="HWC")
    sheet = picture(b._repr_html_())
    assert sheet.shape[1] > 200
    assert {0, 10, 20, 30, 40, 50, 255} <= set(np.unique(sheet))
    video = ndd.batch([np.zeros((3, 20, 20, 3), np.uint8), np.zeros((2, 20, 20, 3), np.uint8)], layout="FHWC")
    assert picture(video._repr_html_()).shape[1] == 5 * 24 - 4


@pytest.mark.parametrize(
    "value",
    [
        lambda: ndd.batch(RNG.integers(0, 256, (64, 224, 224, 3)).astype(np.uint8), layout="HWC"),
        lambda: ndd.batch(RNG.standard_normal((70, 3, 224, 224)).astype(np.float32), layout="CHW"),
        lambda: ndd.tensor(RNG.integers(0, 256, (3000, 4000, 3)).astype(np.uint8), layout="HWC"),
        lambda: ndd.batch(RNG.standard_normal((1000, 1000))),
        lambda: ndd.tensor(RNG.standard_normal((1000, 1000))),
    ],
)
@pytest.mark.drawn(1)
def test_never_more_than_200_kilobytes(value):
    assert len(value()._repr_html_()) < 210_000


def test_other_values_are_tables():
    b = ndd.batch([[1, 2, 3], [4, 5]])
    b._value().source_info = ["a<b>.jpg", None]
    html = b._repr_html_()
    assert "<table" in html
    assert "(3,)" in html
    assert "a&lt;b&gt;.jpg" in html
    for value in (ndd.tensor(1.5), ndd.tensor(True), ndd.batch([], dtype=ndd.int8), ndd.tensor(np.zeros((0, 3)))):
        assert "<table" in value._repr_html_()
    assert "<table" in ndd.tensor(np.zeros((2, 0, 3), np.uint8), layout="HWC")._repr_html_()
    assert "12 more" in ndd.batch(np.zeros((20, 2)))._repr_html_()


def test_a_video_plays():
    """One sample is an animation of its frames, small enough whatever its size."""
    import base64
    import io

    from PIL import Image

    video = np.random.default_rng(0).integers(0, 256, (12, 300, 500, 3)).astype(np.uint8)
    shown = ndd.tensor(video, layout="FHWC")._repr_html_()
    film = Image.open(io.BytesIO(base64.b64decode(shown.partition("base64,")[2].partition('"')[0])))
    assert film.n_frames == 12
    assert len(shown) < 400_000
    assert "frames 0 to 11" in shown


def test_a_sound_is_a_player_and_a_spectrogram_has_axes():
    import struct

    levels = (np.sin(np.arange(8000) * 0.3) * 20000).astype("<i2").tobytes()
    header = struct.pack(
        "<4sI4s4sIHHIIHH4sI", b"RIFF", 0, b"WAVE", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16, b"data", 16000
    )
    files = ndd.batch([np.frombuffer(header + levels, np.uint8)] * 6)
    samples, _ = ndd.decoders.audio(files, downmix=True)
    page = ndd.preemphasis_filter(samples)._repr_html_()
    assert page.count("<audio controls") == 4
    assert "1.00 s at 8000 Hz" in page
    assert "... 2 more" in page
    played = base64.b64decode(re.search(r"data:audio/wav;base64,([^\"]*)", samples._repr_html_())[1])
    assert played[44:] == (np.frombuffer(levels, "<i2") / 32768 * 32767).astype("<i2").tobytes()
    spectra = ndd.spectrogram(samples, nfft=256, window_length=200, window_step=80)
    page = ndd.to_decibels(spectra).select(1)._repr_html_()
    assert "4000 Hz" in page
    assert "1.01 s" in page
    assert "<table" in ndd.tensor(np.zeros(100, np.float32))._repr_html_()  # no rate, no sound
