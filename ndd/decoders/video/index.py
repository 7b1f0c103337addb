"""The index of a video: the time of each frame, where decoding may begin, and how frames are stored. FFmpeg reads all packets of
the stream for it."""

from __future__ import annotations

import bisect
import zlib
from collections.abc import Generator, Sequence
from contextlib import closing
from fractions import Fraction
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from ndd._execution.errors import is_shortage
from ndd.decoders import pyav
from ndd.decoders.size_limits import get_max_pixels
from ndd.decoders.video.color import FULL_RANGE, PLANAR
from ndd.decoders.video.packets import Places, rows_of
from ndd.installation import install_command

Index = dict[str, np.ndarray]

_OPTIONS = {"protocol_whitelist": "file"}  # a playlist must not fetch anything
_GUESSED_AFTER_SEEKS = ("mpeg",)  # containers, by FFmpeg's names, that state the times of some packets only
_REORDERED_WITHIN = 48  # frames: two seconds have some frames that are shown before others that they depend on
_MARKED = 64  # bytes
_CODECS_WITH_HIDDEN_FRAMES = ("vp8",)  # a packet of its own for a frame that is never shown


def scan(source: str | np.ndarray) -> Index:
    """Makes the index of a video. Raises RuntimeError for a file that is not a video.

    The index has, as arrays: `times` of the frames in ticks of the `time_base` (a fraction), ascending; `decode_times`, for
    seeking; `keys`, the numbers of frames where decoding may begin; `marks`, to recognise the packet of a frame; `size`, height
    and width, upright; `untimed`, whether the file states no times, so that frames are counted; `picture`, see `Picture`;
    `codec` and `extradata`, as u8; `packets`, see `Places.table`, and `sent`, the row of each frame there.
    """
    container = opened(source)
    try:
        return indexed(source, container, video_stream(container))
    finally:
        container.close()


def key_before(keys: Sequence[int] | np.ndarray, frame: int) -> int:
    """The frame at which decoding must begin for a frame."""
    # NumPy's search takes 5 us, more than all other bookkeeping of a frame.
    at = bisect.bisect_right(keys, frame) - 1
    return int(keys[at]) if at >= 0 else 0


def opened(source: str | np.ndarray) -> Any:
    """Opens a file, or the bytes of one, with PyAV."""
    library()
    if not isinstance(source, str) and not len(source):
        raise RuntimeError("expected a video, got 0 bytes: an empty file, or one that cannot be read")
    try:
        file = source if isinstance(source, str) else _Bytes(source)
        return pyav.opened(file, container_options=_OPTIONS)
    except FileNotFoundError:
        raise
    except faults() as error:
        # Not a MemoryError: for a broken file FFmpeg may request any number of bytes.
        if isinstance(error, OSError) and is_shortage(error):
            raise
        raise RuntimeError(f"expected a video, got what FFmpeg cannot open: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """FFmpeg's text of an error, without the name of the file."""
    return getattr(error, "strerror", None) or str(error)


def video_stream(container: Any) -> Any:
    """The best video stream of a container."""
    if not container.streams.video:
        kinds = ", ".join(sorted({stream.type for stream in container.streams})) or "nothing"
        raise RuntimeError(f"expected a video stream, got a file with {kinds}")
    stream = container.streams.best("video")  # of several streams, the choice of FFmpeg and DALI: usually the largest
    if stream.codec_context is None:
        raise RuntimeError("FFmpeg here has no decoder for its video stream")
    return stream


def indexed(source: str | np.ndarray, container: Any, stream: Any) -> Index:
    """Makes the index from an open stream, see `scan`."""
    listed: list[tuple[Any, Any, bool, int]] = []
    stored = Places(source, container.format.name)
    hides = stream.codec_context.name in _CODECS_WITH_HIDDEN_FRAMES
    try:
        for packet in container.demux(stream):
            if packet.size:
                stored.note(packet)
            if packet.size and not packet.is_discard and not (hides and not bytes(packet)[0] >> 4 & 1):
                listed.append((packet.pts, packet.dts, packet.is_keyframe, mark(packet)))
    except faults() as error:
        if not listed:
            raise RuntimeError(f"its packets cannot be read: {reason(error)}") from error
    if not listed:
        raise RuntimeError("expected a video, got a video stream without frames")
    # AVI has no times: FFmpeg guesses them, wrongly if frames are not stored in the order in which they are shown.
    guessed = container.format.name == "avi" and stream.codec_context.has_b_frames
    # A guess that two frames are shown at one time is wrong, and so are others near it: 58 of 60 frames of a VOB were right.
    if container.format.name in _GUESSED_AFTER_SEEKS:
        guessed = guessed or len({pts for pts, *_ in listed}) < len(listed)
    untimed = bool(guessed) or any(pts is None for pts, *_ in listed)
    if not untimed and stream.codec_context.has_b_frames and all(a[0] < b[0] for a, b in pairwise(listed)):
        untimed = _are_of_packets(container, stream)
    decode_times = np.array([place if dts is None else dts for place, (_, dts, *_) in enumerate(listed)], np.int64)
    keys, marks = np.array([key for _, _, key, _ in listed]), np.array([m for *_, m in listed], np.int64)
    time_base = stream.time_base
    if untimed:
        times = np.arange(len(listed), dtype=np.int64)
        rate = stream.average_rate or stream.guessed_rate or Fraction(25)
        time_base = 1 / rate
    else:
        times, places = np.unique(np.array([pts for pts, *_ in listed], np.int64), return_index=True)
        decode_times, keys, marks = decode_times[places], keys[places], marks[places]
    if untimed or container.format.name in _GUESSED_AFTER_SEEKS:
        keys = np.arange(len(times)) == 0
    codec, extradata = stream.codec_context.name, bytes(stream.codec_context.extradata or b"")
    picture, (height, width) = _first_picture(container, stream)
    packets = stored.table() if not untimed else np.zeros((0, 3), np.int64)
    return {
        "times": times,
        "decode_times": decode_times,
        "keys": np.flatnonzero(keys).astype(np.int64),
        "marks": marks,
        "time_base": np.array([time_base.numerator, time_base.denominator], np.int64),
        "size": np.array([height, width], np.int64),
        "untimed": np.array([untimed]),
        "picture": np.array(picture, np.int64),
        "codec": np.array(list(codec.encode()), np.uint8),
        "extradata": np.array(list(extradata), np.uint8),
        "packets": packets,
        "sent": rows_of(packets, times),
    }


def mark(packet: Any) -> int:
    """A number that identifies a packet of a video: its size, and a checksum of its first bytes."""
    return packet.size << 32 | zlib.crc32(memoryview(packet)[:_MARKED])


def _are_of_packets(container: Any, stream: Any) -> bool:
    """Whether ascending times belong to packets although their frames are shown in another order: H.264 in MXF and ASF, and MPEG-2
    from MXF writers that do not state the order."""
    with closing(_frames(container, stream)) as frames:
        times = [frame.pts for frame in islice(frames, _REORDERED_WITHIN)]
    return any(a is None or b is None or a >= b for a, b in pairwise(times))


class Picture(NamedTuple):
    """How the frames of a video are stored: the counterclockwise quarter turns to the upright frame, the matrix of their colours (a
    number of H.273), whether their range is full, and the bits of 4:2:0 (0: another format, or unknown)."""

    turns: int
    matrix: int
    full_range: bool
    bits: int


def _first_picture(container: Any, stream: Any) -> tuple[Picture, tuple[int, int]]:
    """How frames are stored, and their upright height and width. Only frames tell this, so the first one is decoded."""
    height, width = stream.codec_context.height, stream.codec_context.width
    if height * width > get_max_pixels():
        raise RuntimeError(
            f"expected frames of at most {get_max_pixels()} pixels, got {height}x{width}. "
            "Allow more with ndd.decoders.set_max_pixels()."
        )
    with closing(_frames(container, stream)) as frames:
        frame = next(frames, None)
    picture = Picture(0, 2, False, 0)
    if frame is not None:
        kind, full = frame.format.name, frame.color_range == FULL_RANGE
        bits = 0 if frame.interlaced_frame else PLANAR.get(kind, 0)
        picture = Picture(round(frame.rotation / 90) % 4, frame.colorspace, full or kind == "yuvj420p", bits)
        height, width = frame.height, frame.width
    if height < 1 or width < 1:
        raise RuntimeError(
            "expected a video, got frames without a size: the header is damaged, or FFmpeg cannot decode it (animated WebP)"
        )
    return picture, ((width, height) if picture.turns % 2 else (height, width))


def _frames(container: Any, stream: Any) -> Generator[Any, None, None]:
    """The frames from the beginning of the file up to the first damage."""
    try:
        container.seek(-(1 << 62), backward=False)
    except faults():
        pass
    stream.codec_context.flush_buffers()
    with closing(container.demux(stream)) as packets:  # see `VideoFile._packets`
        try:
            for packet in packets:
                yield from stream.codec_context.decode(packet if packet.size else None)
        except faults():
            pass


class _Bytes:
    """Bytes in memory as a file object for FFmpeg."""

    name = "memory"

    def __init__(self, data: np.ndarray):
        self._data = np.ascontiguousarray(data).reshape(-1)
        self._place = 0

    def read(self, count: int) -> bytes:
        """The next bytes."""
        content = self._data[self._place : self._place + count].tobytes()
        self._place += len(content)
        return content

    def seek(self, offset: int, whence: int = 0) -> int:
        """Moves to a place."""
        base = (0, self._place, len(self._data))[whence]
        self._place = max(base + offset, 0)
        return self._place

    def tell(self) -> int:
        """The place."""
        return self._place


def faults() -> tuple[type[Exception], ...]:
    """PyAV's errors for a broken file: its own, and those of FFmpeg, some of which are Python's."""
    return (library().error.FFmpegError, OSError, ValueError, EOFError, MemoryError, NotImplementedError)


def library() -> Any:
    """The module of PyAV. If it is missing, raises an ImportError that tells how to install it."""
    av = pyav.library()
    if av is None:
        raise ImportError(f"Decoding video needs PyAV: {install_command('video')}")
    return av
