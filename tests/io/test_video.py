"""`ndd.io.video`: what is written can be read, and a video goes by in sequences."""

import numpy as np
import pytest
from videos import encoded, numbers_of, write

import ndd

FRAMES = np.full((3, 33, 31, 3), 120, np.uint8)


@pytest.mark.parametrize("ending", ["mp4", "webm", "avi"])
def test_frames_of_an_odd_size(ending):
    found = np.asarray(ndd.decoders.video(ndd.io.video.encode(FRAMES, format=ending)))
    assert found.shape == FRAMES.shape
    assert np.abs(found.astype(int) - 120).max() <= 3


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"rate": 0}, "rate: expected"),
        ({"rate": float("nan")}, "rate: expected"),
        ({"codec": "nope"}, "codec: expected"),
        ({"frames": FRAMES[:, :0]}, "at least one"),
        ({"frames": FRAMES[..., :2]}, "expected frames"),
    ],
    ids=str,
)
def test_what_cannot_be_written_makes_no_file(tmp_path, how, words):
    with pytest.raises((ValueError, RuntimeError), match=words):
        ndd.io.video.write(tmp_path / "a.mp4", **{"frames": FRAMES, **how})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("length", [1, 4, 10, 99])
def test_sequences(tmp_path, length):
    path = write(tmp_path / "a.mp4", 10)
    for source in (path, encoded(10), ndd.as_tensor(encoded(10))):
        found = list(ndd.io.video.sequences(source, length))
        assert [len(np.asarray(one)) for one in found] == [min(length, 10 - k) for k in range(0, 10, length)]
        assert [n for one in found for n in numbers_of(one)] == list(range(10))
        assert found[0].layout == "FHWC"


def test_what_is_no_video_has_no_sequences():
    with pytest.raises(ValueError, match="sequence_length: expected"):
        next(ndd.io.video.sequences(encoded(3), 0))
    with pytest.raises(RuntimeError, match="expected a path or the bytes"):
        next(ndd.io.video.sequences(FRAMES.astype(np.float32), 2))
    with pytest.raises(RuntimeError, match="expected a video"):
        next(ndd.io.video.sequences(np.zeros(100, np.uint8), 2))
