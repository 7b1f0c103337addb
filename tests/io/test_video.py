"""`ndd.io.video`: what is written can be read, and a video goes by in sequences."""

import errno
import gc
import io

import numpy as np
import nvdec
import pytest
from videos import damaged, encoded, numbers_of, write
from waiting import wait_until

import ndd
from ndd.io import video

FRAMES = np.full((3, 33, 31, 3), 120, np.uint8)


@pytest.mark.parametrize("ending", ["mp4", "webm", "avi"])
def test_frames_of_an_odd_size(ending):
    result = np.asarray(ndd.decoders.video(ndd.io.video.encode(FRAMES, format=ending)))
    assert result.shape == FRAMES.shape
    assert np.abs(result.astype(int) - 120).max() <= 3


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"rate": 0}, "rate: expected"),
        ({"rate": float("nan")}, "rate: expected"),
        ({"codec": "nope"}, "codec: expected"),
        ({"codec": "aac"}, "codec: expected an encoder of video"),
        ({"codec": "libx265"}, "49 pixels in width and more, got frames of 33x31"),
        ({"codec": "hevc", "frames": np.zeros((2, 64, 48, 3), np.uint8)}, "got frames of 64x48"),
        ({"codec": "libsvtav1", "frames": FRAMES[:, :, :24]}, "26 pixels in width and more"),
        ({"key_interval": 0}, "key_interval: expected"),
        ({"key_interval": 1 << 40}, "key_interval: expected"),
        ({"frames": FRAMES[:, :0]}, "at least one"),
        ({"frames": FRAMES[..., :2]}, "expected frames"),
    ],
    ids=str,
)
def test_what_cannot_be_written_makes_no_file(tmp_path, how, words):
    with pytest.raises((ValueError, RuntimeError), match=words):
        ndd.io.video.write(tmp_path / "a.mp4", **{"frames": FRAMES, **how})
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_the_systems_error():
    class Full(io.BytesIO):
        def write(self, data):
            if self.tell() > 100:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(data)

    clip = np.random.default_rng(0).integers(0, 255, (3, 64, 64, 3), np.uint8)
    with pytest.raises(OSError, match="No space left on device"):
        video._encode(Full(), clip, "avi", 25, None, 23, None)


def test_an_encoder_that_refuses_is_named():
    with pytest.raises(RuntimeError, match="'hevc' cannot make a file of format 'mp4' of frames of 8x64"):
        ndd.io.video.encode(np.zeros((2, 8, 64, 3), np.uint8), codec="hevc")


@pytest.mark.parametrize("length", [1, 4, 10, 99])
def test_sequences(tmp_path, length):
    path = write(tmp_path / "a.mp4", 10)
    for source in (path, encoded(10), ndd.as_tensor(encoded(10))):
        result = list(ndd.io.video.sequences(source, length))
        assert [len(np.asarray(item)) for item in result] == [min(length, 10 - k) for k in range(0, 10, length)]
        assert [n for item in result for n in numbers_of(item)] == list(range(10))
        assert result[0].layout == "FHWC"


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.drawn(1)
def test_batches_of_sequences(tmp_path, emulated_gpu, monkeypatch, device):
    engine = None if emulated_gpu.real else nvdec.put_in_place(monkeypatch)
    clip = encoded(20)
    for source, how, last in ((clip, {}, 2), (write(tmp_path / "a.mp4", 20), {"pad_sequences": True}, 3)):
        result = list(ndd.io.video.sequences(source, 3, batch_size=5, device=device, **how))
        gc.collect()  # what is decoded later finds its video
        assert [batch.batch_size for batch in result] == [5, 2]
        assert {batch.device.device_type for batch in result} == {device}
        each = [np.asarray(item) for batch in result for item in batch.cpu().tensors]
        assert [len(item) for item in each] == [3] * 6 + [last]
        frames = np.concatenate(each)
        assert numbers_of(frames[:20]) == list(range(20))
        assert not frames[20:].any()
    item = next(ndd.io.video.sequences(clip, 4, device=device))
    assert numbers_of(item.cpu()) == [0, 1, 2, 3]
    if engine is not None and device == "gpu":
        assert 40 <= engine.copies < 80, "no frame is decoded often"
        del result, item
        wait_until(lambda: engine.open == 0)


def test_a_damaged_sequence_is_named(emulated_gpu, monkeypatch):
    if not emulated_gpu.real:
        nvdec.put_in_place(monkeypatch)
    clip = damaged(encoded(20, key_interval=5), 5, 15)
    for device, words in (("cpu", "frame 5 of 20"), ("gpu", r"sample 2 .*the video frame 4.*frame 5 of 20")):
        with pytest.raises(RuntimeError, match=words):
            next(ndd.io.video.sequences(clip, 2, batch_size=4, device=device)).evaluate()


def test_what_is_no_video_has_no_sequences():
    for how in ((0,), (1, 0)):
        with pytest.raises(ValueError, match="expected a number from 1, got 0"):
            next(ndd.io.video.sequences(encoded(3), how[0], batch_size=how[-1]))
    with pytest.raises(RuntimeError, match="expected a path or the bytes"):
        next(ndd.io.video.sequences(FRAMES.astype(np.float32), 2))
    with pytest.raises(RuntimeError, match="expected a video"):
        next(ndd.io.video.sequences(np.zeros(100, np.uint8), 2))
