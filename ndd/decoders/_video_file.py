"""`VideoFile`: one video, open: an exact index of its frames, and frames by number. PyAV (FFmpeg) decodes.

The index comes from all packets of the stream, without decoding: when each frame is shown, and where decoding may begin.
A frame is known by its time, so a variable frame rate is as good as a constant one. To come to a frame the decoder goes on
from where it is, or begins anew at the last key frame before, whatever decodes less; on the way it leaves out frames that no
other one needs.
"""

from __future__ import annotations

import bisect
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from fractions import Fraction
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from ndd._execution.errors import is_shortage
from ndd._execution.fork import whole
from ndd.decoders._limit import get_max_pixels
from ndd.decoders._metadata import any_metadata
from ndd.decoders._video_color import FULL_RANGE, PLANAR, write_rgb, write_ycbcr
from ndd.decoders._video_packets import Packets, Places, PlainFile, rows_of

Index = dict[str, np.ndarray]

_OPTIONS = {"protocol_whitelist": "file"}  # a play list must not fetch anything
_GUESSED_AFTER_SEEKS = ("mpeg",)  # containers, by FFmpeg's names, that say the times of some packets only
_SHOWN_WITHIN = 9  # packets: a frame's own, and what a decoder that puts frames in order takes until it shows it
_READ_AT_ONCE = 64  # packets
_CODECS_WITH_HIDDEN_FRAMES = ("vp8",)  # a packet of its own for a frame that is never shown


class Shape(NamedTuple):
    """What a video gives: frames, and the height and width of each, upright."""

    frames: int
    height: int
    width: int


# In a forked child: what its parent opened. Freed there, FFmpeg would wait for ever for threads that the child has not.
_of_parents: list[Any] = []


class VideoFile:
    """One open video. One thread at a time may use it. FFmpeg decodes, until `decode_by` says otherwise.

    Args:
        source: a path, or the bytes of a file, u8.
        threads: how many threads of FFmpeg decode.
        index: what `scan` gave for this file; by default it is made here.
    """

    def __init__(self, source: str | np.ndarray, threads: int = 1, index: Index | None = None):
        self.source, self._threads = source, threads
        self._process = os.getpid()
        self._decoder: Any = None  # made when it is needed
        self._make_decoder: Callable[[Any], Any] = _ffmpeg
        self._open()
        try:
            self._index = _indexed(source, self._container, self._stream) if index is None else index
        except BaseException:
            self._container.close()
            raise
        self._times, self._keys = self._index["times"], self._index["keys"].tolist()
        self.time_base = Fraction(*self._index["time_base"].tolist())
        height, width = self._index["size"].tolist()
        self.shape = Shape(len(self._times), height, width)
        self._numbers = {time: number for number, time in enumerate(self._times.tolist())}
        self._wanted: set[int] = set()
        self._last_wanted = -1
        self._ends = False  # whether the decoder may be emptied behind the last of them
        self._emptied = False
        self._unsent: set[int] = set()  # those whose data the decoder does not have yet
        self._inside: set[int] = set()  # frames whose data it has, and which it has not given
        self._untimed = bool(self._index["untimed"][0])
        self._next = 0  # the frame that decoding on gives next
        self._began = 0  # the frame where decoding began
        self._frames: Iterator[tuple[int, Any]] | None = None
        self._coming: Iterator[Any] = iter(())  # the packets of which they are made
        self._plain: PlainFile | None = None  # where an engine's packets are read from
        self._place: int | None = None  # of the next one of these
        self._damage: BaseException | None = None  # what the decoder said last
        self._damaged: list[int] = []  # the decode times of what it could not decode
        self.refused: str | None = None  # why the engines of a GPU do not decode it

    @property
    def index(self) -> Index:
        """What `scan` gives."""
        return self._index

    @property
    def position(self) -> int:
        """The frame that comes next when decoding goes on; the end where it cannot."""
        return self.shape.frames if self._emptied else self._next

    def seconds(self, frames: Any) -> np.ndarray:
        """When frames are shown, f64, in seconds."""
        return self._times[frames] * float(self.time_base)

    def at(self, seconds: np.ndarray) -> np.ndarray:
        """The frames that are shown at these moments; before the first one the first."""
        ticks = np.floor(np.asarray(seconds, np.float64) / float(self.time_base) + 1e-3)
        return (np.searchsorted(self._times, ticks, "right") - 1).clip(0)

    def key_before(self, frame: int) -> int:
        """Where decoding must begin for a frame."""
        return key_before(self._keys, frame)

    def read(self, frames: np.ndarray, out: np.ndarray) -> None:
        """Writes frames into `out`, u8 RGB `[len(frames), height, width, 3]`.

        `frames` are numbers, in any order and as often as they are listed; what is no frame of the video is left as it is.
        """
        places: dict[int, list[np.ndarray]] = {}
        for place, number in enumerate(frames.tolist()):
            if 0 <= number < self.shape.frames:
                places.setdefault(number, []).append(out[place])
        self.expect(sorted(places))
        for number in sorted(places):
            self.write(number, places[number])

    def decode_by(self, make_decoder: Callable[[Any], Any] | None) -> None:
        """Another decoder from here on: what `make_decoder` gives for PyAV's stream, with the `decode`, `skip_frame` and
        `flush_buffers` of PyAV's codec context; None: FFmpeg again."""
        self._close_decoder()
        self._make_decoder = make_decoder or _ffmpeg
        self._forget()

    @property
    def by_ffmpeg(self) -> bool:
        """Whether nothing else was said to `decode_by`."""
        return self._make_decoder is _ffmpeg

    @property
    def decoder(self) -> Any:
        """What decodes."""
        if self._decoder is None:
            with whole:
                self._decoder = self._make_decoder(self._stream)
            self._decoder.skip_frame, self._skips = "DEFAULT", False
        return self._decoder

    def expect(self, numbers: Sequence[int], ends: bool = False) -> None:
        """Says which frames come next, ascending: those between them are decoded only if others need them. `ends`: nobody
        will go on behind the last one. A decoder that puts frames in order gives it two or three frames later, of which one
        is often a key frame; so it is emptied instead."""
        if self._emptied:
            self._forget()
        self._wanted, self._ends = set(numbers), ends
        self._last_wanted = numbers[-1] if numbers else -1
        self._unsent = self._wanted - self._inside

    def write(self, number: int, places: Sequence[np.ndarray], ycbcr: bool = False) -> None:
        """Writes one frame to some places, u8 `[height, width, 3]` each. RuntimeError if it cannot be decoded."""
        frame = self.frame(number)
        write = write_ycbcr if ycbcr else write_rgb
        write(frame, places[0], round(frame.rotation / 90) % 4)
        for place in places[1:]:
            place[...] = places[0]

    def close(self) -> None:
        """Closes the file and gives the decoder up."""
        self._frames = self._place = None
        self._close_decoder()
        if self._plain is not None:
            self._plain.close()
            self._plain = None
        with whole:
            self._container.close()

    def __del__(self) -> None:
        if os.getpid() != getattr(self, "_process", os.getpid()):
            _of_parents.append([self.__dict__.get(name) for name in ("_container", "_decoder", "_frames", "_coming")])

    def _close_decoder(self) -> None:
        if self._decoder is not None and not self.by_ffmpeg:
            self._decoder.close()
        self._decoder = None

    def _open(self) -> None:
        # FFmpeg opens and closes decoders under locks of the process: a child forked meanwhile would wait for ever.
        with whole:
            self._container = _opened(self.source)
            try:
                self._stream = _video_stream(self._container)
                self._stream.thread_type = "AUTO"
                self._stream.thread_count = self._threads
            except BaseException:
                self._container.close()
                raise
        self._skips = False

    def frame(self, wanted: int) -> Any:
        """A frame as the decoder gives it. RuntimeError if it cannot be decoded."""
        if self._frames is None or not max(self.key_before(wanted), 0) <= self._next <= wanted:
            self._go_to(self.key_before(wanted))
            self._unsent = {number for number in self._wanted if number >= wanted}
        for _ in range(2):
            for number, frame in self._frames or ():
                self._next = number + 1
                if self._harmed(wanted) or (number == wanted and frame.is_corrupt):
                    break
                if number == wanted:
                    return frame
                if number > wanted:
                    break
            harmed = self._harmed(wanted)
            if self._damage is not None and self._threads > 1 and self.by_ffmpeg:
                # Several threads tell of damage later than it was, of more frames than it harms, and PyAV loses the good
                # frames that come with an error.
                self._threads, self._ends = 1, False
                self._begin_anew()
                self._go_to(self.key_before(wanted))
            elif harmed or self._began == 0:
                break
            else:
                self._ends = False
                self._go_to(0)  # a key frame that was none: from the beginning
        raise self._bad(wanted)

    def copy(self, numbers: Sequence[int], places: Sequence[int]) -> None:
        """Writes the frames that were said to `expect` to addresses; what decodes is an engine's. RuntimeError if one of them
        cannot be decoded."""
        cuts = [at for at in range(1, len(numbers)) if self.key_before(numbers[at]) > numbers[at - 1] + 1]
        for begin, end in pairwise([0, *cuts, len(numbers)]):
            self._copy(numbers[begin:end], places[begin:end])

    def _copy(self, numbers: Sequence[int], places: Sequence[int]) -> None:
        """Frames with nothing between them that could be passed over."""
        first, last = numbers[0], numbers[-1]
        wanted = np.array([self._times[numbers], places], np.int64).T.copy()
        for again in (False, True):
            if again or not self._goes_on or not max(self.key_before(first), 0) <= self._next <= first:
                self._go_to(0 if again else self.key_before(first))
            unsent = set(numbers) - self._inside
            try:
                while self._goes_on and self._next <= last:
                    if self._place is None:
                        self._send(unsent, wanted)
                    else:
                        self._send_stored(self._place, numbers, wanted)
            except faults() as error:
                self._damage = error
            if not wanted[:, 1].any():
                return
            if self._damage is not None or self._began == 0:
                break
        raise self._bad(numbers[int((wanted[:, 1] != 0).argmax())])

    def _send(self, unsent: set[int], wanted: np.ndarray) -> None:
        """Decodes packets up to the last one of the unsent frames, or one more."""
        packets: list[Any] = []
        while unsent or not packets:
            packet = next(self._coming, None)
            if packet is None or not packet.size:
                self._frames = None
                break
            if packet.pts is None:
                raise ValueError("a packet says no time")
            number = self._number(packet.pts)
            packets.append(packet)
            unsent.discard(number)
            self._inside.add(number)
        self._decode(Packets.of(packets), wanted, self._frames is None)
        self._inside = {number for number in self._inside if number >= self._next}

    def _send_stored(self, place: int, numbers: Sequence[int], wanted: np.ndarray) -> None:
        """Decodes packets, as they stand in the file from this one on, up to the last one of the frames that are missing, and as
        many more as it takes until that is shown."""
        if self._plain is None:
            self._plain = PlainFile(self.source)
        rows = self._index["packets"]
        last = int(self._index["sent"][np.array(numbers)[wanted[:, 1] != 0]].max())
        end = min(max(last, place) + _SHOWN_WITHIN, place + _READ_AT_ONCE, len(rows))
        packets = self._plain.packets(rows[place:end])
        sent = self._decode(packets, wanted, end == len(rows))
        self._place = place + sent if sent <= len(packets.sizes) else None

    @property
    def _goes_on(self) -> bool:
        """Whether more can be decoded."""
        return self._frames is not None or self._place is not None

    def _decode(self, packets: Packets, wanted: np.ndarray, ends: bool) -> int:
        """How many packets were decoded."""
        times = self._times[list(self._wanted)]
        unwanted = (packets.times < times.max()) & ~np.isin(packets.times, times)
        sent, last = self.decoder.decode(packets, unwanted, wanted, ends)
        if last is not None:
            self._next = self._number(last) + 1
        return sent

    def _harmed(self, wanted: int) -> bool:
        """Whether data was damaged that the decoder needs for a frame: what it gets from the key frame before on."""
        if not self._damaged or self._untimed:
            return bool(self._damaged)
        first, last = self._index["decode_times"][[self.key_before(wanted), wanted]].tolist()
        return any(first <= when <= last for when in self._damaged)

    def _bad(self, wanted: int) -> RuntimeError:
        damage, self._frames = self._damage, None
        when = f"frame {wanted} of {self.shape.frames} ({self.seconds(wanted):.3f} s)"
        said = "" if damage is None else f": {damage}"
        return RuntimeError(f"{when} cannot be decoded, the data is damaged or cut off{said}")

    def _go_to(self, key: int) -> None:
        """Begins anew at a key frame; where the file cannot be searched, at the beginning."""
        self._forget()
        self._began = key
        if not self.by_ffmpeg and len(self._index["packets"]):
            self.decoder.flush_buffers()
            self._next, self._place = key, int(self._index["sent"][key])
            return
        decoded_at = int(self._index["decode_times"][key])
        for when in () if self._untimed else (int(self._times[key]), decoded_at):
            try:
                self._container.seek(when, stream=self._stream, backward=True)
                self.decoder.flush_buffers()
                packets = self._packets()
                first = next(packets, None)
            except faults():
                break
            if first is not None and first.dts is not None and first.dts <= decoded_at and self._knows(first):
                self._start(key, chain((first,), packets))
                return
        self._begin_anew()

    def _knows(self, packet: Any) -> bool:
        """Whether the times of a packet are those of the index. Where only some packets say theirs, as in MPEG's streams, the
        others are guessed, and differently after a seek."""
        return packet.is_discard or packet.pts is None or packet.pts in self._numbers

    def _begin_anew(self) -> None:
        """Opens the file once more, to decode from its beginning."""
        self.close()
        self._open()
        self._forget()
        self._began = 0
        self._start(0, self._packets())

    def _start(self, frame: int, packets: Iterator[Any]) -> None:
        self._next, self._coming = frame, packets
        self._frames = self._numbered(packets)

    def _forget(self) -> None:
        """Nothing is being decoded, and no damage is known."""
        self._frames, self._place, self._damage, self._damaged = None, None, None, []
        self._emptied = False
        self._inside.clear()

    def _packets(self) -> Iterator[Any]:
        # A generator of PyAV 18 that is dropped, and not closed, leaves 150 bytes behind; what `yield from` goes through is closed.
        yield from self._container.demux(self._stream)

    def _numbered(self, packets: Iterator[Any]) -> Iterator[tuple[int, Any]]:
        """The frames in these packets, with their numbers."""
        counted, last = 0, len(self._times) - 1
        while True:
            try:
                packet = next(packets, None)
            except faults() as error:
                self._note_damage(error, self._next)
                return
            if packet is None:
                return
            self._choose_effort(packet)
            try:
                frames = self.decoder.decode(packet if packet.size else None)
                if self._ends and not self._unsent and not any(map(self._is_last, frames)):
                    self._emptied = True
                    frames += self.decoder.decode(None)
            except faults() as error:
                # Decode times of packets differ after a seek where a file does not say them (Matroska).
                place = self._next if packet.size else last
                self._note_damage(error, place if packet.pts is None else self._number(packet.pts))
                if not packet.size:
                    return
                frames = []
            for frame in frames:
                if self._untimed or frame.pts is None:
                    number, counted = counted, counted + 1
                else:
                    number = self._number(frame.pts)
                    counted = number + 1
                self._inside.discard(number)
                yield number, frame
            if self._emptied:
                return

    def _is_last(self, frame: Any) -> bool:
        return frame.pts is not None and self._number(frame.pts) >= self._last_wanted

    def _note_damage(self, error: BaseException, number: int) -> None:
        """Frame `number`, and what comes behind it in the file, could not be had."""
        self._damage = error
        self._damaged.append(int(self._index["decode_times"][min(number, len(self._times) - 1)]))

    def _number(self, time: int) -> int:
        number = self._numbers.get(time)
        return int(np.searchsorted(self._times, time)) if number is None else number

    def _choose_effort(self, packet: Any) -> None:
        """A frame that is not asked for is decoded only if others need it."""
        skips = False
        if packet.size and packet.pts is not None and not self._untimed:
            number = self._number(packet.pts)
            skips = number < self._last_wanted and number not in self._wanted
            if not skips:
                self._unsent.discard(number)
                self._inside.add(number)
        if skips != self._skips:
            self.decoder.skip_frame = "NONREF" if skips else "DEFAULT"
            self._skips = skips


def scan(source: str | np.ndarray) -> Index:
    """The index of a video: `times` of its frames in ticks of the `time_base` (a fraction), ascending; `decode_times`
    by which they are found; `keys`, the numbers of frames where decoding may begin; `size`, height and width, upright;
    `untimed`, whether the file says no times, so that frames are counted; `picture`, see `Picture`; `packets`, see `Places`,
    and `sent`, the row of each frame there. RuntimeError for what is no video."""
    container = _opened(source)
    try:
        return _indexed(source, container, _video_stream(container))
    finally:
        container.close()


def key_before(keys: Sequence[int] | np.ndarray, frame: int) -> int:
    """Where decoding must begin for a frame."""
    # NumPy's search takes 5 us, longer than all else of a frame's bookkeeping.
    at = bisect.bisect_right(keys, frame) - 1
    return int(keys[at]) if at >= 0 else 0


def _opened(source: str | np.ndarray) -> Any:
    av = library()
    if not isinstance(source, str) and not len(source):
        raise RuntimeError("expected a video, got 0 bytes: an empty file, or one that cannot be read")
    try:
        file = source if isinstance(source, str) else _Bytes(source)
        return av.open(file, container_options=_OPTIONS, **any_metadata(av))
    except FileNotFoundError:
        raise
    except faults() as error:
        # Not a MemoryError: a broken file has FFmpeg ask for any number of bytes.
        if isinstance(error, OSError) and is_shortage(error):
            raise
        raise RuntimeError(f"expected a video, got what FFmpeg cannot open: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error)


def _video_stream(container: Any) -> Any:
    if not container.streams.video:
        kinds = ", ".join(sorted({stream.type for stream in container.streams})) or "nothing"
        raise RuntimeError(f"expected a video stream, the file has {kinds}")
    stream = container.streams.best("video")  # of several, FFmpeg's choice and DALI's: the largest, mostly
    if stream.codec_context is None:
        raise RuntimeError("FFmpeg here has no decoder for its video stream")
    return stream


def _indexed(source: str | np.ndarray, container: Any, stream: Any) -> Index:
    listed: list[tuple[Any, Any, bool]] = []
    stored = Places(source, container.format.name)
    hides = stream.codec_context.name in _CODECS_WITH_HIDDEN_FRAMES
    try:
        for packet in container.demux(stream):
            if packet.size:
                stored.note(packet)
            if packet.size and not packet.is_discard and not (hides and not bytes(packet)[0] >> 4 & 1):
                listed.append((packet.pts, packet.dts, packet.is_keyframe))
    except faults() as error:
        if not listed:
            raise RuntimeError(f"its packets cannot be read: {_reason(error)}") from error
    if not listed:
        raise RuntimeError("expected a video, its video stream has no frames")
    # AVI has no times: FFmpeg guesses them, wrongly where frames are stored in another order than they are shown.
    guessed = container.format.name == "avi" and stream.codec_context.has_b_frames
    # A guess that two frames are shown at one time is wrong, and so are others near it: of 60 frames of a VOB 58 were found.
    if container.format.name in _GUESSED_AFTER_SEEKS:
        guessed = guessed or len({pts for pts, _, _ in listed}) < len(listed)
    untimed = bool(guessed) or any(pts is None for pts, _, _ in listed)
    decode_times = np.array([place if dts is None else dts for place, (_, dts, _) in enumerate(listed)], np.int64)
    keys = np.array([key for _, _, key in listed])
    time_base = stream.time_base
    if untimed:
        times = np.arange(len(listed), dtype=np.int64)
        rate = stream.average_rate or stream.guessed_rate or Fraction(25)
        time_base = 1 / rate
    else:
        times, places = np.unique(np.array([pts for pts, _, _ in listed], np.int64), return_index=True)
        decode_times, keys = decode_times[places], keys[places]
    if untimed or container.format.name in _GUESSED_AFTER_SEEKS:
        keys = np.arange(len(times)) == 0
    picture, (height, width) = _first_picture(container, stream)
    packets = stored.found() if not untimed else np.zeros((0, 3), np.int64)
    return {
        "times": times,
        "decode_times": decode_times,
        "keys": np.flatnonzero(keys).astype(np.int64),
        "time_base": np.array([time_base.numerator, time_base.denominator], np.int64),
        "size": np.array([height, width], np.int64),
        "untimed": np.array([untimed]),
        "picture": np.array(picture, np.int64),
        "packets": packets,
        "sent": rows_of(packets, times),
    }


class Picture(NamedTuple):
    """How the frames of a video are stored: counterclockwise quarter turns to be made, the matrix of their colours (a
    number of H.273), whether their range is full, and the bits of 4:2:0 (0: it is something else, or unknown)."""

    turns: int
    matrix: int
    full_range: bool
    bits: int


def _first_picture(container: Any, stream: Any) -> tuple[Picture, tuple[int, int]]:
    """How frames are stored; height and width, upright. All this stands with the frames, so the first one is decoded."""
    height, width = stream.codec_context.height, stream.codec_context.width
    if height * width > get_max_pixels():
        raise RuntimeError(
            f"expected frames of at most {get_max_pixels()} pixels, got {height}x{width}. "
            "Allow more with ndd.decoders.set_max_pixels()."
        )
    frame = _first_frame(container, stream)
    picture = Picture(0, 2, False, 0)
    if frame is not None:
        kind, full = frame.format.name, frame.color_range == FULL_RANGE
        bits = 0 if frame.interlaced_frame else PLANAR.get(kind, 0)
        picture = Picture(round(frame.rotation / 90) % 4, frame.colorspace, full or kind == "yuvj420p", bits)
        height, width = frame.height, frame.width
    if height < 1 or width < 1:
        raise RuntimeError(
            "expected a video, its frames have no size: the header is damaged, or FFmpeg does not decode it (as WebP that moves)"
        )
    return picture, ((width, height) if picture.turns % 2 else (height, width))


def _first_frame(container: Any, stream: Any) -> Any:
    try:
        container.seek(-(1 << 62), backward=False)
    except faults():
        pass
    with closing(container.demux(stream)) as packets:  # see `VideoFile._packets`
        try:
            for packet in packets:
                for frame in stream.codec_context.decode(packet if packet.size else None):
                    return frame
        except faults():
            pass
    return None


def _ffmpeg(stream: Any) -> Any:
    try:
        stream.codec_context.open(strict=False)
    except faults() as error:
        raise RuntimeError(f"FFmpeg cannot decode its video stream: {_reason(error)}") from error
    return stream.codec_context


class _Bytes:
    """Bytes in memory as a file for FFmpeg."""

    name = "memory"

    def __init__(self, data: np.ndarray):
        self._data = np.ascontiguousarray(data).reshape(-1)
        self._place = 0

    def read(self, count: int) -> bytes:
        """The next bytes."""
        found = self._data[self._place : self._place + count].tobytes()
        self._place += len(found)
        return found

    def seek(self, offset: int, whence: int = 0) -> int:
        """Goes to a place, as files do."""
        base = (0, self._place, len(self._data))[whence]
        self._place = max(base + offset, 0)
        return self._place

    def tell(self) -> int:
        """The place."""
        return self._place


_import_lock = threading.Lock()


def faults() -> tuple[type[Exception], ...]:
    """What PyAV raises for a broken file: FFmpeg's errors, of which some are Python's too, and its own."""
    return (library().error.FFmpegError, OSError, ValueError, EOFError, MemoryError, NotImplementedError)


def library() -> Any:
    """PyAV; ImportError, with what to install, where it is missing."""
    with _import_lock:
        try:
            import av
        except ImportError as error:
            raise ImportError('Decoding video needs PyAV: pip install "ndd-dataloading[video]"') from error
    return av
