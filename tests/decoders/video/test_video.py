"""`ndd.decoders.video`: which frames come out, against FFmpeg's own order and DALI."""

import gc
import io
import logging
import os
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import nvdec
import pytest
from cases import each_of
from memory import least_growth
from videos import REAL, encoded, number_of, numbered, numbers_of, timed

import ndd
from ndd.decoders.pyav import any_metadata
from ndd.decoders.video import nvdec as _nvdec, nvdec_calls
from ndd.decoders.video.color import factors
from ndd.decoders.video.file import VideoFile

av = pytest.importorskip("av")


def a_file(rng, i, dtype):
    return encoded(6 + i, format="webm", codec="libvpx", height=32 + 8 * (i % 2))


REGISTRY_INPUTS = {"video file": (a_file, None)}
REGISTRY_CASES = {
    "decoders.video": each_of({}, {"start_frame": 1, "sequence_length": 3}, inputs=("video file",), dtypes=("uint8",))
}


@pytest.fixture(scope="module")
def clip():
    return encoded(40)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, list(range(40))),
        ({"start_frame": 37}, [37, 38, 39]),
        ({"start_frame": 3, "end_frame": 9, "stride": 2}, [3, 5, 7]),
        ({"start_frame": 11, "sequence_length": 3, "stride": 4}, [11, 15, 19]),
        ({"frames": [25, 3, 3, 39, 0]}, [25, 3, 3, 39, 0]),
        ({"frames": []}, []),
        ({"sequence_length": 0}, []),
        ({"start_frame": 38, "sequence_length": 4, "pad_mode": "edge"}, [38, 39, 39, 39]),
        ({"start_frame": 38, "sequence_length": 4, "pad_mode": "reflect_101"}, [38, 39, 38, 37]),
        ({"start_frame": 38, "sequence_length": 4, "pad_mode": "reflect_1001"}, [38, 39, 39, 38]),
        ({"start_frame": 38, "sequence_length": 4, "pad_mode": "none"}, [38, 39]),
        ({"times": [0.0, 0.05, 0.1, 0.39999, 0.4, 3.99, 100.0, -1.0]}, [0, 0, 1, 3, 4, 39, 39, 0]),
    ],
)
def test_the_frames_that_are_asked_for_come_out(clip, arguments, expected):
    frames = ndd.decoders.video(clip, **arguments)
    assert frames.layout == "FHWC"
    assert frames.shape == (len(expected), 32, 48, 3)
    assert numbers_of(frames) == expected


def test_places_beyond_the_end_take_the_fill_value(clip):
    frames = np.asarray(ndd.decoders.video(clip, start_frame=39, sequence_length=3, fill_value=[1, 2, 3]))
    assert number_of(frames[0]) == 39
    assert (frames[1:] == [1, 2, 3]).all()
    assert (np.asarray(ndd.decoders.video(clip, frames=[-1], fill_value=9)) == 9).all()


def test_each_sample_of_a_batch_has_its_own_frames():
    videos = ndd.batch([encoded(12), encoded(7, height=40, width=64, codec="mpeg4")])
    frames = ndd.decoders.video(videos, start_frame=ndd.batch([2, 5]), sequence_length=ndd.batch([3, 2]))
    assert [s.shape for s in frames] == [(3, 32, 48, 3), (2, 40, 64, 3)]
    assert [numbers_of(s) for s in frames] == [[2, 3, 4], [5, 6]]
    chosen = ndd.decoders.video(videos, frames=ndd.batch([[1, 0, 9], [6]]))
    assert [numbers_of(s) for s in chosen] == [[1, 0, 9], [6]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"start_frame": 40}, "start_frame 40 is out of bounds"),
        ({"start_frame": 5, "end_frame": 5}, "end_frame .5. must be greater"),
        ({"stride": 0}, "stride: expected a number from 1"),
        ({"sequence_length": -1}, "sequence_length: expected a number from 0"),
        ({"sequence_length": 3, "end_frame": 9}, "cannot be given together"),
        ({"frames": [1], "stride": 2}, "`stride` cannot be given"),
        ({"frames": [1], "times": [0.1]}, "cannot be given"),
        ({"fill_value": 300}, "from 0 to 255"),
        ({"fill_value": [1, 2]}, "one for each of the 3"),
        ({"pad_mode": "mirror"}, "pad_mode"),
    ],
)
def test_arguments_that_make_no_sense_are_errors(clip, arguments, said):
    with pytest.raises(RuntimeError, match=said):
        ndd.decoders.video(clip, **arguments).evaluate()


def plain(path):
    """All frames of a file as FFmpeg gives them, and when they are shown."""
    from ndd.decoders.video.color import write_rgb

    frames, times = [], []
    with av.open(str(path)) as container:
        for frame in container.decode(container.streams.best("video")):
            frames.append(np.empty((frame.height, frame.width, 3), np.uint8))
            write_rgb(frame, frames[-1])
            times.append(float(frame.pts * frame.time_base))
            if len(frames) == 60:
                break
    return frames, times


@pytest.mark.drawn(1)
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
@pytest.mark.parametrize("threads", [1, 3])
def test_frames_of_real_videos_are_those_of_decoding_from_the_start(path, threads):
    frames, times = plain(path)
    rng = np.random.default_rng(len(frames))
    file = VideoFile(str(path), threads)
    assert np.allclose(file.seconds(np.arange(len(times))), times)
    for _ in range(6):
        wanted = (
            rng.integers(0, len(frames), 4) if rng.random() < 0.5 else rng.integers(0, len(frames) - 7) + np.arange(4)
        )
        out = np.zeros((4, file.shape.height, file.shape.width, 3), np.uint8)
        file.read(wanted, out)
        for place, number in enumerate(wanted):
            np.testing.assert_array_equal(out[place], frames[number])
    file.close()


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["vp8_cfr_nasa_320x180.webm", "vp9_cfr_nasa_320x180.mp4"])
@pytest.mark.parametrize(
    "arguments", [{"start_frame": 3, "end_frame": 20, "stride": 5}, {"frames": [30, 4, 4, -1], "fill_value": [1, 2, 3]}]
)
def test_it_is_dali(dali, name, arguments):
    path = next((p for p in REAL if p.name == name), None)
    if path is None:
        pytest.skip("needs the real videos")
    data = np.fromfile(path, np.uint8)
    ours = np.asarray(ndd.decoders.video(data, **arguments)).astype(int)
    theirs = np.asarray(dali.decoders.video(dali.as_tensor(data), **arguments))
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= 1
    assert (ours != theirs).mean() < 0.002


@pytest.mark.parametrize("matrix", [1, 2, 9])
@pytest.mark.parametrize("full", [1, 2])
@pytest.mark.parametrize("pixels", ["yuv420p", "yuv420p10le", "yuv444p", "yuv422p"])
def test_colours_follow_the_matrix_and_range_of_the_stream(matrix, full, pixels):
    if matrix == 9 and int(av.__version__.split(".")[0]) < 18:
        pytest.skip("PyAV before 18 writes BT.2020 as BT.601")
    colours = np.array([[200, 30, 60], [20, 180, 240], [250, 250, 5], [128, 128, 128]], np.uint8)
    frame = np.repeat(colours, 12, axis=0)[None].repeat(16, 0)[None]
    shown = np.asarray(ndd.decoders.video(timed(frame, matrix=matrix, full=full, pixels=pixels)))[0, 8]
    middles = shown[[5, 17, 29, 41]].astype(int)
    assert np.abs(middles - colours).max() <= 4


@pytest.mark.parametrize(("height", "width"), [(33, 47), (1, 1), (2, 3), (17, 16)])
def test_odd_sizes(height, width):
    frames = np.random.default_rng(0).integers(0, 256, (2, height, width, 3)).astype(np.uint8)
    frames[:] = frames[:, :1, :1]  # chroma is shared by neighbours
    shown = np.asarray(ndd.decoders.video(timed(frames)))
    assert shown.shape == frames.shape
    assert np.abs(shown.astype(int) - frames).max() <= 4


@pytest.mark.parametrize(("height", "width", "bits"), [(7, 9, 8), (6, 75, 8), (5, 64, 10), (3, 131, 12)])
def test_chroma_between_its_samples_is_linear(height, width, bits):
    """The formula, computed slowly: narrow frames, and wide ones, of which 32 pixels are made at once."""
    from ndd.decoders.video.yuv import rgb_of_420

    rng, item, kind = np.random.default_rng(1), 1 << bits - 8, np.uint8 if bits == 8 else np.uint16
    rows, columns = (height + 1) // 2, (width + 1) // 2
    y, u, v = (rng.integers(0, 256 * item, s).astype(kind) for s in ((height, width), (rows, columns), (rows, columns)))
    out = np.empty((height, width, 3), np.uint8)
    rgb_of_420(y, u, v, out, factors(1, False, bits))

    def spread(plane):
        padded = np.pad(plane / item, 1, "edge")
        tall, both = np.empty((2 * rows, columns + 2)), np.empty((2 * rows, 2 * columns))
        tall[0::2], tall[1::2] = (3 * padded[1:-1] + padded[:-2]) / 4, (3 * padded[1:-1] + padded[2:]) / 4
        both[:, 0::2], both[:, 1::2] = (3 * tall[:, 1:-1] + tall[:, :-2]) / 4, (3 * tall[:, 1:-1] + tall[:, 2:]) / 4
        return both[:height, :width] - 128

    luma, cb, cr = (y / item - 16) * 255 / 219, spread(u) * 255 / 224, spread(v) * 255 / 224
    red, blue = luma + 1.5748 * cr, luma + 1.8556 * cb
    green = luma - 0.0722 / 0.7152 * 1.8556 * cb - 0.2126 / 0.7152 * 1.5748 * cr
    expected = np.floor(np.stack([red, green, blue], -1).clip(0, 255) + 0.5)
    assert np.abs(out - expected).max() <= 1
    assert (out != expected).mean() < 0.02


def test_a_variable_frame_rate_is_read_by_time():
    times = [0, 40, 80, 500, 540, 2000, 2040, 2080]
    clip = timed(numbered(8), times)
    frames = ndd.decoders.video(clip, times=[0.03, 0.04, 0.3, 0.5, 1.9, 2.0, 9.0])
    assert numbers_of(frames) == [0, 1, 2, 3, 4, 5, 7]


def test_a_turned_video_comes_out_upright():
    frames = np.zeros((2, 32, 48, 3), np.uint8)
    frames[:, :16, :16] = [255, 0, 0]  # red at the top left of what is stored
    clip = turned(ndd.io.video.encode(frames))
    shown = np.asarray(ndd.decoders.video(clip))
    assert shown.shape == (2, 48, 32, 3)
    assert shown[0, 4, -4].tolist()[0] > 200, "turned clockwise by 90 degrees: red at the top right"


def turned(clip):
    """An MP4 file whose track is to be shown turned clockwise by 90 degrees."""
    data = bytearray(clip.tobytes())
    item, place = b"\x00\x01\x00\x00", data.index(b"tkhd") + 44
    zero, minus, w = bytes(4), b"\xff\xff\x00\x00", b"\x40\x00\x00\x00"
    data[place : place + 36] = zero + item + zero + minus + zero + zero + zero + zero + w
    return np.frombuffer(bytes(data), np.uint8)


def guarded(work, seconds=20):
    """Runs `work` and fails if it hangs."""
    result = []

    def run():
        try:
            result.append(work())
        except BaseException as error:
            result.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert result, f"hangs for {seconds} s"
    return result[0]


def broken_files():
    whole = encoded(30)
    audio = io.BytesIO()
    with av.open(audio, "w", format="matroska") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), "s16", "mono")
        frame.rate = 8000
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    later = encoded(6, format="mkv").copy()
    later[later.tobytes().index(b"\x42\xf7\x81") + 3] = 9  # EBMLReadVersion
    damaged = whole.copy()
    place = whole.tobytes().index(b"mdat") + 4
    damaged[place : place + (len(damaged) - place) // 2] = 0x5A
    return {
        "nothing": (np.empty(0, np.uint8), "0 bytes"),
        "text": (np.frombuffer(b"this is no video" * 100, np.uint8), "cannot open"),
        "cut off before its index": (whole[: len(whole) // 3], "cannot open|cannot be read"),
        "only a head": (encoded(6, format="mkv")[:50], "cannot open"),
        "of a later Matroska": (later, "cannot open.*Not yet implemented"),
        "audio only": (np.frombuffer(audio.getvalue(), np.uint8), "expected a video stream"),
        "damaged": (damaged, "frame 0 of 30 .* cannot be decoded"),
    }


@pytest.mark.parametrize(
    "name",
    ["nothing", "text", "cut off before its index", "only a head", "of a later Matroska", "audio only", "damaged"],
)
@pytest.mark.drawn(2)
def test_broken_files_are_errors_that_name_sample_and_file(tmp_path, name):
    data, said = broken_files()[name]
    path = tmp_path / "bad.mp4"
    path.write_bytes(data.tobytes())
    good = tmp_path / "good.mp4"
    good.write_bytes(encoded(6).tobytes())

    def work():
        return ndd.decoders.video(ndd.io.file.read([str(good), str(path)])).evaluate()

    result = guarded(work)
    assert isinstance(result, RuntimeError), result
    assert "sample 1" in str(result)
    assert "bad.mp4" in str(result)
    import re

    assert re.search(said, str(result)), result
    assert numbers_of(ndd.decoders.video(ndd.io.file.read(str(good)))) == list(range(6)), "the next call works"


def test_a_matroska_file_that_is_cut_off_has_fewer_frames():
    whole = encoded(30, format="mkv")
    frames = guarded(lambda: np.asarray(ndd.decoders.video(whole[: len(whole) * 2 // 3], sequence_length=3)))
    assert numbers_of(frames) == [0, 1, 2]


def test_what_a_file_says_of_itself_may_have_any_bytes():
    result = encoded(6).tobytes()
    clip = np.frombuffer(result.replace(b"Lavf", b"\xe9\xe8vf"), np.uint8)  # "encoded by", as Latin-1
    assert clip.tobytes() != result
    assert numbers_of(ndd.decoders.video(clip)) == list(range(6))
    assert any_metadata(SimpleNamespace(__version__="19.0.2")) == {}  # which has no such argument any more


def test_one_frame_and_interlaced_and_many_codecs():
    assert numbers_of(ndd.decoders.video(encoded(1))) == [0]
    made_by = [
        "libx265 mp4", "mpeg4 avi", "libvpx webm", "libsvtav1 mp4", "libx264 avi", "libx264 mpegts", "mpeg2video mpeg",
    ]  # fmt: skip
    for codec, form in map(str.split, made_by):
        clip = encoded(14, codec=codec, format=form, quality=15, height=64, width=96, rate=25)
        for wanted in ([9, 0, 13, 5], [13]):  # the last one after a seek
            assert numbers_of(ndd.decoders.video(clip, frames=wanted)) == wanted, codec


def test_frames_whose_times_a_container_says_twice_are_counted(tmp_path):
    """FFmpeg guesses the times of a VOB with frames that are stored in another order than they are shown."""
    path, frames = tmp_path / "twice.vob", numbered(60, 64, 96)
    # Noise, for several frames in a pack.
    frames[:, 32:] += np.random.default_rng(0).integers(0, 4, (60, 32, 96, 3)).astype(np.uint8)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg2video", rate=25, options={"bf": "2"})
        stream.height, stream.width, stream.codec_context.gop_size = 64, 96, 12
        for array in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(array, "rgb24")))
        container.mux(stream.encode())
    with av.open(str(path)) as container:
        times = [packet.pts for packet in container.demux(video=0) if packet.size]
    assert len(set(times)) < len(times) == 60
    clip = np.fromfile(path, np.uint8)
    assert numbers_of(ndd.decoders.video(clip)) == list(range(60))
    assert numbers_of(ndd.decoders.video(clip, frames=[59, 3, 37])) == [59, 3, 37]


def test_many_clips_leave_no_file_and_no_memory_behind(tmp_path):
    psutil = pytest.importorskip("psutil")
    clip = encoded(8)
    process = psutil.Process()

    def some():
        for _ in range(40):
            ndd.decoders.video(ndd.batch([clip, clip]), start_frame=5, sequence_length=2).evaluate()

    some()
    files = process.num_fds()
    assert least_growth(some, parts=3) < 8 << 20  # 80 decoders that stay: 70 MB
    assert process.num_fds() <= files + 2


def test_too_large_a_video_is_refused(clip):
    ndd.decoders.set_max_pixels(100)
    try:
        with pytest.raises(RuntimeError, match="at most 100 pixels"):
            ndd.decoders.video(clip).evaluate()
    finally:
        ndd.decoders.set_max_pixels(None)


@pytest.fixture
def engine(emulated_gpu, monkeypatch):
    """A GPU with video engines: FFmpeg in their place, but for a real one's."""
    emulated_gpu.decoder = None if emulated_gpu.real else nvdec.put_in_place(monkeypatch)
    return emulated_gpu


def the_same(there, here, most=1):
    assert there.device.device_type == "gpu"
    for first, second in zip(there.cpu().tensors, here.tensors, strict=True):
        first, second = np.asarray(first).astype(int), np.asarray(second)
        assert first.shape == second.shape
        assert np.abs(first - second).max(initial=0) <= most
        assert (first != second).mean() < 0.001


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.drawn(1)
def test_on_a_gpu_the_frames_are_those_of_the_cpu(engine, refused, monkeypatch):
    videos = ndd.batch(
        [encoded(12), encoded(7, height=66, width=64), encoded(9, width=64, codec="libvpx", format="webm")]
    )
    how = {
        "start_frame": ndd.batch([2, 5, 0]), "sequence_length": ndd.batch([9, 4, 3]), "stride": ndd.batch([1, 1, 2]),
        "fill_value": [1, 2, 3],
    }  # fmt: skip
    if refused:
        monkeypatch.setattr(nvdec.Decoder, "refuses", ("h264",))
    launched = len(engine.launches)
    the_same(ndd.decoders.video(videos, device="gpu", **how), ndd.decoders.video(videos, **how))
    assert engine.launches[launched:] == ["video"], "one launch for all frames"
    assert engine.real or (engine.decoder.open == 0 and (engine.decoder.copies > 8) is not refused)


@pytest.mark.parametrize("pixels", ["yuv420p", "yuv420p10le", "yuv444p"])
@pytest.mark.parametrize(("full", "matrix", "height", "width"), [(1, 1, 33, 47), (2, 9, 16, 30), (1, 2, 1, 1)])
@pytest.mark.drawn(1)
def test_the_pictures_of_an_engine_become_rgb_as_on_the_cpu(engine, pixels, full, matrix, height, width):
    frames = np.random.default_rng(0).integers(0, 256, (3, height, width, 3)).astype(np.uint8)
    clip = ndd.batch([timed(frames, matrix=matrix, full=full, pixels=pixels)])
    the_same(ndd.decoders.video(clip, frames=[2, 0], device="gpu"), ndd.decoders.video(clip, frames=[2, 0]))
    assert engine.real or (engine.decoder.copies > 0) == (pixels != "yuv444p")


@pytest.fixture
def reasons(logged):
    """Why the CPU decodes, as the logger says."""
    logger = logging.getLogger("ndd.video")
    logger.setLevel(logging.INFO)
    yield logged
    logger.setLevel(logging.NOTSET)


@pytest.mark.gpu
def test_the_engines_decode_what_they_can(reasons):
    videos = ndd.batch(
        [encoded(12, height=64, width=96), encoded(9, height=64, width=96, codec="libvpx", format="webm")]
    )
    there = ndd.decoders.video(videos, device="gpu")
    the_same(there, ndd.decoders.video(videos))
    assert not reasons


def test_turned_videos_on_a_gpu(engine):
    frames = np.random.default_rng(0).integers(0, 256, (2, 32, 48, 3)).astype(np.uint8)
    plain = ndd.io.video.encode(frames)
    clips = ndd.batch([plain, turned(plain)])
    the_same(ndd.decoders.video(clips, device="gpu"), ndd.decoders.video(clips))


def test_a_long_video_is_cut_at_key_frames(engine):
    clip = ndd.batch([encoded(60, key_interval=10)])
    there = ndd.decoders.video(clip, frames=list(range(59, -1, -1)), device="gpu")
    assert numbers_of(there.cpu().tensors[0]) == list(range(59, -1, -1))
    assert engine.real or engine.decoder.copies < 90, "no frame is decoded often"


def test_why_the_cpu_decodes_can_be_asked(engine, reasons):
    ndd.decoders.video(timed(numbered(2), pixels="yuv444p"), device="gpu").evaluate()
    assert "4:2:0" in reasons[0][1]


@pytest.mark.parametrize("codec", ["libx264", "libx265"])
def test_packets_get_start_codes_and_say_whether_they_are_needed(codec):
    clip = encoded(20, codec=codec, key_interval=20, height=64, width=96)  # x265 writes beyond smaller frames
    with av.open(io.BytesIO(clip.tobytes())) as container:
        stream = container.streams.video[0]
        name = stream.codec_context.name
        head, length_bytes = _nvdec._parameter_sets(name, stream.codec_context.extradata)
        packets = [p for p in container.demux(stream) if p.size]
    again = av.CodecContext.create(name, "r")
    result, dropped = [], 0
    for i, packet in enumerate(packets):
        assert length_bytes == 4
        data = np.frombuffer(b"head" + bytes(packet), np.uint8).copy()
        size, needed = nvdec_calls.with_start_codes(data, 0, 4, len(data), _nvdec._NAL_CODECS[name])
        data = data[4:size].tobytes()
        dropped += not needed
        if needed:  # what is left can be decoded
            result += again.decode(av.Packet((head if i == 0 else b"") + data))
    result += again.decode(None)
    assert dropped > 0
    assert len(result) == len(packets) - dropped
    assert not any(frame.is_corrupt for frame in result)


def test_of_several_video_streams_the_best_one_is_read():
    memory, rng = io.BytesIO(), np.random.default_rng(0)
    with av.open(memory, "w", format="mp4") as container:
        streams = [container.add_stream("libx264", rate=10) for _ in range(2)]
        for stream, size in zip(streams, (16, 64), strict=True):
            stream.height, stream.width, stream.pix_fmt = size, 2 * size, "yuv420p"
            stream.disposition = av.stream.Disposition.default.value
        for _ in range(5):
            for stream in streams:
                noise = rng.integers(0, 256, (stream.height, stream.width, 3)).astype(np.uint8)
                container.mux(stream.encode(av.VideoFrame.from_ndarray(noise, "rgb24")))
        for stream in streams:
            container.mux(stream.encode())
    frames = ndd.decoders.video(np.frombuffer(memory.getvalue(), np.uint8), frames=[4, 0])
    assert frames.shape == (2, 64, 128, 3)
    assert np.asarray(frames).std() > 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_may_forget_what_its_parent_opened(clip):
    """Freed in the child, FFmpeg's decoder waited for ever for its threads, which only the parent has."""
    file = VideoFile(clip, 2)
    file.frame(3)
    held = [file]
    del file
    child = os.fork()
    if child == 0:
        held.clear()
        gc.collect()  # PyAV's containers and their streams hold each other
        os._exit(0)
    deadline = time.monotonic() + 30
    ended = 0
    while not ended and time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert (ended, status) == (child, 0)
    held[0].close()
