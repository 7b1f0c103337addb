"""`readers.NemoAsr`: manifests, parts, durations, resampling; against DALI."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
import soundfile

import ndd


@pytest.fixture(scope="module")
def speech(tmp_path_factory):
    """Five recordings, some of two channels, of different rates."""
    folder = tmp_path_factory.mktemp("speech")
    for i in range(5):
        x = np.random.default_rng(i).uniform(-0.9, 0.9, (1600 * (i + 1), 1 + i % 2))
        soundfile.write(folder / f"{i}.wav", x, 8000 * (1 + i % 2), subtype="PCM_16")
    return folder


def manifest(folder, *entries, name="all.json", texts=()):
    lines = [json.dumps({"audio_filepath": str(folder / f"{i}.wav"), **more}) for i, more in enumerate(entries)]
    (folder / name).write_text("\n".join([*lines, *texts]) + "\n")
    return str(folder / name)


PLAIN = [{"duration": 0.2 * (i + 1) / (1 + i % 2), "text": f"number {i} ü"} for i in range(5)]


def values(reader, count):
    epoch = reader.next_epoch()
    result = [tuple(np.asarray(v) for v in sample) for sample, _ in zip(epoch, range(count), strict=False)]
    getattr(reader, "reset", lambda: None)()
    return result


def compare(dali, count, tolerance=4e-6, **arguments):
    package = {k: v for k, v in arguments.items() if k != "dtype"}
    ours, theirs = (
        values(m.readers.NemoAsr(**package, dtype=getattr(m, arguments.get("dtype", "float32"))), count)
        for m in (ndd, dali)
    )
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert [(v.dtype, v.shape) for v in a] == [(v.dtype, v.shape) for v in b]
        for x, y in zip(a, b, strict=True):
            wide = 1 if x.dtype == np.int16 else tolerance * (2**31 if x.dtype == np.int32 else 1)
            np.testing.assert_allclose(x.astype(np.float64), y.astype(np.float64), atol=wide)


def test_against_dali(dali, speech):
    path = manifest(speech, *PLAIN)
    compare(dali, 5, manifest_filepaths=path, read_idxs=True)
    compare(dali, 5, manifest_filepaths=path, read_text=False, read_sample_rate=False, dtype="int16")
    compare(dali, 5, manifest_filepaths=path, sample_rate=11025.0, quality=20.0)
    compare(dali, 4, manifest_filepaths=path, min_duration=0.25, read_idxs=True)
    compare(dali, 3, manifest_filepaths=[path, path], max_duration=0.5, read_idxs=True, dtype="int32")


def test_a_type_as_pipelines_name_it(dali, speech):
    """`types.INT16` and what else names an element type; in a pipeline as in DALI's."""
    import nvidia.dali

    path, result = manifest(speech, *PLAIN, name="named.json"), []
    for library, functions in ((nvidia.dali, nvidia.dali.fn), (ndd, ndd.fn)):

        @library.pipeline_def(batch_size=3, num_threads=1, device_id=None)
        def body(library=library, functions=functions):
            options = {"manifest_filepaths": [path], "dtype": library.types.INT16, "downmix": False}
            return functions.readers.nemo_asr(**options, read_sample_rate=False, read_text=False)

        pipe = body()
        pipe.build()
        result.append([np.array(sample) for sample in pipe.run()[0]])
    for theirs, ours in zip(*result, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(ours.astype(int), theirs, atol=1)
    for named in ("i16", np.int16, ndd.int16):
        assert ndd.readers.NemoAsr(manifest_filepaths=path, dtype=named)[0][0].dtype == ndd.int16
    with pytest.raises(RuntimeError, match=r"Unsupported output type: u8\. Expected one of f32, i16, i32"):
        ndd.readers.NemoAsr(manifest_filepaths=path, dtype=ndd.types.UINT8)[0]


def test_parts(dali, speech):
    parts = [
        {"offset": 0.05, "duration": 0.10006}, {"offset": 0.05}, {"duration": 0.09999}, {"duration": 0.0, "text": "x"},
        {"duration": -1.0, "offset": 0.5},
    ]  # fmt: skip
    compare(dali, 5, manifest_filepaths=manifest(speech, *parts, name="parts.json"), read_idxs=True)


def test_channels_stay_apart(dali, speech):
    """Also of files with one, so that a batch may hold both."""
    options = {"manifest_filepaths": manifest(speech, *PLAIN), "downmix": False, "read_text": False}
    reader = ndd.readers.NemoAsr(**options)
    assert [v[0].shape for v in values(reader, 5)] == [(1600, 1), (3200, 2), (4800, 1), (6400, 2), (8000, 1)]
    compare(dali, 5, **options)


def test_lines_that_cannot_be_read_are_left_out(speech):
    bad = ["{broken", '{"text": "no path"}', "[]", "", '{"audio_filepath": "a.wav", "text": 5}']
    bad += ['{"audio_filepath": "a.wav", "duration": "long"}', '{"audio_filepath": "a.wav", "offset": NaN}']
    bad += ['{"audio_filepath": "a.wav", "duration": %s}' % ("9" * 400)]
    reader = ndd.readers.NemoAsr(manifest_filepaths=manifest(speech, *PLAIN, name="bad.json", texts=bad))
    with pytest.warns(UserWarning, match=r"7 lines are left out"):
        assert len(reader) == 5
    none = manifest(speech, name="none.json", texts=bad)
    with pytest.warns(UserWarning, match=r"left out"), pytest.raises(RuntimeError, match=r"No files found"):
        len(ndd.readers.NemoAsr(manifest_filepaths=none))


def test_a_mark_of_the_encoding_is_no_text(speech):
    line = json.dumps({"audio_filepath": str(speech / "0.wav")})
    (speech / "marked.json").write_text(line, encoding="utf-8-sig")
    assert len(ndd.readers.NemoAsr(manifest_filepaths=speech / "marked.json")) == 1


def test_paths_relative_to_the_manifest(speech, tmp_path, monkeypatch):
    (speech / "relative.json").write_text('{"audio_filepath": "0.wav"}\n{"audio_filepath": "1.wav"}')
    monkeypatch.chdir(tmp_path)
    assert values(ndd.readers.NemoAsr(manifest_filepaths=speech / "relative.json"), 2)[0][0].shape == (1600,)
    monkeypatch.chdir(speech)
    assert values(ndd.readers.NemoAsr(manifest_filepaths="relative.json"), 2)[0][0].shape == (1600,)


def test_bad_recordings(speech, tmp_path):
    (tmp_path / "noise.wav").write_bytes(b"no sound")
    path = tmp_path / "some.json"
    names = [str(speech / "0.wav"), str(tmp_path / "noise.wav"), str(tmp_path / "none.wav"), str(speech / "1.wav")]
    path.write_text("\n".join(json.dumps({"audio_filepath": n, "offset": 0.001}) for n in names))
    with pytest.raises(RuntimeError, match=r"noise\.wav.*no sound can be read"):
        values(ndd.readers.NemoAsr(manifest_filepaths=path), 4)
    reader = ndd.readers.NemoAsr(manifest_filepaths=path, on_error="skip")
    with pytest.warns(UserWarning, match=r"left out"):
        assert len(list(reader.next_epoch(last_batch="partial"))) == 2
    assert [os.path.basename(s.source) for s in reader.skipped] == ["noise.wav", "none.wav"]


def test_a_part_of_a_large_file_is_read_where_it_lies(speech, tmp_path, monkeypatch):
    from ndd.readers import nemo_asr

    monkeypatch.setattr(nemo_asr, "_LARGE", 100)
    monkeypatch.setattr(nemo_asr, "read_files", lambda paths: pytest.fail("read whole"))
    reader = ndd.readers.NemoAsr(
        manifest_filepaths=manifest(speech, {"offset": 0.1, "duration": 0.05}, name="one.json")
    )
    expected = soundfile.read(speech / "0.wav", dtype="float32")[0][800:1200]
    np.testing.assert_array_equal(np.asarray(reader[0][0]), expected)


@pytest.mark.parametrize("dtype", ["int16", np.int16, ndd.types.INT16, ndd.int16])
def test_an_element_type_may_be_anything_that_means_it(speech, dtype):
    """In a pipeline it is one of `types`."""
    path = manifest(speech, *PLAIN)

    @ndd.pipeline.pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipeline():
        return ndd.fn.readers.nemo_asr(manifest_filepaths=[path], dtype=dtype, read_text=False, read_sample_rate=False)

    (result,) = pipeline().run()
    expected, _ = soundfile.read(speech / "0.wav", dtype="int16")
    np.testing.assert_array_equal(np.array(result.at(0)), expected)


def test_an_element_type_that_is_none(speech):
    with pytest.raises((TypeError, ValueError), match="NemoAsr: dtype"):
        ndd.readers.NemoAsr(manifest_filepaths=manifest(speech, *PLAIN), dtype="speech")
