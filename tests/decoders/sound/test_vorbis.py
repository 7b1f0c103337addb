"""Our own decoder of Ogg files of Vorbis: DALI's samples to the last bit, and what it leaves to libsndfile."""

from __future__ import annotations

import functools
import io

import numpy as np
import pytest
import soundfile
from compare import arrays_of

import ndd
from ndd._compiled.sample_loops import _by_fallback
from ndd.decoders.sound import batch_kernels as sound_batch, decode as _sound_file, ogg, vorbis_files as _vorbis


def vorbis(samples, rate=16000, compression=0.6, format="OGG", subtype="VORBIS"):
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=format, subtype=subtype, compression_level=compression)
    return np.frombuffer(file.getvalue(), np.uint8)


def sound(n, channels, seed=0):
    """Tones that come and go, and noise: short and long blocks, silent ones, coupled channels."""
    rng, t = np.random.default_rng(seed), np.arange(n)[:, None]
    tones = 0.3 * np.sin(t * rng.uniform(0.001, 1, channels)) * (np.sin(t * 0.001) > 0)
    return tones + 0.1 * rng.standard_normal((n, channels)) * (rng.random((n, 1)) < 0.3)


def own(data, first=0, count=None, dtype: type = np.float32):
    """What our decoder makes of a file; None for what it leaves to libsndfile."""
    wanted = _sound_file.Wanted(np.dtype(dtype), False, 0.0, 50.0)
    rate = int.from_bytes(data[40:44].tobytes(), "little")
    duration = np.array([np.nan if count is None else (count + 0.5) / rate])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_sound_file, "_connected", lambda: False)
        files = _sound_file.Files(np.array([[data.ctypes.data, data.size]]), lambda _: data)
        start = np.array([(first + 0.5) / rate if first else 0.0])
        result = _sound_file.decode_batch(files, wanted, np.zeros(1), start, duration)
    return result.parts()[0]


def by_libsndfile(data):
    return soundfile.read(io.BytesIO(data.tobytes()), dtype="float32", always_2d=True)[0]


def pages(data):
    """Where the pages begin and end."""
    at = 0
    while at < len(data):
        body = at + 27 + int(data[at + 26])
        end = body + sum(data[at + 27 : body].tolist())
        yield at, end
        at = end


def with_checksums(data):
    """The file with right checksums, whatever was changed."""
    data = np.array(data)
    for begin, end in pages(data):
        data[begin + 22 : begin + 26] = np.frombuffer(ogg._crc(data, begin, end).to_bytes(4, "little"), np.uint8)
    return data


@pytest.mark.parametrize(("rate", "channels", "compression"), [
    (8000, 1, 0.0), (16000, 1, 0.6), (22050, 2, 1.0), (44100, 2, 0.3), (44100, 6, 0.6), (48000, 3, 0.0), (96000, 8, 0.9),
])  # fmt: skip
@pytest.mark.drawn(1)
def test_bit_for_bit_as_dali(dali, rate, channels, compression):
    for n in (1, 700, 20000):
        data = vorbis(sound(n, channels, n), rate, compression)
        expected = np.asarray(dali.decoders.audio(dali.tensor(data))[0].evaluate())
        np.testing.assert_array_equal(own(data), expected)
        levels = np.asarray(dali.decoders.audio(dali.tensor(data), dtype=dali.int16)[0].evaluate())
        np.testing.assert_array_equal(own(data, dtype=np.int16), levels)
        np.testing.assert_allclose(by_libsndfile(data), expected, rtol=0, atol=4e-7)


def test_parts_skip_what_is_before():
    data = vorbis(sound(30000, 2), 44100)
    whole = own(data)
    for first, count in ((0, 0), (0, 1), (1, 500), (4096, 3000), (29000, 1000), (29999, 1), (30000, 0)):
        np.testing.assert_array_equal(own(data, first, count), whole[first : first + count])


def test_tables_are_built_once_for_an_encoder():
    files = [vorbis(sound(3000, 1, i), 11025, 0.45) for i in range(3)]
    expected = [own(data) for data in files]
    before = _vorbis._setup.cache_info()
    others = [vorbis(sound(100, 1), format="FLAC", subtype="PCM_16"), vorbis(sound(3000, 2), 32000, 0.9)]
    result = arrays_of(ndd.decoders.audio(ndd.batch([*files, *others]))[0])
    after = _vorbis._setup.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (1, 3)
    for samples, known in zip(result, expected, strict=False):
        np.testing.assert_array_equal(samples, known)


def test_damage_is_left_to_libsndfile():
    data = vorbis(sound(9000, 1))
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(data), 60):
        damaged = data.copy()
        damaged[place] ^= 1 << rng.integers(8)
        assert own(damaged) is None, place
    for end in (*[end for _, end in pages(data)][:-1], len(data) - 1, 100, 57, 27, 4):
        assert own(data[:end]) is None
    assert own(data) is not None


def test_other_ogg_files_are_left_to_libsndfile():
    first, second = vorbis(sound(5000, 1)), vorbis(sound(4000, 1, 1))
    opus = vorbis(sound(5000, 1), subtype="OPUS")
    chained = np.concatenate([first, second])
    for data in (chained, opus):
        assert own(data) is None
        np.testing.assert_array_equal(np.asarray(ndd.decoders.audio(ndd.tensor(data))[0]), by_libsndfile(data))


def test_odd_headers_and_packets_give_what_libsndfile_gives():
    """Bits are changed and the checksums made right: what is decoded is what libsndfile gives, and nothing crashes."""
    rng, decoded = np.random.default_rng(0), 0
    for data in (vorbis(sound(4000, 1)), vorbis(sound(4000, 2), 44100, 0.3)):
        begin, end = list(pages(data))[1]
        for place in [
            *rng.integers(28, begin, 20),
            *rng.integers(begin + 27, end, 100),
            *rng.integers(end + 40, len(data), 60),
        ]:
            changed = data.copy()
            changed[place] ^= 1 << rng.integers(8)
            try:
                changed = with_checksums(changed)
            except IndexError:  # it is no file of pages any more
                continue
            result = own(changed)
            if result is not None:
                expected, decoded = by_libsndfile(changed), decoded + 1
                np.testing.assert_allclose(result, expected, rtol=1e-4, atol=2e-5 * max(1, np.abs(expected).max()))
    assert decoded > 50


def test_libsndfile_decodes_while_the_kernels_are_compiled(monkeypatch):
    data = ndd.tensor(vorbis(sound(20000, 2)))
    expected = np.asarray(ndd.decoders.audio(data)[0])

    def not_yet(*arguments):
        raise _vorbis.NotReadyError

    loops = _sound_file, "loop_over_samples", lambda item: functools.partial(_by_fallback, item)
    headers = sound_batch, "vorbis_headers", sound_batch.vorbis_headers._fallback
    for room, name, fallback in [(_vorbis, "read_setup", not_yet), headers, loops]:
        with monkeypatch.context() as patch:
            patch.setattr(room, name, fallback)
            _vorbis._setup.cache_clear()
            result = np.asarray(ndd.decoders.audio(data)[0])
            np.testing.assert_allclose(result, expected, atol=1e-6)
            assert (result != expected).any()  # it was libsndfile
        np.testing.assert_array_equal(np.asarray(ndd.decoders.audio(data)[0]), expected)  # and is not for ever
