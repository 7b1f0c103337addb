"""`ndd.decoders.audio` against DALI: formats, element types, mixing, resampling; and what DALI refuses."""

# ruff: noqa: B023  (every closure runs before the loop goes on)
from __future__ import annotations

import importlib
import io
import threading
import tracemalloc

import numpy as np
import pytest
import soundfile
from cases import I16, each_of
from compare import arrays_of, assert_same_values, check_same
from sounds import encoded, ffmpeg_file, is_tone, sound
from waiting import let_read_on

import ndd

REGISTRY_INPUTS = {
    "wav": (lambda rng, i, dtype: encoded(sound(200 + 50 * i, seed=i), 8000 * (1 + i)), None),
    "flac": (lambda rng, i, dtype: encoded(sound(200 + 50 * i, seed=i), format="FLAC", subtype="PCM_24"), None),
}
U8 = ("uint8",)
REGISTRY_CASES = {
    "decoders.audio": [
        *each_of({}, {"downmix": True, "sample_rate": 11025.0}, inputs=("wav",), dtypes=U8, relative=4e-6),
        *each_of({"dtype": I16, "downmix": True}, {"sample_rate": 12000.0, "dtype": I16}, inputs=("flac",), dtypes=U8),
    ]
}


@pytest.mark.parametrize(
    "kind",
    ["WAV PCM_U8", "WAV PCM_16", "WAV PCM_24", "WAV PCM_32", "WAV ULAW", "FLAC PCM_S8", "FLAC PCM_24", "AIFF PCM_16"],
)
def test_integers(dali, kind):
    data = encoded(sound(50), 16000, *kind.split())
    for dtype in ("float32", "int16", "int32"):
        check_same(dali, lambda m: m.decoders.audio(m.tensor(data), dtype=getattr(m, dtype)), 0.0, dtype)
        for more in ({"downmix": True}, {"sample_rate": 8000.0}, {"sample_rate": 11025.5, "downmix": True}):
            check_same(dali, lambda m: m.decoders.audio(m.tensor(data), dtype=getattr(m, dtype), **more), 3e-6, more)


@pytest.mark.parametrize("kind", ["WAV FLOAT", "WAV DOUBLE", "OGG VORBIS", "OGG OPUS"])
def test_floats(dali, kind):
    data = encoded(sound(50), 16000, *kind.split())
    for more in ({}, {"downmix": True}, {"sample_rate": 8000.0}):
        check_same(dali, lambda m: m.decoders.audio(m.tensor(data), **more), 3e-6, more)
    check_same(dali, lambda m: m.decoders.audio(m.tensor(data), downmix=True, dtype=m.int16), 1e-9)
    exact = np.asarray(ndd.decoders.audio(ndd.tensor(data))[0])
    levels = np.asarray(ndd.decoders.audio(ndd.tensor(data), dtype=ndd.int16)[0])
    np.testing.assert_array_equal(levels, np.clip(np.rint(exact * np.float32(32767)), -32768, 32767).astype(np.int16))


def test_edges_and_errors(dali):
    data = encoded(sound(50))
    for odd in (
        encoded(sound(0)), encoded(sound(0, 1)), data[:100], data[:20], data[:0], np.arange(100, dtype=np.uint8),
        data.reshape(2, -1), data.view(np.int8),
    ):  # fmt: skip
        for more in ({}, {"downmix": True}, {"sample_rate": 8000.0}):
            check_same(dali, lambda m: m.decoders.audio(m.tensor(odd), **more), 3e-6, (odd.shape, more))
    for arguments in (
        {"dtype": "uint8"}, {"dtype": "float64"}, {"quality": -1.0, "sample_rate": 8000.0}, {"sample_rate": 16000.0},
    ):  # fmt: skip
        named = lambda m: {k: getattr(m, v) if k == "dtype" else v for k, v in arguments.items()}  # noqa: E731
        check_same(dali, lambda m: m.decoders.audio(m.tensor(data), **named(m)), 0.0, arguments)


def test_errors_name_the_file(tmp_path):
    (tmp_path / "good.wav").write_bytes(encoded(sound(50)).tobytes())
    (tmp_path / "bad.wav").write_bytes(b"no sound at all")
    files = ndd.io.file.read([tmp_path / "good.wav", tmp_path / "bad.wav"])
    with pytest.raises(RuntimeError, match=r"audio: sample 1 \(.*bad\.wav\): no sound can be read: Format not rec"):
        ndd.decoders.audio(files)[0].evaluate()


@pytest.mark.parametrize("kind", ["WAV PCM_16", "FLAC PCM_16", "OGG VORBIS"])
def test_parts(kind):
    data = [encoded(sound(8000 * (i + 2), seed=i), 8000, *kind.split()) for i in range(3)]
    whole = arrays_of(ndd.decoders.audio(ndd.batch(data))[0])
    starts, durations = [0.25, 1.0, 0.0], [0.5, 0.125, 99.0]
    parts, _ = ndd.decoders.audio(ndd.batch(data), start=ndd.batch(starts), duration=ndd.batch(durations))
    for result, all_of_it, start, duration in zip(arrays_of(parts), whole, starts, durations, strict=True):
        first = int(start * 8000)
        assert_same_values([result], [all_of_it[first : first + int(duration * 8000)]], 1e-6)
    assert ndd.decoders.audio(ndd.tensor(data[0]), start=2.0)[0].shape == (0, 2)
    for arguments in ({"start": 2.5}, {"start": -1.0}, {"duration": -1.0}):
        with pytest.raises(RuntimeError, match=f"audio: .*`{next(iter(arguments))}`"):
            ndd.decoders.audio(ndd.tensor(data[0]), **arguments)[0].evaluate()


@pytest.mark.parametrize(
    "kind",
    [
        "WAV PCM_24", "WAV DOUBLE", "FLAC PCM_24", "OGG VORBIS", "OGG OPUS", "MP3 MPEG_LAYER_III", "ipod aac", "mp3 libmp3lame",
    ],
)  # fmt: skip
@pytest.mark.drawn(2)
def test_parts_are_those_of_the_whole(kind):
    """Also in the last page of an Ogg file, in which libsndfile does not find its way, and where MPEG frames lean on others."""
    format, codec = kind.split()
    rate = 48000 if codec == "OPUS" else 16000
    data = encoded(sound(60000), rate, format, codec) if format.isupper() else ffmpeg_file(format, codec, rate)
    whole = np.asarray(ndd.decoders.audio(ndd.tensor(data))[0])
    starts = np.array([0.0, 1e-5, 0.3, 0.7, 1.2, 0.99 * len(whole) / rate], np.float32)
    starts = starts[starts < len(whole) / rate]
    parts, _ = ndd.decoders.audio(ndd.batch([data] * len(starts)), start=ndd.batch(list(starts)), duration=0.2)
    for start, part in zip(starts.astype(np.float64), arrays_of(parts), strict=True):
        first = int(start * rate)
        np.testing.assert_array_equal(part, whole[first : first + int(np.float32(0.2).astype(np.float64) * rate)])


@pytest.mark.parametrize("kind", ["WAV GSM610", "AU G721_32", "AIFF DWVW_16", "PAF PCM_24", "XI DPCM_16"])
def test_parts_of_files_in_which_libsndfile_cannot_seek(kind):
    data = encoded(sound(8000, 1), 8000, *kind.split())
    whole, _ = ndd.decoders.audio(ndd.tensor(data))
    part, rate = ndd.decoders.audio(ndd.tensor(data), start=0.1, duration=0.05)
    first = int(rate.item() * 0.1)
    np.testing.assert_array_equal(np.asarray(part), np.asarray(whole)[first : first + int(rate.item() * 0.05)])


def test_a_part_of_a_long_mapped_file_is_read_alone(tmp_path):
    rate = 16000
    long = np.arange(rate * 600, dtype=np.int16)  # 10 minutes, 19 MB
    soundfile.write(tmp_path / "long.wav", long, rate)
    mapped = ndd.as_tensor(np.memmap(tmp_path / "long.wav", np.uint8, "r"))

    def a_second():
        return np.asarray(ndd.decoders.audio(mapped, start=500.0, duration=1.0, dtype=ndd.int16, downmix=True)[0])

    a_second()  # what must be compiled takes memory too
    tracemalloc.start()
    result = a_second()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(result, long[500 * rate : 501 * rate])
    assert peak < 2e6


def test_bad_files_left_out_or_filled():
    good = [encoded(sound(n), 8000) for n in (30, 40)]
    files = ndd.batch([good[0], np.frombuffer(b"no sound at all", np.uint8), good[1]])
    samples, rates = ndd.decoders.audio(files, on_error="skip", downmix=True)
    assert samples.shape == [(30,), (40,)]
    assert rates.torch().tolist() == [8000, 8000]
    assert [(d.index, "Format not rec" in d.error) for d in samples.dropped] == [(1, True)]
    samples, rates = ndd.decoders.audio(files, on_error="fill")
    assert samples.shape == [(30, 2), (0, 1), (40, 2)]
    assert rates.torch().tolist() == [8000, 0, 8000]
    with pytest.raises(RuntimeError, match=r"sample 1.*no sound"):
        ndd.decoders.audio(files)[0].evaluate()
    with pytest.raises(RuntimeError, match="no sound"):  # one sample cannot be left out of itself
        ndd.decoders.audio(files.select(1), on_error="skip")[0].evaluate()


def test_a_loop_that_goes_to_the_gpu_is_decoded_ahead(tmp_path, emulated_gpu, monkeypatch):
    module = importlib.import_module("ndd.decoders.audio")
    began = []
    decode = module.decode_batch
    monkeypatch.setattr(module, "decode_batch", lambda *a: began.append(threading.current_thread().name) or decode(*a))
    signals = [sound(50 + i, seed=i) for i in range(12)]
    for i, signal in enumerate(signals):
        (tmp_path / f"{i:02}.wav").write_bytes(encoded(signal, 8000).tobytes())
    reader = ndd.readers.File(files=[str(tmp_path / f"{i:02}.wav") for i in range(12)])
    for _ in range(2):
        result = []
        for files, _ in reader.next_epoch(batch_size=2):
            samples, _ = ndd.decoders.audio(files, downmix=True, start=0.001)
            result += arrays_of((samples.gpu() * 2).cpu())
            let_read_on(reader)
        for signal, samples in zip(signals, result, strict=True):
            expected, _ = ndd.decoders.audio(ndd.tensor(encoded(signal, 8000)), downmix=True, start=0.001)
            np.testing.assert_array_equal(samples, np.asarray(expected) * 2)
    assert any(name.startswith("ndd-lookahead") for name in began)


@pytest.mark.parametrize("kind", ["FLAC PCM_16", "OGG VORBIS", "WAV PCM_24", "AIFF PCM_16"])
def test_files_that_are_cut_off(dali, kind):
    data = encoded(sound(30000), 16000, *kind.split())
    for share in (0.3, 0.99):
        check_same(dali, lambda m: m.decoders.audio(m.tensor(data[: int(len(data) * share)])), 1e-6, share)


@pytest.mark.parametrize("kind", ["WAV PCM_16", "AIFF PCM_16"])
def test_the_length_is_of_the_product_of_length_and_rate(dali, kind):
    """44100 samples of 44.1 kHz are 48000 of 48 kHz, though `44100 * (48000 / 44100)` is a little more."""
    data = encoded(np.zeros((44100, 1)), 44100, *kind.split())
    for more in ({}, {"dtype": "int16"}):
        named = lambda m: {k: getattr(m, v) for k, v in more.items()}  # noqa: E731
        check_same(dali, lambda m: m.decoders.audio(m.tensor(data), sample_rate=48000.0, **named(m)), 1e-6, more)


@pytest.mark.parametrize(("format", "codec"), [("mp4", "aac"), ("mp3", "libmp3lame"), ("webm", "libopus")])
def test_what_dali_refuses(format, codec):
    rate = 48000 if codec == "libopus" else 16000
    data = ffmpeg_file(format, codec, rate)
    samples, result = ndd.decoders.audio(ndd.tensor(data), downmix=True)
    assert result.item() == rate
    x = np.asarray(samples)
    assert abs(len(x) - rate) < 3000  # codecs add some silence
    assert abs(np.argmax(np.abs(np.fft.rfft(x))) * rate / len(x) - 440) < 2
    assert 0.45 < np.abs(x[2000:-3000]).max() < 0.6
    part, _ = ndd.decoders.audio(ndd.tensor(data), downmix=True, start=0.25, duration=0.5, sample_rate=8000.0)
    assert part.shape == (4000,)


PACKED = [
    ("adts", "aac", 16000), ("matroska", "aac", 16000), ("mpegts", "mp2", 16000), ("asf", "wmav2", 44100), ("ac3", "ac3", 48000),
    ("webm", "libopus", 48000), ("avi", "aac", 16000),
]  # fmt: skip


@pytest.mark.parametrize(("format", "codec", "rate"), PACKED)
@pytest.mark.drawn(1)
def test_what_ffmpeg_decodes_is_cut_off_or_has_a_bad_packet(format, codec, rate):
    """What is there is given: up to the cut, or but for some packets."""
    data = ffmpeg_file(format, codec, rate)
    whole = np.asarray(ndd.decoders.audio(ndd.tensor(data), downmix=True)[0])
    av, bad = pytest.importorskip("av"), data.copy()
    with av.open(io.BytesIO(data.tobytes())) as container:
        packets = [(packet.pos, packet.size) for packet in container.demux(audio=0) if packet.size]
    place, size = packets[len(packets) // 2]
    bad[place + size // 2 : place + size - 5] = np.random.default_rng(1).integers(0, 256, size - size // 2 - 5)
    for file, least in ((data[: len(data) * 3 // 4], 0.5), (data[:-1], 0.9), (bad, 1 - 2.1 / len(packets))):
        result, its_rate = ndd.decoders.audio(ndd.tensor(file), downmix=True)
        x = np.asarray(result)
        assert its_rate.item() == rate
        assert least * len(whole) <= len(x) <= len(whole)
        assert is_tone(x[2000:-2000], rate)
        resampled = ndd.decoders.audio(ndd.tensor(file), downmix=True, sample_rate=8000.0, start=0.1)[0]
        assert 0 <= resampled.shape[0] - (len(x) - 0.1 * rate) * 8000 / rate < 2


TINY = [
    b"", b"\xff", bytes(15), b"tBaK" + bytes(11), b"\xff\xf1\1\1" + bytes(11), b"#!AMR\n" + bytes(9), b"RIFF", b"fLaC" + bytes(40),
]  # fmt: skip


def header(rate=16000, channels=1, length=200, bits=16):
    """A WAV file of 100 frames whose header says this."""
    numbers = [
        (16, 4),
        (1, 2),
        (channels, 2),
        (rate, 4),
        (rate * channels * bits // 8 % 2**32, 4),
        (channels * bits // 8, 2),
    ]
    form = b"".join(n.to_bytes(size, "little") for n, size in [*numbers, (bits, 2)])
    body = b"WAVEfmt " + form + b"data" + length.to_bytes(4, "little") + bytes(200)
    return b"RIFF" + len(body).to_bytes(4, "little") + body


@pytest.mark.parametrize(
    "more", [{}, {"sample_rate": 16000.0}, {"sample_rate": 16000.0, "start": 1.0, "downmix": True}]
)
def test_tiny_files_and_headers_of_zeros(more):
    """An error for that sample alone, or no samples: none of these stops a batch."""
    good = encoded(sound(20000))
    odd = [
        *TINY, header(rate=0), header(channels=0), header(bits=0), header(rate=1), header(rate=2**32 - 1), header(length=0),
        header(length=2**32 - 1),
    ]  # fmt: skip
    files = ndd.batch([good, *(np.frombuffer(data, np.uint8) for data in odd)])
    samples, rates = ndd.decoders.audio(files, on_error="skip", **more)
    assert samples.shape[0][0] in (20000, 4000)
    assert len(samples.shape) + len(samples.dropped) == len(odd) + 1
    assert {dropped.index for dropped in samples.dropped} >= set(range(1, len(TINY) - 2))
    assert (rates.torch() > 0).all()


def test_a_rate_from_which_a_file_would_become_gigabytes():
    data = np.frombuffer(header(rate=1), np.uint8)
    with pytest.raises(RuntimeError, match="a sampling rate of 1 Hz, too low to resample to 16000 Hz"):
        ndd.decoders.audio(ndd.tensor(data), sample_rate=16000.0)[0].evaluate()
    assert ndd.decoders.audio(ndd.tensor(data), sample_rate=100.0)[0].shape == (10000, 1)


def test_files_that_take_longest_are_decoded_first(monkeypatch):
    """A file of few bytes that is resampled takes longer than a long one that is copied."""
    from ndd.decoders.sound import decode

    seen = []
    real = decode._group
    monkeypatch.setattr(
        decode, "_group", lambda kernel, which, *more: seen.append(which.tolist()) or real(kernel, which, *more)
    )
    files = [encoded(sound(20_000, 1)) for _ in range(6)] + [encoded(sound(8_000, 1), rate=8000)]
    samples, _ = ndd.decoders.audio(ndd.batch(files), downmix=True, sample_rate=16000)
    assert samples.evaluate().shape == [(20_000,)] * 6 + [(16_000,)]
    assert seen[0][0] == 6
    assert sorted(seen[0]) == list(range(7))


@pytest.mark.parametrize("kinds", [{}, {"downmix": True, "sample_rate": 11025.0}, {"dtype": ndd.int16}])
@pytest.mark.drawn(1)
def test_a_batch_of_all_kinds_is_one_task_for_each_thread(kinds, tasks):
    formats = ["WAV PCM_16", "FLAC PCM_24", "OGG VORBIS", "AIFF PCM_16", "WAV FLOAT", "FLAC PCM_16", "OGG VORBIS"]
    files = [encoded(sound(9000 + 100 * i, 1 + i % 2), 16000, *formats[i % 7].split()) for i in range(21)]
    expected = [arrays_of(ndd.decoders.audio(ndd.tensor(file), **kinds)[0])[0] for file in files]
    tasks.clear()
    ndd.set_num_threads(5)
    try:
        result = arrays_of(ndd.decoders.audio(ndd.batch(files), **kinds)[0])
    finally:
        ndd.set_num_threads(None)
    for mine, known in zip(result, expected, strict=True):
        np.testing.assert_array_equal(mine, known)
    assert 1 < max(tasks) <= 5
    assert len(tasks) <= 2  # what libsndfile is to read is opened before


def test_a_rate_for_which_there_is_no_memory_is_an_error():
    with pytest.raises(MemoryError, match="no room for"):
        ndd.decoders.audio(ndd.tensor(encoded(sound(100))), sample_rate=1e30)[0].evaluate()
