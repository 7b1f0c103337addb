"""`_nvdec.Decoder`, and what is compiled for it, with a driver of Python functions: a picture for each packet."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from ndd._cpu import nvdec_calls
from ndd.decoders import _nvdec

PITCH, WIDTH, HEIGHT, LEFT, TOP = 64, 32, 16, 4, 2
SIZE = 12, 24  # of what is shown
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class Driver:
    """The functions of the driver. `fails` are those that give status 7; `shows`: the pictures that a packet shows."""

    def __init__(self):
        self.surfaces = np.random.default_rng(0).integers(0, 255, (4, HEIGHT * 3 // 2, PITCH), np.uint8)
        self.begin()
        word, i32, i64, address = ctypes.c_size_t, ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p
        for function, *kinds in (
            (self.cuvidDecodePicture, word, address), (self.cuvidMapVideoFrame64, word, i32, address, address, address),
            (self.cuvidUnmapVideoFrame64, word, i64), (self.cuvidGetDecodeStatus, word, i32, address),
            (self.cuMemcpy2DAsync_v2, address, word), (self.cuStreamSynchronize, word),
        ):  # fmt: skip
            setattr(self, function.__name__, ctypes.CFUNCTYPE(i32, *kinds)(self.unless_it_fails(function)))

    def begin(self):
        self.fails, self.mapped, self.decoded, self.shows, self.times = set(), 0, [], 1, 0

    def unless_it_fails(self, function):
        return lambda *given: 7 if function.__name__ in self.fails else function(*given) or 0

    def cuvidCreateVideoParser(self, parser, how):
        self.how = how._obj

    def cuvidParseVideoData(self, parser, packet):
        packet, user = packet._obj, self.how.user
        if packet.flags & 1:
            return 0
        if not self.times:
            form = _nvdec._Format(
                codec=4, progressive=1, surfaces=2, width=WIDTH, height=HEIGHT, chroma=1,
                shown=_nvdec._Area(LEFT, TOP, LEFT + SIZE[1], TOP + SIZE[0]),
            )  # fmt: skip
            if not self.how.sequence(user, ctypes.pointer(form)):
                return 1
        for _ in range(self.shows):
            self.times += 1
            picture = (ctypes.c_int * 4)(0, 0, self.times % 4, 0)
            if not _CALLBACK(self.how.decode)(user, ctypes.addressof(picture)):
                return 1
            shown = (ctypes.c_int * 6)(self.times % 4, 1, 1, 0, packet.time & 0xFFFFFFFF, packet.time >> 32)
            _CALLBACK(self.how.show)(user, ctypes.addressof(shown))
        _CALLBACK(self.how.show)(user, None)  # the driver's word for the end of a stream
        return 0

    def cuvidDestroyVideoParser(self, parser):
        pass

    def cuvidDecodePicture(self, session, picture):
        assert session == 5
        self.decoded.append(ctypes.cast(picture, ctypes.POINTER(ctypes.c_int))[2])

    def cuvidMapVideoFrame64(self, session, number, address, pitch, mapping):
        assert ctypes.cast(mapping, ctypes.POINTER(_nvdec._Mapping)).contents.progressive == 1
        self.mapped += 1
        ctypes.cast(address, ctypes.POINTER(ctypes.c_uint64))[0] = self.surfaces[number].ctypes.data
        ctypes.cast(pitch, ctypes.POINTER(ctypes.c_uint32))[0] = PITCH

    def cuvidUnmapVideoFrame64(self, session, address):
        self.mapped -= 1

    def cuvidGetDecodeStatus(self, session, number, status):
        ctypes.cast(status, ctypes.POINTER(ctypes.c_uint32))[0] = 8 * ("damage" in self.fails)

    def cuMemcpy2DAsync_v2(self, copy, stream):
        from_x, from_y, kind, _, source, _, pitch, to_x, to_y, to, _, target, _, row, count, rows = (
            ctypes.c_uint64 * 16
        ).from_address(copy)
        assert (from_x, from_y, kind, to_x, to_y, to) == (0, 0, 2, 0, 0, 2)
        for k in range(rows):
            ctypes.memmove(target + k * row, source + k * pitch, count)

    def cuStreamSynchronize(self, stream):
        pass


DRIVER = Driver()  # compiled code keeps the functions that it was linked with


@pytest.fixture
def decoder(monkeypatch):
    try:
        _nvdec.library()
        pytest.skip("a real driver's functions must not be replaced in compiled code")
    except _nvdec.Refused:
        pass
    import torch

    DRIVER.begin()
    nvdec_calls.connect(DRIVER, DRIVER)
    session = SimpleNamespace(handle=ctypes.c_void_p(5), key=(0, 4, 0), size=(WIDTH, HEIGHT), room=(WIDTH, HEIGHT, 9))
    monkeypatch.setattr(_nvdec, "library", lambda: DRIVER)
    monkeypatch.setattr(_nvdec, "sessions", SimpleNamespace(take=lambda *_: session, give_back=lambda _: None))
    monkeypatch.setattr(torch.cuda, "set_device", lambda _: None)
    monkeypatch.setattr(torch.cuda, "Stream", lambda _: SimpleNamespace(cuda_stream=0, wait_stream=lambda _: None))
    stream = SimpleNamespace(codec_context=SimpleNamespace(name="h264", extradata=b""))
    made = _nvdec.Decoder(stream, 0, SIZE, None)
    yield made
    made.close()


class Packet(bytes):
    """An encoded picture, to be shown at `pts`."""

    pts: int

    def __new__(cls, pts):
        made = bytes.__new__(cls, b"\0\0\1data")
        made.pts = pts
        return made


def copied(frame):
    height, width = SIZE
    target = np.zeros((height * 3 // 2, width), np.uint8)
    frame.copy(target.ctypes.data)
    return target


def test_pictures_are_decoded_shown_and_copied(decoder):
    for pts in (70, 1 << 40):
        (frame,) = decoder.decode(Packet(pts))
        surface = DRIVER.surfaces[DRIVER.decoded[-1]]
        luma = surface[TOP : TOP + SIZE[0], LEFT : LEFT + SIZE[1]]
        chroma = surface[HEIGHT + TOP // 2 :][: SIZE[0] // 2, LEFT : LEFT + SIZE[1]]
        assert frame.pts == pts
        np.testing.assert_array_equal(copied(frame), np.concatenate([luma, chroma]))
    assert DRIVER.decoded == [1, 2]
    assert DRIVER.mapped == 0
    assert decoder.decode(None) == []


@pytest.mark.parametrize("name", ["cuvidMapVideoFrame64", "cuMemcpy2DAsync", "cuStreamSynchronize", "damage"])
def test_a_copy_that_fails_says_why_and_unmaps(decoder, name):
    (frame,) = decoder.decode(Packet(0))
    DRIVER.fails.add("cuMemcpy2DAsync_v2" if name == "cuMemcpy2DAsync" else name)
    with pytest.raises(_nvdec.Refused, match="damaged" if name == "damage" else f"{name} gives status 7"):
        copied(frame)
    assert DRIVER.mapped == 0


def test_what_the_engine_does_not_decode_is_refused(decoder):
    DRIVER.fails.add("cuvidDecodePicture")
    with pytest.raises(_nvdec.Refused, match="cuvidDecodePicture gives status 7"):
        decoder.decode(Packet(0))
    DRIVER.fails.clear()
    assert [frame.pts for frame in decoder.decode(Packet(1))] == [1]
    DRIVER.shows = 5  # there are 4 surfaces
    with pytest.raises(_nvdec.Refused, match="more pictures than there are surfaces"):
        decoder.decode(Packet(2))
    DRIVER.shows = 200  # more than is noted
    with pytest.raises(_nvdec.Refused, match="more pictures than there are surfaces"):
        decoder.decode(Packet(2))


def test_a_stream_that_begins_with_another_size_is_not_decoded(decoder):
    decoder._size = 12, 22
    with pytest.raises(_nvdec.Refused, match="expected frames of 12x22, got 12x24"):
        decoder.decode(Packet(0))
    assert DRIVER.decoded == []
