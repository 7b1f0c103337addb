"""Files of sound that tests make."""

import io

import numpy as np
import pytest
import soundfile


def encoded(samples, rate=16000, format="WAV", subtype="PCM_16"):
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=format, subtype=subtype)
    return np.frombuffer(file.getvalue(), np.uint8)


def sound(n, channels=2, seed=0):
    x = np.random.default_rng(seed).uniform(-1, 1, (n, channels))
    x[: min(n, 4)] = np.array([[1, 1], [-1, -1], [0.5, 0], [0, -0.5]])[: min(n, 4), :channels]
    return x


def ffmpeg_file(format, codec, rate=16000):
    """A second of a tone of 440 Hz, in frames of 20 ms or more."""
    av = pytest.importorskip("av")
    file = io.BytesIO()
    tone = (0.5 * np.sin(np.arange(rate) * (2 * np.pi * 440 / rate))).astype(np.float32)
    with av.open(file, "w", format=format) as container:
        stream = container.add_stream(codec, rate=rate, layout="mono")
        if codec == "wmav2":  # the only one that does not know a rate by itself
            stream.bit_rate = 64000
        frame = av.AudioFrame.from_ndarray(tone[None], format="fltp", layout="mono")
        frame.sample_rate = rate
        container.mux([*stream.encode(frame), *stream.encode(None)])
    return np.frombuffer(file.getvalue(), np.uint8)


def is_tone(x, rate):
    return abs(np.argmax(np.abs(np.fft.rfft(x))) * rate / len(x) - 440) < 5
