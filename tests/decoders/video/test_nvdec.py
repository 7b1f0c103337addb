"""`_nvdec.Decoder`, and what is compiled for it, with a driver of Python functions: a picture for each packet."""

import ctypes
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from ndd.decoders.video import nvdec as _nvdec, nvdec_calls
from ndd.decoders.video.packets import Packets

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
            (self.cuvidParseVideoData, word, address), (self.cuvidDecodePicture, word, address),
            (self.cuvidMapVideoFrame64, word, i32, address, address, address),
            (self.cuvidUnmapVideoFrame64, word, i64), (self.cuvidGetDecodeStatus, word, i32, address),
            (self.cuMemcpy2DAsync_v2, address, word), (self.cuStreamSynchronize, word),
        ):  # fmt: skip
            setattr(self, function.__name__, ctypes.CFUNCTYPE(i32, *kinds)(self.unless_it_fails(function)))

    def begin(self):
        self.fails, self.mapped, self.decoded, self.shows, self.times = set(), 0, [], 1, 0
        self.sent, self.delay, self.waiting, self.waits, self.copied = [], 0, [], 0, 0

    def unless_it_fails(self, function):
        return lambda *arguments: 7 if function.__name__ in self.fails else function(*arguments) or 0

    def cuvidCreateVideoParser(self, parser, how):
        self.how = how._obj

    def cuvidParseVideoData(self, parser, packet):
        flags, size, data, time = (ctypes.c_int64 * 4).from_address(packet)
        user = self.how.user
        if flags & 1:
            while self.waiting:
                self.show()
            _CALLBACK(self.how.show)(user, None)  # the driver's word for the end of a stream
            return 0
        self.sent.append(ctypes.string_at(data, size))
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
            self.waiting.append((self.times % 4, time))
            if len(self.waiting) > self.delay:
                self.show()
        return 0

    def show(self):
        number, time = self.waiting.pop(0)
        shown = (ctypes.c_int * 6)(number, 1, 1, 0, time & 0xFFFFFFFF, time >> 32)
        _CALLBACK(self.how.show)(self.how.user, ctypes.addressof(shown))

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
        late = "late damage" in self.fails
        said = 8 if "damage" in self.fails or (late and self.waits) else 1 if late else 2
        ctypes.cast(status, ctypes.POINTER(ctypes.c_uint32))[0] = said

    def cuMemcpy2DAsync_v2(self, copy, stream):
        from_x, from_y, kind, _, source, _, pitch, to_x, to_y, to, _, target, _, row, count, rows = (
            ctypes.c_uint64 * 16
        ).from_address(copy)
        assert (from_x, from_y, kind, to_x, to_y, to) == (0, 0, 2, 0, 0, 2)
        self.copied += 0.5
        for k in range(rows):
            ctypes.memmove(target + k * row, source + k * pitch, count)

    def cuStreamSynchronize(self, stream):
        self.waits += 1


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
    result = _nvdec.Decoder("h264", b"", 0, SIZE, None)
    yield result
    result.close()


def packets(*times, data=b"\0\0\1data"):
    return Packets(data * len(times), np.full(len(times), len(data)), np.array(times, np.int64))


def decoded(decoder, times, wanted=None, unwanted=False, ends=False, **how):
    """Sends packets, and gives the pictures of those times that are wanted; what `decode` says."""
    height, width = SIZE
    result = np.zeros((len(wanted or times), height * 3 // 2, width), np.uint8)
    table = np.array([(time, item.ctypes.data) for time, item in zip(wanted or times, result, strict=True)], np.int64)
    said = decoder.decode(packets(*times, **how), np.full(len(times), unwanted), table, ends)
    assert not table[:, 1].any()
    return result, said


def shown(number):
    """What is to be seen of a surface."""
    surface = DRIVER.surfaces[number]
    luma = surface[TOP : TOP + SIZE[0], LEFT : LEFT + SIZE[1]]
    return np.concatenate([luma, surface[HEIGHT + TOP // 2 :][: SIZE[0] // 2, LEFT : LEFT + SIZE[1]]])


def test_pictures_are_decoded_shown_and_copied(decoder):
    for k, time in enumerate((70, 1 << 40), 1):
        (result,), said = decoded(decoder, [time])
        np.testing.assert_array_equal(result, shown(k))
        assert said == (1, time)
    assert DRIVER.decoded == [1, 2]
    assert DRIVER.mapped == 0
    decoder.flush_buffers()


def test_several_packets_are_sent_in_one_call_up_to_the_last_wanted_picture(decoder):
    DRIVER.delay = 1
    result, said = decoded(decoder, [1, 2, 3, 4, 5], wanted=[1, 3])
    np.testing.assert_array_equal(result, [shown(1), shown(3)])
    assert said == (4, 3), "the fourth one shows the third"
    assert DRIVER.decoded == [1, 2, 3, 0]
    assert (DRIVER.copied, DRIVER.waits) == (2, 2), "the others are not copied"
    result, said = decoded(decoder, [5], wanted=[4, 5], ends=True)
    np.testing.assert_array_equal(result, [shown(0), shown(1)])
    assert said == (2, 5)


def test_what_was_decoded_before_is_forgotten_with_the_next_packets(decoder):
    DRIVER.delay = 2
    none = np.zeros((0, 2), np.int64)
    assert decoder.decode(packets(1, 2), np.zeros(2, bool), none) == (2, None)
    decoder.flush_buffers()
    assert len(DRIVER.waiting) == 2, "not yet"
    result, said = decoded(decoder, [1, 3], ends=True)
    np.testing.assert_array_equal(result, [shown(3), shown(0)])
    assert said == (3, 3)
    decoder.flush_buffers()  # nothing is left
    assert decoder.decode(packets(), np.zeros(0, bool), none) == (0, None)


def test_the_parameter_sets_come_with_each_first_packet(decoder):
    decoder._head = b"head"
    decoded(decoder, [1, 2])
    decoder.flush_buffers()
    decoded(decoder, [3])
    assert [sent.startswith(b"head") for sent in DRIVER.sent] == [True, False, True]


def test_what_no_other_picture_needs_is_not_sent(decoder):
    decoder._length_bytes = 4
    units = b"\0\0\0\2\x01A\0\0\0\3\x65BC"  # one that is not needed, one that is
    decoded(decoder, [1], unwanted=True, data=units)
    assert DRIVER.sent == [b"\0\0\0\1\x01A\0\0\0\1\x65BC"]
    said = decoder.decode(packets(2, data=units[:6]), np.ones(1, bool), np.zeros((0, 2), np.int64))
    assert said == (1, None)
    assert len(DRIVER.sent) == 1


@pytest.mark.parametrize("bytes_of_length", [1, 2, 3])
def test_short_lengths_become_start_codes(decoder, bytes_of_length):
    decoder._length_bytes = bytes_of_length
    unit = (2).to_bytes(bytes_of_length, "big") + b"\x65B"
    decoded(decoder, [1, 2], data=2 * unit)
    assert DRIVER.sent == [b"\0\0\0\1\x65B" * 2] * 2


@pytest.mark.parametrize(
    "name", ["cuvidMapVideoFrame64", "cuMemcpy2DAsync", "cuStreamSynchronize", "cuvidParseVideoData", "damage"]
)
def test_a_copy_that_fails_says_why_and_unmaps(decoder, name):
    DRIVER.fails.add("cuMemcpy2DAsync_v2" if name == "cuMemcpy2DAsync" else name)
    with pytest.raises(_nvdec.Refused, match="damaged" if name == "damage" else f"{name} returns status 7"):
        decoded(decoder, [0])
    assert DRIVER.mapped == 0


def test_copies_may_be_waited_for_together(decoder, monkeypatch):
    monkeypatch.setattr(_nvdec, "_WAITS_FOR_EACH", False)
    result, _ = decoded(decoder, [1, 2, 3])
    np.testing.assert_array_equal(result, [shown(1), shown(2), shown(3)])
    assert (DRIVER.copied, DRIVER.waits) == (3, 1)


def test_the_state_of_a_picture_that_is_under_way_is_asked_again(decoder, monkeypatch):
    monkeypatch.setattr(_nvdec, "_WAITS_FOR_EACH", False)
    DRIVER.fails.add("late damage")
    with pytest.raises(_nvdec.Refused, match="damaged"):
        decoded(decoder, [0])
    assert DRIVER.waits == 2


def test_what_the_engine_does_not_decode_is_refused(decoder):
    DRIVER.fails.add("cuvidDecodePicture")
    with pytest.raises(_nvdec.Refused, match="cuvidDecodePicture returns status 7"):
        decoded(decoder, [0])
    DRIVER.fails.clear()
    assert decoded(decoder, [1])[1] == (1, 1)
    DRIVER.shows = 5  # there are 4 surfaces
    with pytest.raises(_nvdec.Refused, match="more pictures than there are surfaces"):
        decoded(decoder, [2])
    DRIVER.shows = 200  # more than is noted
    with pytest.raises(_nvdec.Refused, match="more pictures than there are surfaces"):
        decoded(decoder, [2])


def test_a_stream_that_begins_with_another_size_is_not_decoded(decoder):
    decoder._size = 12, 22
    with pytest.raises(_nvdec.Refused, match="expected frames of 12x22, got 12x24"):
        decoded(decoder, [0])
    assert DRIVER.decoded == []


def test_so_many_threads_are_in_the_driver(decoder, monkeypatch):
    free = threading.Semaphore(0)
    monkeypatch.setattr(_nvdec, "_engines", lambda device: free)
    thread = threading.Thread(target=decoded, args=(decoder, [1]))
    thread.start()
    thread.join(0.05)
    assert DRIVER.sent == []
    free.release()
    thread.join()
    assert len(DRIVER.sent) == 1
    DRIVER.fails.add("cuvidParseVideoData")
    with pytest.raises(_nvdec.Refused):
        decoded(decoder, [2])
    assert free.acquire(blocking=False), "it is free again, whatever happened"
