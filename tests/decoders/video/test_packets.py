"""Packets of videos: where they stand, and what an engine gets of them."""

import io
from types import SimpleNamespace

import numpy as np
import nvdec
import pytest
from videos import encoded, numbered, numbers_of, timed

import ndd
from ndd.decoders.video import file as _video_file, packets as _video_packets
from ndd.decoders.video.file import VideoFile
from ndd.decoders.video.index import scan
from ndd.decoders.video.packets import Packets, Places, PlainFile

av = pytest.importorskip("av")


def demuxed(clip):
    with av.open(io.BytesIO(clip.tobytes())) as container:
        return [packet for packet in container.demux(container.streams.video[0]) if packet.size]


def with_sound(frames):
    """An MP4 file of frames and a tone, mixed."""
    memory = io.BytesIO()
    with av.open(memory, "w", format="mp4") as container:
        video, sound = container.add_stream("libx264", rate=10), container.add_stream("aac", rate=8000)
        video.height, video.width, video.pix_fmt = *frames.shape[1:3], "yuv420p"
        video.options = {"g": "5"}
        tone = np.random.default_rng(0).uniform(-1, 1, (1, 8000 * len(frames) // 10)).astype(np.float32)
        for k, frame in enumerate(frames):
            container.mux(video.encode(av.VideoFrame.from_ndarray(frame, "rgb24")))
            part = av.AudioFrame.from_ndarray(tone[:, 800 * k : 800 * (k + 1)].copy(), format="fltp", layout="mono")
            part.rate = 8000
            container.mux(sound.encode(part))
        container.mux(video.encode())
        container.mux(sound.encode())
    return np.frombuffer(memory.getvalue(), np.uint8)


@pytest.mark.parametrize("kind", ["bytes", "path"])
@pytest.mark.parametrize("gap", [1 << 16, 0])
@pytest.mark.drawn(1)
def test_packets_of_mp4_files_are_read_from_their_places(kind, gap, tmp_path, monkeypatch):
    monkeypatch.setattr(_video_packets, "_GAP", gap)
    clip = with_sound(numbered(20))
    (tmp_path / "a.mp4").write_bytes(clip.tobytes())
    source = clip if kind == "bytes" else str(tmp_path / "a.mp4")
    index, packets = scan(source), demuxed(clip)
    rows = index["packets"]
    assert len(rows) == 20
    assert (rows[1:, 0] - rows[:-1, 0] != rows[:-1, 1]).any(), "there is sound between them"
    np.testing.assert_array_equal(rows[index["sent"], 2], index["times"])
    file, expected = PlainFile(source), Packets.of(packets[3:17])
    result = file.packets(rows[3:17])
    file.close()
    assert bytes(result.data) == bytes(expected.data)
    np.testing.assert_array_equal(result.sizes, expected.sizes)
    np.testing.assert_array_equal(result.times, expected.times)


def test_packets_of_other_containers_have_no_places():
    index = scan(timed(numbered(3)))
    assert index["packets"].shape == (0, 3)
    assert index["sent"].size == 0


@pytest.mark.parametrize("bad", [0, 1, 4])
def test_what_does_not_stand_in_the_file_has_no_place(bad):
    data = np.arange(100, dtype=np.uint8)
    places = Places(data, "mov,mp4,m4a,3gp,3g2,mj2")
    for k in range(6):
        packet = bytearray(data[10 * k : 10 * k + 10].tobytes())
        packet[3] ^= k == bad
        places.note(type("Packet", (bytearray,), {"pos": 10 * k, "size": 10, "pts": k})(packet))
    assert places.table().shape == (0, 3)


def test_a_packet_without_a_place_or_time_leaves_none():
    for pos, time in ((None, 3), (-1, 3), (10, None)):
        places = Places(np.zeros(100, np.uint8), "mov,mp4,m4a,3gp,3g2,mj2")
        places.note(SimpleNamespace(pos=pos, size=10, pts=time))
        assert places.table().shape == (0, 3)


def test_a_file_that_became_shorter_is_an_error(tmp_path):
    path = tmp_path / "a.mp4"
    path.write_bytes(bytes(10))
    file = PlainFile(str(path))
    with pytest.raises(RuntimeError, match="has become shorter"):
        file.packets(np.array([[5, 6, 0]]))
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.read(0, 1)


@pytest.fixture
def opened(monkeypatch):
    """The files that FFmpeg opened."""
    result, plain = [], VideoFile._open
    monkeypatch.setattr(VideoFile, "_open", lambda self: (result.append(self.source), plain(self)))
    return result


@pytest.mark.parametrize("codec", ["libx264", "libx265"])
@pytest.mark.drawn(1)
def test_an_engine_decodes_mp4_files_without_ffmpeg(codec, tmp_path, emulated_gpu, monkeypatch, opened):
    engine = None if emulated_gpu.real else nvdec.put_in_place(monkeypatch)
    path = tmp_path / "a.mp4"
    size = (160, 176) if emulated_gpu.real else (64, 96)  # an engine's least, and what emulation does in time
    path.write_bytes(encoded(60, codec=codec, key_interval=20, height=size[0], width=size[1]).tobytes())
    how = {"filenames": str(path), "sequence_length": 4, "stride": 3, "step": 7}
    here, there = ndd.readers.Video(**how), ndd.readers.Video(**how, device="gpu")
    order = [6, 0, 3, 4, 5, 1, 6, 2]
    expected = here.fetch(order)[0]
    del opened[:]
    for numbers in (order, order[:3], order[3:]):
        result = there.fetch(numbers)[0].cpu()
        for number, sample in zip(numbers, result.tensors, strict=True):
            wanted = np.asarray(expected.tensors[order.index(number)]).astype(int)
            np.testing.assert_allclose(np.asarray(sample).astype(int), wanted, atol=1)
    assert opened == []
    assert engine is None or engine.copies > 0
    there.close()


@pytest.mark.parametrize("stored", ["all", "a few at once", "none"])
def test_an_engine_gets_no_more_than_it_takes(stored, monkeypatch):
    engine = nvdec.put_in_place(monkeypatch)
    if stored == "a few at once":
        monkeypatch.setattr(_video_file, "_BYTES_AT_ONCE", 200)
    clip = encoded(60, key_interval=20, height=32, width=32)
    index = scan(clip)
    if stored == "none":
        index["packets"] = index["packets"][:0]
    file = VideoFile(clip, 1, index)
    file.decode_by(lambda _: engine(*file.codec, 0, (32, 32), None))
    numbers = [*range(4), *range(20, 24), *range(45, 48)]
    result = np.zeros((len(numbers), 48, 32), np.uint8)
    file.expect(numbers)
    file.copy(numbers, [item.ctypes.data for item in result])
    assert engine.copies <= 4 + 4 + 8 + (16 if stored == "none" else 0)
    plain = VideoFile(clip)
    plain.expect(numbers)
    for number, item in zip(numbers, result, strict=True):
        np.testing.assert_array_equal(item[:32], np.asarray(plain.frame(number).to_ndarray())[:32])
    for item in (file, plain):
        item.close()


def test_a_file_that_was_cut_off_since_it_was_indexed_is_named(tmp_path, emulated_gpu, monkeypatch):
    if not emulated_gpu.real:
        nvdec.put_in_place(monkeypatch)
    path = tmp_path / "a.mp4"
    path.write_bytes(encoded(20, key_interval=5).tobytes())
    reader = ndd.readers.Video(filenames=str(path), sequence_length=4, device="gpu")
    assert numbers_of(reader[1][0].cpu()) == [4, 5, 6, 7]
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(RuntimeError, match=r"a.mp4 frame 12"):
        reader[3][0].evaluate()
