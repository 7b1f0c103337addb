"""Small videos whose frames tell their numbers, and the real ones of the test data."""

import io
import os
from fractions import Fraction
from pathlib import Path

import numpy as np

import ndd

FOLDER = Path(os.environ.get("NDD_TEST_DATA", Path(__file__).parents[2] / "shared" / "data")) / "video"
REAL = sorted(FOLDER.glob("*")) if FOLDER.is_dir() else []


def numbered(count, height=32, width=48):
    """Frames whose gray tells their number: 8 bits as blocks of black and white, over a gradient that moves."""
    frames = np.empty((count, height, width, 3), np.uint8)
    for i in range(count):
        frames[i] = ((np.arange(width) * 2 + 3 * i) % 64 + 96)[None, :, None]
        for bit in range(8):
            x = bit * width // 8
            frames[i, : height // 2, x : x + width // 8] = 255 * (i >> bit & 1)
    return frames


def number_of(frame):
    """The number of a frame of `numbered`, after it was encoded."""
    height, width = frame.shape[:2]
    cells = [frame[2 : height // 2 - 2, b * width // 8 + 2 : (b + 1) * width // 8 - 2].mean() for b in range(8)]
    return sum(1 << b for b, mean in enumerate(cells) if mean > 128)


def numbers_of(frames):
    return [number_of(frame) for frame in np.asarray(frames)]


def encoded(count, **how):
    """A video of `numbered` frames, with a key frame every 6 unless `how` says otherwise."""
    size = {name: how.pop(name) for name in ("height", "width") if name in how}
    return ndd.io.video.encode(numbered(count, **size), **{"key_interval": 6, "rate": 10, **how})


def write(path, count, **how):
    path.write_bytes(encoded(count, **{"format": path.suffix[1:], **how}).tobytes())
    return str(path)


def damaged(clip, first, end):
    """A video of `encoded` whose frames from `first` to before `end` are spoilt."""
    import av

    spoilt = clip.copy()
    with av.open(io.BytesIO(clip.tobytes())) as container:
        for packet in container.demux(video=0):
            if packet.pos is not None and first <= packet.pts * packet.time_base * 10 < end:
                spoilt[packet.pos + 4 : packet.pos + packet.size] = 0x5A
    return spoilt


def timed(frames, times=None, matrix=2, full=0, pixels="yuv420p", codec="ffv1", rate=10):
    """A lossless video with given times (in ms), colours and kind of pixels."""
    import av

    memory = io.BytesIO()
    with av.open(memory, "w", format="matroska") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = pixels
        stream.codec_context.time_base = Fraction(1, 1000)
        stream.codec_context.colorspace, stream.codec_context.color_range = matrix, full
        for i, array in enumerate(frames):
            source = av.VideoFrame.from_ndarray(array, "rgb24")
            space = matrix if matrix != 2 else 5
            frame = source.reformat(
                format=pixels, dst_colorspace=space, dst_color_range=full or 1, interpolation=0x42002
            )
            frame.colorspace, frame.color_range = matrix, full
            frame.pts, frame.time_base = (100 * i if times is None else times[i]), Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return np.frombuffer(memory.getvalue(), np.uint8)
