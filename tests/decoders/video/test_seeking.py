"""A frame that is asked for alone is the one of decoding from the start, in containers whose search is exact and in others."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
from videos import numbered, numbers_of

import ndd
from ndd.decoders.video.index import scan

av = pytest.importorskip("av")

FRAMES = 120
ORDERED = {
    "libx264": {"x264-params": "open-gop=1:keyint=12:bframes=3"},
    "libx265": {"x265-params": "open-gop=1:keyint=12:log-level=none"},
}
CASES = [
    ("mxf", "mpeg2video"), ("mxf", "libx264"), ("asf", "libx264"), ("asf", "mpeg4"),
    ("mpegts", "libx264"), ("mpegts", "mpeg2video"), ("mpeg", "mpeg2video"), ("vob", "mpeg2video"),
    ("avi", "mpeg4"), ("avi", "libx264"), ("matroska", "libx264"), ("matroska", "libx265"),
    ("mp4", "libx264"), ("mp4", "mpeg4"), ("mov", "mpeg2video"), ("flv", "libx264"),
    ("nut", "libx264"), ("h264", "libx264"), ("mpeg2video", "mpeg2video"),
]  # fmt: skip


def video(format, codec):
    """Frames that are stored in another order than they are shown, in open groups, beside sound where there may be some."""
    frames = numbered(FRAMES, 64, 96)
    # Noise: packets of some size.
    frames[:, 32:] += np.random.default_rng(0).integers(0, 9, (FRAMES, 32, 96, 3)).astype(np.uint8)
    file = io.BytesIO()
    with av.open(file, "w", format=format) as container:
        stream = container.add_stream(codec, rate=25, options=ORDERED.get(codec, {"bf": "2"}))
        stream.height, stream.width, stream.pix_fmt, stream.codec_context.gop_size = 64, 96, "yuv420p", 12
        for array in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(array, "rgb24")))
        container.mux(stream.encode())
    return np.frombuffer(file.getvalue(), np.uint8)


def order_of(data):
    """The numbers of the frames as FFmpeg decodes them from the start; the last packet may be damaged."""
    result = []
    with av.open(io.BytesIO(data.tobytes())) as container:
        decoder = container.streams.video[0].codec_context
        for packet in container.demux(video=0):
            with contextlib.suppress(av.error.InvalidDataError):
                result += [
                    frame.to_ndarray(format="rgb24") for frame in decoder.decode(packet if packet.size else None)
                ]
    return numbers_of(result)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("share", [1, 0.8, 0.5], ids=["whole", "cut at 0.8", "cut at 0.5"])
@pytest.mark.parametrize(("format", "codec"), CASES)
def test_frames_that_are_asked_for_alone(format, codec, share):
    """Of an MXF that is cut off, FFmpeg searches by guesses; that of H.264, and ASF, says times in the order of packets."""
    data = video(format, codec)
    data = data[: int(len(data) * share)]
    if share < 1 and format in ("mp4", "mov"):
        pytest.skip("the list of packets stands at the end")
    expected = order_of(data)
    assert expected[:20] == list(range(20))
    count = len(scan(data)["times"])
    assert abs(count - len(expected)) <= 1
    wanted = np.random.default_rng(1).integers(0, len(expected) - 5, 14).tolist()
    for frames in ([0], [12], *([k] for k in wanted), [wanted[0], wanted[1], wanted[2]]):
        assert numbers_of(ndd.decoders.video(data, frames=frames)) == [expected[k] for k in frames], frames
