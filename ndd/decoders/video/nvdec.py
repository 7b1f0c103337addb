"""The video engines of NVIDIA GPUs (NVDEC), through the driver's C interface, `libnvcuvid`.

`Decoder` replaces FFmpeg's decoder in a `VideoFile`: it takes packets and returns the frames that the file's index selects. The
driver's parser divides a stream into pictures, and a session of an engine decodes them. Creating a session takes 13 to 75 ms, so
sessions are reused; a large enough session is reconfigured for another size.

All calls into the driver run without the GIL, and its parser calls back compiled functions (`nvdec_calls.py`). Frames are copied
out of the session's surfaces, on a stream of the decoder.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any

import numpy as np
import torch

from ndd.decoders.video.nvdec_calls import (
    CALLS,
    FORGOTTEN,
    H264,
    HEVC,
    NEVER,
    OVERRUN,
    State,
    callbacks,
    connect,
    decode_packets,
)
from ndd.decoders.video.packets import Packets

_CODECS = {"mpeg4": 2, "h264": 4, "hevc": 8, "vp8": 9, "vp9": 10, "av1": 11}
_NAL_CODECS = {"h264": H264, "hevc": HEVC}
_START = b"\0\0\0\1"
_CHROMA_420 = 1
_NV12, _P016 = 0, 1
_PREFER_ENGINE = 4  # the engine, not a decoder of CUDA kernels
_END, _TIMED, _ONE_PICTURE = 1, 2, 8  # of a packet
_DISPLAY_DELAY = 2  # pictures that the engine may decode before the first of them is waited for
_SPARE_SURFACES = 4
_MAPPED = 2
_WAITS_FOR_EACH = True  # waits for a copy before its surface is released, as NVIDIA's samples do
# Threads in the driver. An H200 has 7 engines: clips of HEVC, 320 x 180, by 2 threads 8,500 frames/s, 4 16,700, 6 21,200, 8 and 12
# 21,000 to 31,000, by all 22,700.
_AT_ONCE = 8
_KEPT_IDLE = 32  # idle sessions; one for 1080p takes about 100 MB

_u8, _u32, _ulong, _pointer = ctypes.c_ubyte, ctypes.c_uint32, ctypes.c_ulong, ctypes.c_void_p


class Refused(Exception):
    """The engines or the driver cannot decode a video; the CPU does."""


class _Rectangle(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_short) for name in ("left", "top", "right", "bottom"))


class _Area(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int) for name in ("left", "top", "right", "bottom"))


class _Format(ctypes.Structure):
    _fields_ = (
        ("codec", _u32), ("rate", _u32 * 2), ("progressive", _u8), ("more_bits", _u8), ("more_bits_of_chroma", _u8),
        ("surfaces", _u8), ("width", _u32), ("height", _u32), ("shown", _Area), ("chroma", _u32), ("bit_rate", _u32),
        ("aspect", _u32 * 2), ("signal", _u8 * 4), ("header_length", _u32),
    )  # fmt: skip


class _Caps(ctypes.Structure):
    _fields_ = (
        ("codec", _u32), ("chroma", _u32), ("more_bits", _u32), ("reserved", _u32 * 3), ("supported", _u8), ("engines", _u8),
        ("formats", ctypes.c_ushort), ("max_width", _u32), ("max_height", _u32), ("max_blocks", _u32),
        ("min_width", ctypes.c_ushort), ("min_height", ctypes.c_ushort), ("histogram", _u8 * 4), ("reserved2", _u32 * 10),
    )  # fmt: skip


class _Creation(ctypes.Structure):
    _fields_ = (
        ("width", _ulong), ("height", _ulong), ("surfaces", _ulong), ("codec", _u32), ("chroma", _u32), ("flags", _ulong),
        ("more_bits", _ulong), ("intra_only", _ulong), ("max_width", _ulong), ("max_height", _ulong), ("reserved", _ulong),
        ("shown", _Rectangle), ("output", _u32), ("deinterlace", _u32), ("target_width", _ulong), ("target_height", _ulong),
        ("mapped", _ulong), ("lock", _pointer), ("target", _Rectangle), ("histogram", _ulong), ("reserved2", _ulong * 4),
    )  # fmt: skip


class _Change(ctypes.Structure):
    _fields_ = (
        ("width", _u32), ("height", _u32), ("target_width", _u32), ("target_height", _u32), ("surfaces", _u32),
        ("reserved", _u32 * 12), ("shown", _Rectangle), ("target", _Rectangle), ("reserved2", _u32 * 11),
    )  # fmt: skip


class _Mapping(ctypes.Structure):
    _fields_ = (
        ("progressive", ctypes.c_int), ("second", ctypes.c_int), ("top_first", ctypes.c_int), ("unpaired", ctypes.c_int),
        ("reserved", _u32 * 2), ("raw", ctypes.c_uint64 * 4), ("stream", _pointer), ("reserved2", _u32 * 46),
        ("histogram", _pointer), ("reserved3", _pointer),
    )  # fmt: skip


class _Status(ctypes.Structure):
    _fields_ = (("status", _u32), ("reserved", _u32 * 31), ("reserved2", _pointer * 8))


def _numbers(structure: Any) -> np.ndarray:
    """The memory of a structure as i32."""
    return np.frombuffer(structure, np.int32)


_ON_GPU = 2
_COPY_WORDS = 16  # 8-byte numbers of a `CUDA_MEMCPY2D`; below, which of them are source, target and size
_FROM_KIND, _TO_KIND, _TARGET_ROW, _BYTES, _ROWS = 2, 9, 13, 14, 15

_SEQUENCE = ctypes.CFUNCTYPE(ctypes.c_int, _pointer, ctypes.POINTER(_Format))


class _Parsing(ctypes.Structure):
    _fields_ = (
        ("codec", _u32), ("surfaces", _u32), ("clock", _u32), ("threshold", _u32), ("delay", _u32), ("flags", _u32),
        ("reserved", _u32 * 4), ("user", _pointer), ("sequence", _SEQUENCE), ("decode", _pointer), ("show", _pointer),
        ("operating_point", _pointer), ("messages", _pointer), ("reserved2", _pointer * 5), ("extended", _pointer),
    )  # fmt: skip


@functools.cache
def library() -> Any:
    """The driver's library. Raises `Refused` if it is missing."""
    try:
        driver = ctypes.CDLL("libnvcuvid.so.1")
    except OSError as error:
        raise Refused(f"{error}; containers need NVIDIA_DRIVER_CAPABILITIES with 'video'") from None
    connect(driver, ctypes.CDLL("libcuda.so.1"))
    return driver


def _check(name: str, status: int) -> None:
    if status:
        raise Refused(f"{name} returns status {status}")


def _call(name: str, *arguments: Any) -> None:
    _check(name, getattr(library(), name)(*arguments))


@functools.cache
def _caps(device: int, codec: int, more_bits: int) -> _Caps:
    caps = _Caps(codec=codec, chroma=_CHROMA_420, more_bits=more_bits)
    _call("cuvidGetDecoderCaps", ctypes.byref(caps))
    return caps


def _check_size(device: int, codec: int, more_bits: int, width: int, height: int) -> None:
    """Raises `Refused` for streams that the engines do not decode."""
    caps = _caps(device, codec, more_bits)
    fits = caps.supported and caps.formats >> (_P016 if more_bits else _NV12) & 1
    if not fits or not (caps.min_width <= width <= caps.max_width and caps.min_height <= height <= caps.max_height):
        limits = f"from {caps.min_width}x{caps.min_height} to {caps.max_width}x{caps.max_height}"
        here = limits if fits else "not at all"
        raise Refused(f"the engines of this GPU take this codec with {8 + more_bits} bits {here}, got {width}x{height}")
    if width * height // 256 > caps.max_blocks:
        raise Refused(f"the engines of this GPU take up to {caps.max_blocks} blocks of 16x16, got {width}x{height}")


class _Session:
    """An engine's session for frames up to a size. Sizes are coded ones, in whole blocks of pixels."""

    def __init__(self, device: int, codec: int, more_bits: int, width: int, height: int, surfaces: int):
        self.key = device, codec, more_bits
        self.room = width, height, surfaces
        self.size = width, height
        self.handle = _pointer()
        creation = _Creation(
            width=width, height=height, surfaces=surfaces, codec=codec, chroma=_CHROMA_420, flags=_PREFER_ENGINE,
            more_bits=more_bits, max_width=width, max_height=height, shown=_Rectangle(0, 0, width, height),
            output=_P016 if more_bits else _NV12, target_width=width, target_height=height, mapped=_MAPPED,
        )  # fmt: skip
        _call("cuvidCreateDecoder", ctypes.byref(self.handle), ctypes.byref(creation))

    def holds(self, width: int, height: int, surfaces: int) -> bool:
        """Whether frames of this size fit."""
        return all(have >= want for have, want in zip(self.room, (width, height, surfaces), strict=True))

    def turn_to(self, width: int, height: int) -> None:
        """Reconfigures the session for frames of another size."""
        change = _Change(
            width=width, height=height, target_width=width, target_height=height, surfaces=self.room[2],
            shown=_Rectangle(0, 0, width, height),
        )  # fmt: skip
        _call("cuvidReconfigureDecoder", self.handle, ctypes.byref(change))
        self.size = width, height

    def close(self) -> None:
        """Releases the engine's memory."""
        with torch.cuda.device(self.key[0]):
            library().cuvidDestroyDecoder(self.handle)


class _Sessions:
    """The idle sessions, the least recently used first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Session] = []
        self.created = 0

    def take(self, device: int, codec: int, more_bits: int, width: int, height: int, surfaces: int) -> _Session:
        """A session for frames of this size: one of this size, one that can be reconfigured, or a new one."""
        _check_size(device, codec, more_bits, width, height)
        wanted = width, height, surfaces
        with self._lock:
            fit = [idle for idle in self._idle if idle.key == (device, codec, more_bits) and idle.holds(*wanted)]
            session = max(fit, key=lambda idle: idle.size == (width, height)) if fit else None
            if session is not None:
                self._idle.remove(session)
        if session is not None:
            if session.size == (width, height):
                return session
            try:
                session.turn_to(width, height)
                return session
            except Refused:
                session.close()
        self.created += 1
        return _Session(device, codec, more_bits, *wanted)

    def give_back(self, session: _Session) -> None:
        """Keeps a session for the next user."""
        with self._lock:
            self._idle.append(session)
            oldest = self._idle.pop(0) if len(self._idle) > _KEPT_IDLE else None
        if oldest is not None:
            oldest.close()


sessions = _Sessions()


@functools.cache
def _engines(device: int) -> threading.Semaphore:
    """Limits the threads that decode on a GPU."""
    return threading.Semaphore(_AT_ONCE)


class Decoder:
    """Decodes packets with an engine, and copies the wanted frames.

    Args:
        codec: FFmpeg's name of the codec.
        extradata: its parameter sets.
        device: the number of the GPU.
        size: height and width of the frames as stored.
        after: a CUDA stream of torch; memory is written only after its current work.

    Raises `Refused`, here or in `decode`, for what the engines cannot decode.
    """

    def __init__(self, codec: str, extradata: bytes, device: int, size: tuple[int, int], after: Any):
        library()
        self._name, self._device, self._size = codec.removeprefix("lib"), device, size
        if self._name not in _CODECS:
            raise Refused(f"the GPU has no engine for {codec}")
        torch.cuda.set_device(device)
        self._stream = torch.cuda.Stream(device)
        self._stream.wait_stream(after)
        self._head, self._length_bytes = _parameter_sets(self._name, extradata)
        self._fresh, self._forgets = True, False
        self._session: _Session | None = None
        self._error: BaseException | None = None
        self._state = State()
        self._places = np.zeros((3, _COPY_WORDS), np.int64)
        self._mapping = _numbers(_Mapping(stream=self._stream.cuda_stream))
        self._status = _numbers(_Status())
        self._on_sequence: Any = _SEQUENCE(self._sequence)
        decode, show = callbacks()
        parsing = _Parsing(
            codec=_CODECS[self._name], surfaces=1, threshold=100, delay=_DISPLAY_DELAY, user=self._state.address,
            sequence=self._on_sequence, decode=decode, show=show,
        )  # fmt: skip
        self._parser = _pointer()
        _call("cuvidCreateVideoParser", ctypes.byref(self._parser), ctypes.byref(parsing))

    def wait_for(self, stream: Any) -> None:
        """Delays all further writes until the work queued in `stream` has finished."""
        torch.cuda.set_device(self._device)
        self._stream.wait_stream(stream)

    def decode(
        self, packets: Packets, unwanted: np.ndarray, wanted: np.ndarray, ends: bool = False
    ) -> tuple[int, int | None]:
        """Decodes packets until the last wanted frame is shown, and copies the wanted frames; the copies are complete on return.

        Args:
            packets: in the order of decoding.
            unwanted: bool `[N]`, the packets to skip unless other frames need them.
            wanted: i64 `[M, 2]`, ascending times and the addresses to copy the frames to; the addresses of copied frames become
                0. A frame is rows of luma, then rows of interleaved chroma; a row has an even number of pixels, of one byte or,
                with more than 8 bits, two.
            ends: flush the decoder after the packets, which counts as one more packet; the next packet is then a key frame.

        Returns the number of packets that were sent, and the time of the last frame that was output, or None.
        """
        lengths, data, count, before = self._length_bytes, packets.data, len(packets.sizes), int(self._forgets)
        rows = np.zeros((before + count + ends, 4), np.int64)
        rows[:, 0], rows[:before, 3] = _END, FORGOTTEN
        mine = rows[before : before + count]
        mine[:, 0] = _TIMED | (_ONE_PICTURE if self._name in _NAL_CODECS else 0)
        mine[:, 1], mine[:, 2], mine[:, 3] = packets.sizes, packets.times, unwanted
        if lengths not in (0, 4):
            parts = np.split(np.frombuffer(data, np.uint8), np.cumsum(packets.sizes)[:-1])
            parts = [_with_long_lengths(part.tobytes(), lengths) for part in parts]
            data, mine[:, 1] = b"".join(parts), [len(part) for part in parts]
        head = self._head if self._fresh and count else b""
        stream = bytearray(head)
        stream += data
        self._error = None
        with _engines(self._device):
            step, failed, sent, last = decode_packets(
                self._parser.value or 0, self._stream.cuda_stream, self._state.numbers,
                np.frombuffer(stream, np.uint8), rows, before, len(head), _NAL_CODECS[self._name] if lengths else 0,
                wanted, self._places, self._mapping, self._status, _WAITS_FOR_EACH,
            )  # fmt: skip
        sent = max(sent - before, 0)
        self._forgets = False
        self._fresh = sent > count or (self._fresh and not sent)
        if self._error is not None:
            raise self._error
        if step < len(CALLS):
            _check(CALLS[step], failed)
        elif failed:
            more = "a packet with more pictures than there are surfaces"
            raise Refused(more if step == OVERRUN else "the engine found the data damaged")
        return sent, None if last == NEVER else last

    def flush_buffers(self) -> None:
        """Drops the decoded pictures: the next packet is a key frame."""
        self._forgets = self._forgets or not self._fresh
        self._fresh = True

    def _prepare_copies(self, session: _Session, left: int, top: int) -> None:
        """Sets the values that are equal in all copies; pictures begin at `left` and `top` of a surface."""
        height, width = self._size
        wide = 2 if session.key[2] else 1
        row, rows = (width + width % 2) * wide, height + height % 2
        chroma = session.size[1] + session.size[1] % 2
        for word, both in {
            _FROM_KIND: _ON_GPU, _TO_KIND: _ON_GPU, _TARGET_ROW: row, _BYTES: row, _ROWS: (rows, rows // 2),
        }.items():  # fmt: skip
            self._places[:2, word] = both
        self._places[2, :5] = top, left * wide, chroma + top // 2, left * wide, rows * row

    def close(self) -> None:
        """Returns the session."""
        if self._parser:
            library().cuvidDestroyVideoParser(self._parser)
            self._parser = _pointer()
        if self._session is not None:
            sessions.give_back(self._session)
            self._session = None
        self._on_sequence = None

    # ---- the parser calls this, within `_parse`, at the beginning of a stream

    def _sequence(self, _: Any, format: Any) -> int:
        try:
            return self._begin(format.contents)
        except BaseException as error:
            self._error = error
            self._state.decode_with(0)
            return 0

    def _begin(self, format: _Format) -> int:
        shown = format.shown
        size = shown.bottom - shown.top, shown.right - shown.left
        if format.chroma != _CHROMA_420 or not format.progressive:
            raise Refused("the engines decode only 4:2:0 that is not interlaced")
        if size != self._size or shown.left % 2 or shown.top % 2:
            raise Refused(f"expected frames of {self._size[0]}x{self._size[1]}, got {size[0]}x{size[1]}")
        surfaces = format.surfaces + _SPARE_SURFACES
        wanted = self._device, format.codec, format.more_bits, format.width, format.height
        session = self._session
        if session is not None:
            if (*session.key, *session.size) == wanted and session.room[2] >= surfaces:
                return surfaces
            raise Refused("the stream changes its format")
        self._session = session = sessions.take(*wanted, surfaces)
        self._prepare_copies(session, shown.left, shown.top)
        self._state.decode_with(session.handle.value or 0)
        return surfaces


def _parameter_sets(codec: str, extra: bytes) -> tuple[bytes, int]:
    """The bytes to send before the first packet, and the size of a unit's length field in packets (0: start codes)."""
    if codec not in _NAL_CODECS:
        return (extra[4:] if codec == "av1" else extra if codec == "mpeg4" else b""), 0
    if len(extra) < 7 or extra[0] != 1:
        return extra, 0
    if codec == "h264":  # ISO/IEC 14496-15, section 5.3.3.1
        units, place = [], 5
        for mask in (31, 255):
            count, place = extra[place] & mask, place + 1
            for _ in range(count):
                place = _unit(extra, place, units)
        return b"".join(units), (extra[4] & 3) + 1
    units, place = [], 23  # section 8.3.3.1
    for _ in range(extra[22]):
        count, place = int.from_bytes(extra[place + 1 : place + 3], "big"), place + 3
        for _ in range(count):
            place = _unit(extra, place, units)
    return b"".join(units), (extra[21] & 3) + 1


def _unit(extra: bytes, place: int, units: list[bytes]) -> int:
    size = int.from_bytes(extra[place : place + 2], "big")
    units.append(_START + extra[place + 2 : place + 2 + size])
    return place + 2 + size


def _with_long_lengths(data: bytes, length_bytes: int) -> bytes:
    """The packet with lengths of units of 4 bytes instead of fewer."""
    units, place = [], 0
    while place + length_bytes < len(data):
        begin = place + length_bytes
        place = begin + int.from_bytes(data[place:begin], "big")
        units += (len(data[begin:place]).to_bytes(4, "big"), data[begin:place])
    return b"".join(units)
