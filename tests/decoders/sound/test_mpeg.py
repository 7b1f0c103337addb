"""MPEG sound: its length, and files that libsndfile ends too early."""

import io

import numpy as np
import pytest
import soundfile
from sounds import encoded, ffmpeg_file, is_tone, sound

import ndd
from ndd.decoders.sound.mpeg import sound_length


@pytest.mark.parametrize("junk", ["random", "zeros", "ones"])
@pytest.mark.parametrize("size", [10, 1000, 3000, 100_000])
@pytest.mark.drawn(2)
def test_mp3_with_something_else_between_frames(junk, size):
    """libsndfile looks for the next frame through a kilobyte."""
    av = pytest.importorskip("av")
    data = encoded(0.5 * np.sin(np.arange(48000) * (2 * np.pi * 440 / 16000)), 16000, "MP3", "MPEG_LAYER_III")
    with av.open(io.BytesIO(data.tobytes())) as container:
        frames = [packet.pos for packet in container.demux(audio=0) if packet.size]
    between = {"zeros": np.zeros, "ones": lambda n, t: np.full(n, 255, t)}.get(junk)
    between = between(size, np.uint8) if between else np.random.default_rng(0).integers(0, 256, size).astype(np.uint8)
    file = np.concatenate([data[: frames[20]], between, data[frames[20] :]])
    x = np.asarray(ndd.decoders.audio(ndd.tensor(file), downmix=True)[0])
    assert abs(len(x) - 48000) < 4 * 576
    assert is_tone(x[:10000], 16000)
    assert is_tone(x[16000:-2000], 16000)


def mp3_frames(samples, level, mode="VARIABLE"):
    """Without the tag that says how many."""
    av, file = pytest.importorskip("av"), io.BytesIO()
    soundfile.write(
        file, samples, 16000, format="MP3", subtype="MPEG_LAYER_III", compression_level=level, bitrate_mode=mode
    )
    with av.open(io.BytesIO(file.getvalue())) as container:
        first = next(container.demux(audio=0)).pos
    return np.frombuffer(file.getvalue()[first:], np.uint8)


def test_mp3_whose_length_libsndfile_guesses():
    """By the bit rate of the first frame, or by the tag of the first of several files: most of it would be missing."""
    tone, noise = 0.5 * np.sin(np.arange(48000) * (2 * np.pi * 440 / 16000)), sound(48000, 1)[:, 0]
    for parts in ((tone, noise), (noise, tone), (tone,)):
        data = np.concatenate([mp3_frames(part, 0.9 if part is tone else 0.0) for part in parts])
        for more in ({}, {"dtype": ndd.int16}):
            samples = ndd.decoders.audio(ndd.tensor(data), downmix=True, **more)[0]
            assert 0 <= samples.shape[0] - 48000 * len(parts) < 3 * 1152 * len(parts)
    behind = ndd.decoders.audio(ndd.tensor(data), downmix=True, start=2.0, duration=0.5)[0]
    assert is_tone(np.asarray(behind), 16000)
    whole = encoded(tone, 16000, "MP3", "MPEG_LAYER_III")
    second = np.asarray(ndd.decoders.audio(ndd.tensor(np.concatenate([whole, whole])), downmix=True)[0])
    assert abs(len(second) - 96000) < 5760
    assert is_tone(second[60000:90000], 16000)
    first = np.asarray(ndd.decoders.audio(ndd.tensor(whole), downmix=True)[0])
    np.testing.assert_allclose(first, soundfile.read(io.BytesIO(whole.tobytes()), dtype="float32")[0], atol=1e-6)


@pytest.mark.parametrize("codec", ["mp2", "libmp3lame"])
@pytest.mark.parametrize("rate", [16000, 22050, 44100, 48000])
def test_the_length_of_mpeg(codec, rate):
    av = pytest.importorskip("av")
    data = ffmpeg_file("mp2" if codec == "mp2" else "mp3", codec, rate)
    with av.open(io.BytesIO(data.tobytes())) as container:
        packets = [packet for packet in container.demux(audio=0) if packet.size]
    frame = 1152 if codec == "mp2" or rate > 24000 else 576
    tag = codec == "libmp3lame"  # a frame of its own
    assert sound_length(data) == (len(packets) + tag) * frame
    junk = np.concatenate(
        [data[: packets[5].pos], np.full(777, 255, np.uint8), data[packets[5].pos :], np.zeros(99, np.uint8)]
    )
    assert sound_length(junk) == sound_length(data)
    assert sound_length(data[:0]) == sound_length(np.zeros(50, np.uint8)) == 0


def test_mpeg_that_libsndfile_ends_early():
    data = ffmpeg_file("mp2", "mp2").copy()
    data[len(data) // 2 :][:40] = np.random.default_rng(1).integers(0, 256, 40)
    assert len(soundfile.read(io.BytesIO(data.tobytes()))[0]) < 9000
    for more in ({}, {"sample_rate": 8000.0, "downmix": True}):
        assert ndd.decoders.audio(ndd.tensor(data), **more)[0].shape[0] > 11000 / (2 if more else 1)
