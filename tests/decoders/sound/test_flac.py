"""Our decoder of FLAC: libsndfile's samples to the last bit; what it leaves to libsndfile, and files that are cut off."""

import io

import numpy as np
import pytest
import soundfile
from compare import check_same
from sounds import encoded, sound

import ndd


def test_a_header_that_claims_days_takes_little_memory(monkeypatch):
    from ndd.decoders.sound import decode as _sound_file

    sizes = []
    host_empty = _sound_file.host_empty
    monkeypatch.setattr(_sound_file, "host_empty", lambda *a: sizes.append(a[0]) or host_empty(*a))
    data = bytearray(encoded(sound(3000), format="FLAC").tobytes())
    data[21] |= 0x0F  # the upper bits of the number of samples: 64 billion
    with pytest.raises(RuntimeError, match=r"cut off: expected 644.* samples, got 3000"):
        ndd.decoders.audio(ndd.tensor(np.frombuffer(bytes(data), np.uint8)))[0].evaluate()
    assert max(np.max(n) for n in sizes) <= _sound_file._BLOCK


def flac_signals(n):
    """Signals for which encoders take all kinds of subframes: predicted ones, constant ones, plain numbers, half of a sum."""
    rng, tones = np.random.default_rng(n), 0.5 * np.sin(np.arange(n)[:, None] * [0.01, 0.3])
    yield tones
    yield tones[:, :1]
    yield tones[:, :1] + 1e-3 * rng.standard_normal((n, 2))
    yield rng.uniform(-1, 1, (n, 8))
    yield rng.choice([-1.0, 1.0], (n, 1))
    yield np.zeros((n, 2))


def by_own_decoder(data, count=None):
    """What `decoders/sound/flac.py` makes of a file, int32 of full scale; None for what it leaves to libsndfile."""
    from ndd.decoders.sound import decode as _sound_file

    connected = _sound_file._connected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_sound_file, "_connected", lambda: False)
        wanted = _sound_file.Wanted(np.dtype(np.int32), False, 0.0, 50.0)
        duration = np.array([np.nan if count is None else (count + 0.5) / 16000])
        none, places = np.zeros(1), np.array([[data.ctypes.data, data.size]])
        files = _sound_file.Files(places, lambda _: data)
        result = _sound_file.decode_batch(files, wanted, none, none, duration)
    assert connected()
    return result.parts()[0]


@pytest.mark.parametrize("subtype", ["PCM_S8", "PCM_16", "PCM_24"])
def test_flac_frames_bit_for_bit(subtype):
    for n in (1, 17, 9000):
        for x in flac_signals(n):
            data = encoded(x, format="FLAC", subtype=subtype)
            expected, _ = soundfile.read(io.BytesIO(data.tobytes()), dtype="int32", always_2d=True)
            for count in (n, n // 2):
                np.testing.assert_array_equal(by_own_decoder(data, count), expected[:count])


@pytest.mark.parametrize("order", [4, 8, 12, 13, 32])
def test_flac_with_many_coefficients(order):
    """libFLAC takes up to 12; those up to 4, 8 and 12 are applied in ways of their own."""
    av = pytest.importorskip("av")
    rng, file, n = np.random.default_rng(order), io.BytesIO(), 6000
    numbers = 8000 * np.sin(np.cumsum(rng.random((2, n)), axis=1)) + 99 * rng.standard_normal((2, n))
    options = {"min_prediction_order": str(order), "max_prediction_order": str(order), "lpc_type": "cholesky"}
    with av.open(file, "w", format="flac") as container:
        stream = container.add_stream("flac", rate=16000, layout="stereo", options=options)
        stream.format = "s16"
        frame = av.AudioFrame.from_ndarray(numbers.astype(np.int16).T.reshape(1, -1), format="s16", layout="stereo")
        frame.sample_rate = 16000
        container.mux([*stream.encode(frame), *stream.encode(None)])
    data = np.frombuffer(file.getvalue(), np.uint8)
    expected, _ = soundfile.read(io.BytesIO(data.tobytes()), dtype="int32", always_2d=True)
    np.testing.assert_array_equal(by_own_decoder(data), expected)


def test_damaged_flac_is_left_to_libsndfile():
    data = encoded(sound(9000, 1), format="FLAC", subtype="PCM_16")
    rng, whole = np.random.default_rng(0), by_own_decoder(data)
    for place in rng.integers(8300, len(data), 60):  # behind the headers, with 8 kB of padding
        damaged = data.copy()
        damaged[place] ^= 1 << rng.integers(8)
        assert by_own_decoder(damaged) is None, place
    for end in (len(data) - 1, 5000, 43, 42, 10, 0):
        assert by_own_decoder(data[:end]) is None
    np.testing.assert_array_equal(whole, soundfile.read(io.BytesIO(data.tobytes()), dtype="int32")[0][:, None])


def test_flac_cut_off_between_blocks(dali):
    data = encoded(sound(9000), format="FLAC")
    blocks = [i for i in range(42, len(data) - 4) if data[i] == 0xFF and data[i + 1] & 0xFE == 0xF8 and data[i + 4] < 3]
    assert len(blocks) == 3
    for end in (42, *blocks):
        check_same(dali, lambda m, end=end: m.decoders.audio(m.tensor(data[:end])), 0.0, end)
    live = data.copy()
    live[21] &= 0xF0
    live[22:26] = 0  # no length, as a stream has it
    assert ndd.decoders.audio(ndd.tensor(live))[0].shape == (9000, 2)
