"""`VideoFile`: one open video, with an exact index of its frames, and frames by number. PyAV (FFmpeg) decodes.

The index (`index.py`) holds the time of each frame, and the frames at which decoding may begin. A frame is identified by its time,
so variable frame rates work like constant ones. To reach a frame the decoder continues from its place, or restarts at the
preceding key frame, whichever decodes fewer frames; on the way it skips frames that no other frame needs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from ndd._execution.fork import fork_lock
from ndd.decoders.video.color import write_rgb, write_ycbcr
from ndd.decoders.video.index import Index, faults, indexed, key_before, mark, opened, reason, video_stream
from ndd.decoders.video.packets import Packets, PlainFile

# A decoder that reorders frames outputs a frame at most about this many packets after the frame's own.
_SHOWN_WITHIN = 8
_BYTES_AT_ONCE = 1 << 22  # of packets


class Shape(NamedTuple):
    """The number of frames of a video, and their height and width, upright."""

    frames: int
    height: int
    width: int


# In a forked child: the parent's files. To free them, FFmpeg would wait forever for threads that the child does not have.
_of_parents: list[Any] = []


class VideoFile:
    """One open video, for one thread at a time. FFmpeg decodes, until `decode_by` sets another decoder.

    Args:
        source: a path, or the bytes of a file, u8.
        threads: the number of FFmpeg's threads.
        index: the result of `scan` for this file; default: the constructor calls `scan`.
    """

    def __init__(self, source: str | np.ndarray, threads: int = 1, index: Index | None = None):
        self.source, self._threads = source, threads
        self._process = os.getpid()
        self._decoder: Any = None  # created on first use
        self._make_decoder: Callable[[Any], Any] = _ffmpeg
        self._container: Any = None  # opened when FFmpeg is needed: an engine may not need it
        self._index = self._indexed() if index is None else index
        self._times, self._keys = self._index["times"], self._index["keys"].tolist()
        self.time_base = Fraction(*self._index["time_base"].tolist())
        height, width = self._index["size"].tolist()
        self.shape = Shape(len(self._times), height, width)
        self._numbers = {time: number for number, time in enumerate(self._times.tolist())}
        self._wanted: set[int] = set()
        self._last_wanted = -1
        self._ends = False  # whether the decoder may be flushed after the last of them
        self._emptied = False
        self._unsent: set[int] = set()  # requested frames whose packets are not sent yet
        self._inside: set[int] = set()  # frames whose packets are sent, and which are not output yet
        self._untimed = bool(self._index["untimed"][0])
        self._next = 0  # the next frame that the decoder outputs
        self._began = 0  # the frame where decoding began
        self._frames: Iterator[tuple[int, Any]] | None = None
        self._coming: Iterator[Any] = iter(())  # the packets of these frames
        self._plain: PlainFile | None = None  # the source of an engine's packets
        self._place: int | None = None  # the row of the next one of these
        self._damage: BaseException | None = None  # the decoder's last status
        self._damaged: list[int] = []  # the decode times of packets that could not be decoded
        self.refused: str | None = None  # why the engines of a GPU refuse it

    @property
    def index(self) -> Index:
        """The index, see `scan`."""
        return self._index

    @property
    def position(self) -> int:
        """The next frame if decoding continues; the number of frames if it cannot."""
        return self.shape.frames if self._emptied else self._next

    @property
    def stream(self) -> Any:
        """PyAV's video stream; opens the file if necessary."""
        if self._container is None:
            self._open()
        return self._stream

    @property
    def codec(self) -> tuple[str, bytes]:
        """FFmpeg's name of the codec, and its parameter sets."""
        return self._index["codec"].tobytes().decode(), self._index["extradata"].tobytes()

    def seconds(self, frames: Any) -> np.ndarray:
        """The times of frames in seconds, f64."""
        return self._times[frames] * float(self.time_base)

    def at(self, seconds: np.ndarray) -> np.ndarray:
        """The frames that are shown at these times; before the beginning of the video, the first frame."""
        ticks = np.floor(np.asarray(seconds, np.float64) / float(self.time_base) + 1e-3)
        return (np.searchsorted(self._times, ticks, "right") - 1).clip(0)

    def key_before(self, frame: int) -> int:
        """The frame at which decoding must begin for a frame."""
        return key_before(self._keys, frame)

    def read(self, frames: np.ndarray, out: np.ndarray) -> None:
        """Writes frames into `out`, u8 RGB `[len(frames), height, width, 3]`.

        `frames` are numbers, in any order and with repetitions. `out` stays unchanged for numbers that the video does not have.
        """
        places: dict[int, list[np.ndarray]] = {}
        for place, number in enumerate(frames.tolist()):
            if 0 <= number < self.shape.frames:
                places.setdefault(number, []).append(out[place])
        self.expect(sorted(places))
        for number in sorted(places):
            self.write(number, places[number])

    def decode_by(self, make_decoder: Callable[[Any], Any] | None) -> None:
        """Sets the decoder to the result of `make_decoder` for this file, an engine's (`nvdec.Decoder`). None: FFmpeg again."""
        self._close_decoder()
        self._make_decoder = make_decoder or _ffmpeg
        self._forget()

    @property
    def by_ffmpeg(self) -> bool:
        """Whether FFmpeg decodes."""
        return self._make_decoder is _ffmpeg

    @property
    def decoder(self) -> Any:
        """The decoder, made at its first use."""
        if self._decoder is None:
            with fork_lock:
                self._decoder = self._make_decoder(self)
            self._decoder.skip_frame, self._skips = "DEFAULT", False
        return self._decoder

    def expect(self, numbers: Sequence[int], ends: bool = False) -> None:
        """Announces the frames that will be read, ascending: frames between them are decoded only if others need them. `ends`:
        reading stops after the last one. A decoder that reorders frames outputs it only after two or three more frames, one of
        which is often a key frame; with `ends` the decoder is flushed instead."""
        if self._emptied:
            self._forget()
        self._wanted, self._ends = set(numbers), ends
        self._last_wanted = numbers[-1] if numbers else -1
        self._unsent = self._wanted - self._inside

    def write(self, number: int, places: Sequence[np.ndarray], ycbcr: bool = False) -> None:
        """Writes one frame to several arrays, u8 `[height, width, 3]`. Raises RuntimeError if it cannot be decoded."""
        frame = self.frame(number)
        write = write_ycbcr if ycbcr else write_rgb
        write(frame, places[0], round(frame.rotation / 90) % 4)
        for place in places[1:]:
            place[...] = places[0]

    def close(self) -> None:
        """Closes the file and the decoder."""
        self._frames = self._place = None
        self._close_decoder()
        if self._plain is not None:
            self._plain.close()
            self._plain = None
        if self._container is not None:
            with fork_lock:
                self._container.close()
            self._container = None

    def __del__(self) -> None:
        if os.getpid() != getattr(self, "_process", os.getpid()):
            _of_parents.append([self.__dict__.get(name) for name in ("_container", "_decoder", "_frames", "_coming")])

    def _close_decoder(self) -> None:
        if self._decoder is not None and not self.by_ffmpeg:
            self._decoder.close()
        self._decoder = None

    def _indexed(self) -> Index:
        stream = self.stream
        try:
            return indexed(self.source, self._container, stream)
        except BaseException:
            self._container.close()
            raise

    def _open(self) -> None:
        # FFmpeg opens and closes decoders under locks of the process: a child forked in between would wait forever.
        with fork_lock:
            container = opened(self.source)
            try:
                self._stream = video_stream(container)
                self._stream.thread_type = "AUTO"
                self._stream.thread_count = self._threads
            except BaseException:
                container.close()
                raise
            self._container = container
        self._skips = False

    def frame(self, wanted: int) -> Any:
        """A frame in the form of the decoder. Raises RuntimeError if it cannot be decoded."""
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
                # With several threads FFmpeg reports damage late and for more frames than it harms, and PyAV loses the good
                # frames that come with an error.
                self._threads, self._ends = 1, False
                self._begin_anew()
                self._go_to(self.key_before(wanted))
            elif harmed or self._began == 0:
                break
            else:
                self._ends = False
                self._go_to(0)  # this was not a key frame: decode from the beginning
        raise self._bad(wanted)

    def copy(self, numbers: Sequence[int], places: Sequence[int]) -> None:
        """Writes the frames announced by `expect` to addresses, with an engine's decoder. Raises RuntimeError if one of them cannot
        be decoded."""
        cuts = [at for at in range(1, len(numbers)) if self.key_before(numbers[at]) > numbers[at - 1] + 1]
        for begin, end in pairwise([0, *cuts, len(numbers)]):
            self._copy(numbers[begin:end], places[begin:end], end < len(numbers))

    def _copy(self, numbers: Sequence[int], places: Sequence[int], ends: bool) -> None:
        """Copies frames without a key frame to skip to between them. `ends`: decoding stops after them."""
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
                        self._send_stored(self._place, numbers, wanted, ends)
            except faults() as error:
                self._damage = error
            if not wanted[:, 1].any():
                return
            if self._damage is not None or self._began == 0:
                break
        raise self._bad(numbers[int((wanted[:, 1] != 0).argmax())])

    def _send(self, unsent: set[int], wanted: np.ndarray) -> None:
        """Decodes packets up to the last one of the unsent frames, or one packet if all are sent."""
        packets: list[Any] = []
        while unsent or not packets:
            packet = next(self._coming, None)
            if packet is None or not packet.size:
                self._frames = None
                break
            if packet.pts is None:
                raise ValueError("a packet has no time")
            number = self._number(packet.pts)
            packets.append(packet)
            unsent.discard(number)
            self._inside.add(number)
        self._decode(Packets.of(packets), wanted, self._frames is None)
        self._inside = {number for number in self._inside if number >= self._next}

    def _send_stored(self, place: int, numbers: Sequence[int], wanted: np.ndarray, ends: bool) -> None:
        """Decodes packets in the order of the file from row `place` on, up to the last missing frame and as many more as it takes
        to output that; with `ends` the decoder is flushed instead."""
        if self._plain is None:
            self._plain = PlainFile(self.source)
        rows = self._index["packets"]
        last = int(self._index["sent"][np.array(numbers)[wanted[:, 1] != 0]].max()) + 1
        enough = min(max(last, place) + (0 if ends else _SHOWN_WITHIN), len(rows))
        end = min(enough, place + int(np.searchsorted(np.cumsum(rows[place:enough, 1]), _BYTES_AT_ONCE)) + 1)
        packets = self._plain.packets(rows[place:end])
        sent = self._decode(packets, wanted, end == len(rows) or (ends and end == enough))
        self._place = place + sent if sent <= len(packets.sizes) else None

    @property
    def _goes_on(self) -> bool:
        """Whether there is more to decode."""
        return self._frames is not None or self._place is not None

    def _decode(self, packets: Packets, wanted: np.ndarray, ends: bool) -> int:
        """Decodes packets. Returns their number."""
        times = self._times[list(self._wanted)]
        unwanted = (packets.times < times.max()) & ~np.isin(packets.times, times)
        sent, last = self.decoder.decode(packets, unwanted, wanted, ends)
        if last is not None:
            self._next = self._number(last) + 1
        return sent

    def _harmed(self, wanted: int) -> bool:
        """Whether packets that a frame needs, from the key frame before it on, were damaged."""
        if not self._damaged or self._untimed:
            return bool(self._damaged)
        first, last = self._index["decode_times"][[self.key_before(wanted), wanted]].tolist()
        return any(first <= when <= last for when in self._damaged)

    def _bad(self, wanted: int) -> RuntimeError:
        damage, self._frames = self._damage, None
        when = f"frame {wanted} of {self.shape.frames} ({self.seconds(wanted):.3f} s)"
        reason = "" if damage is None else f": {damage}"
        return RuntimeError(f"{when} cannot be decoded, the data is damaged or cut off{reason}")

    def _go_to(self, key: int) -> None:
        """Restarts at a key frame, or at the beginning if the file is not seekable."""
        self._forget()
        self._began = key
        if not self.by_ffmpeg and len(self._index["packets"]):
            self.decoder.flush_buffers()
            self._next, self._place = key, int(self._index["sent"][key])
            return
        decoded_at = int(self._index["decode_times"][key])
        for when in () if self._untimed else (int(self._times[key]), decoded_at):
            try:
                stream = self.stream
                self._container.seek(when, stream=stream, backward=True)
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
        """Whether a packet has these times in the index. If only some packets state their times, as in MPEG streams, FFmpeg guesses
        the others, and guesses differently after a seek. It guesses all times in a container that it seeks in without a list of
        packets, such as truncated MXF."""
        if packet.is_discard or packet.pts is None:
            return True
        number = self._numbers.get(packet.pts)
        return number is not None and int(self._index["marks"][number]) == mark(packet)

    def _begin_anew(self) -> None:
        """Opens the file again, to decode from its beginning."""
        self.close()
        self._open()
        self._forget()
        self._began = 0
        self._start(0, self._packets())

    def _start(self, frame: int, packets: Iterator[Any]) -> None:
        self._next, self._coming = frame, packets
        self._frames = self._numbered(packets)

    def _forget(self) -> None:
        """Resets the state: no frames in flight, and no known damage."""
        self._frames, self._place, self._damage, self._damaged = None, None, None, []
        self._emptied = False
        self._inside.clear()

    def _packets(self) -> Iterator[Any]:
        # A generator of PyAV 18 leaks 150 bytes unless it is closed; `yield from` closes it.
        stream = self.stream
        yield from self._container.demux(stream)

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
                # Where a file does not state decode times (Matroska), they differ after a seek.
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
        """Notes damage at the packet of frame `number`."""
        self._damage = error
        self._damaged.append(int(self._index["decode_times"][min(number, len(self._times) - 1)]))

    def _number(self, time: int) -> int:
        number = self._numbers.get(time)
        return int(np.searchsorted(self._times, time)) if number is None else number

    def _choose_effort(self, packet: Any) -> None:
        """Makes the decoder skip the frame of a packet if it is neither requested nor needed by another frame."""
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


def _ffmpeg(file: VideoFile) -> Any:
    stream = file.stream
    try:
        stream.codec_context.open(strict=False)
    except faults() as error:
        raise RuntimeError(f"FFmpeg cannot decode its video stream: {reason(error)}") from error
    return stream.codec_context
