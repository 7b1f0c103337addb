"""The readers of videos: what sequences hold, where they come from, and DALI's own reader beside them."""

import gc
import os
import threading
from contextlib import ExitStack

import numpy as np
import nvdec
import pytest
from videos import REAL, damaged, encoded, numbered, numbers_of, timed, write
from waiting import wait_until

import ndd
from ndd.decoders.video.file import VideoFile
from ndd.decoders.video.open_files import OpenVideos

av = pytest.importorskip("av")
Sequences = ndd.experimental.readers.Video


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two classes with two videos each, of 20, 9, 20 and 9 frames at 10 a second."""
    root = tmp_path_factory.mktemp("videos")
    for name in ("cat", "dog"):
        (root / name).mkdir()
        write(root / name / "a.mp4", 20)
        write(root / name / "b.webm", 9, codec="libvpx")
    return root


def epoch(reader):
    return [[np.asarray(part) for part in parts] for parts in reader.next_epoch()]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"sequence_length": 8}, [list(range(8)), list(range(8, 16))]),
        ({"sequence_length": 4, "stride": 3}, [[0, 3, 6, 9]]),
        ({"sequence_length": 3, "step": 8}, [[0, 1, 2], [8, 9, 10], [16, 17, 18]]),
        ({"sequence_length": 12, "step": 4}, [list(range(s, s + 12)) for s in (0, 4, 8)]),
    ],
)
@pytest.mark.drawn(1)
def test_sequences(folder, how, expected):
    reader = ndd.readers.Video(
        filenames=str(folder / "cat" / "a.mp4"), enable_frame_num="sequence", enable_timestamps=True, **how
    )
    result = epoch(reader)
    assert [numbers_of(frames) for frames, _, _ in result] == expected
    assert [numbers.tolist() for _, numbers, _ in result] == expected
    np.testing.assert_allclose([times for _, _, times in result], np.array(expected) / 10)


def test_a_call_gives_the_only_output_alone(folder):
    reader = ndd.readers.Video(filenames=str(folder / "cat" / "a.mp4"), sequence_length=4)
    assert numbers_of(reader()) == [0, 1, 2, 3]
    reader = Sequences(filenames=str(folder / "cat" / "a.mp4"), sequence_length=4)
    assert [numbers_of(item) for item in reader(batch_size=2).tensors] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_folders_are_labels_and_what_is_no_video_is_left_out(folder):
    (folder / "dog" / "notes.txt").write_text("no video")
    reader = ndd.readers.Video(file_root=folder, sequence_length=9)
    with pytest.warns(UserWarning, match=r"1 files are skipped.*notes.txt"):
        result = epoch(reader)
    assert [(numbers_of(f)[0], label.tolist()) for f, label in result] == [
        (0, [0]), (9, [0]), (0, [0]), (0, [1]), (9, [1]), (0, [1]),
    ]  # fmt: skip
    (folder / "dog" / "notes.txt").unlink()


def test_padded_sequences(folder):
    reader = ndd.readers.Video(
        filenames=str(folder / "cat" / "b.webm"), sequence_length=6, pad_sequences=True, enable_frame_num="sequence",
        enable_timestamps=True,
    )  # fmt: skip
    frames, numbers, times = epoch(reader)[1]
    assert numbers.tolist() == [6, 7, 8, -1, -1, -1]
    assert times[3:].tolist() == [-1.0] * 3
    assert numbers_of(frames[:3]) == [6, 7, 8]
    assert not frames[3:].any()


@pytest.mark.parametrize(
    ("line", "how", "expected"),
    [
        ("0.5 1.0", {}, [5, 9]),
        ("0.5 1.0", {"file_list_include_preceding_frame": True}, [5, 9]),
        ("0.55 1.05", {}, [6, 9]),
        ("0.55 1.05", {"file_list_include_preceding_frame": True}, [5, 10]),
        ("0.5", {}, [5, 19]),
        ("3 -2", {"file_list_frame_num": True}, [3, 17]),
        ("3.2 7.8", {"file_list_frame_num": True}, [4, 6]),
        ("3 99", {"file_list_frame_num": True}, [3, 19]),
        ("-1e400 1e400", {"file_list_frame_num": True}, [0, 19]),
        ("", {}, [0, 19]),
    ],
)
def test_a_list_names_parts_of_videos(folder, tmp_path, line, how, expected):
    listed = tmp_path / "list.txt"
    listed.write_text(f"{folder / 'cat' / 'a.mp4'} 7 {line}\n\n")
    result = epoch(ndd.readers.Video(file_list=listed, sequence_length=1, enable_frame_num="scalar", **how))
    numbers = [int(first[0]) for _, _, first in result]
    assert numbers == list(range(expected[0], expected[1] + 1))
    assert all(label.tolist() == [7] for _, label, _ in result)


def test_a_reader_of_nothing_ends_in_silence(monkeypatch):
    said = []
    monkeypatch.setattr("sys.unraisablehook", said.append)
    with pytest.raises(RuntimeError, match="exactly one of"):
        len(ndd.readers.Video(sequence_length=1))
    gc.collect()
    assert not said


def test_parts_of_a_video_with_a_variable_frame_rate_go_by_time(tmp_path):
    path = tmp_path / "variable.mkv"
    path.write_bytes(timed(numbered(8), [0, 40, 80, 500, 540, 2000, 2040, 2080]).tobytes())
    (tmp_path / "list.txt").write_text("variable.mkv 0 0.5 2.04\n")
    result = epoch(Sequences(file_list=tmp_path / "list.txt", sequence_length=1, enable_timestamps=True))
    assert [numbers_of(frames)[0] for frames, _, _ in result] == [3, 4, 5]
    assert [round(float(times[0]), 3) for _, _, times in result] == [0.5, 0.54, 2.0]


@pytest.mark.oracle
def test_timestamps_count_from_the_first_frame_and_lists_from_zero(dali, tmp_path):
    path = tmp_path / "late.mkv"
    path.write_bytes(timed(numbered(8), [170, 297, 399, 453, 515, 524, 539, 543], codec="libvpx").tobytes())
    (tmp_path / "list.txt").write_text(f"{path} 0 0.3 0.53\n")
    how = {"file_list": str(tmp_path / "list.txt"), "sequence_length": 1, "enable_timestamps": True}
    ours, theirs = (
        [
            np.asarray(batch[2].tensors[0]).item()
            for batch in kind.experimental.readers.Video(**how).next_epoch(batch_size=1)
        ]
        for kind in (ndd, dali)
    )
    np.testing.assert_allclose(ours, theirs)
    np.testing.assert_allclose(ours, [0.127, 0.229, 0.283, 0.345, 0.354])


@pytest.mark.parametrize("line", ["clip.mp4", "clip.mp4 x", "clip.mp4 -1"])
def test_malformed_lines_are_errors(tmp_path, line):
    (tmp_path / "list.txt").write_text(line + "\n")
    with pytest.raises(RuntimeError, match=r'line 1 of ".*list.txt"'):
        len(ndd.readers.Video(file_list=tmp_path / "list.txt", sequence_length=1))


def test_sources_that_make_no_sense_are_errors(folder, tmp_path):
    path = str(folder / "cat" / "a.mp4")
    for how, said in [
        ({}, "exactly one of"), ({"filenames": path, "file_root": folder}, "exactly one of"),
        ({"filenames": path, "labels": [1, 2]}, "a label for each file"), ({"file_root": folder, "labels": 1}, "`labels`"),
        ({"filenames": path, "channels": 1}, "channels"), ({"filenames": path, "stride": 0}, "stride"),
        ({"filenames": path, "image_type": ndd.types.GRAY}, "image_type"),
        ({"filenames": str(tmp_path / "none.mp4")}, "none.mp4"),
    ]:  # fmt: skip
        with pytest.raises(RuntimeError, match=said):
            len(ndd.readers.Video(sequence_length=4, **how))
    with pytest.raises(RuntimeError, match="No files found"):
        len(ndd.readers.Video(filenames=path, sequence_length=400))
    with pytest.raises(RuntimeError, match="dtype=f32"):
        ndd.readers.Video(filenames=path, sequence_length=4, normalized=True)


def test_floats_and_fractions(folder):
    path = str(folder / "cat" / "a.mp4")
    whole = epoch(ndd.readers.Video(filenames=path, sequence_length=5))[1][0]
    floats = epoch(ndd.readers.Video(filenames=path, sequence_length=5, dtype=ndd.float32))[1][0]
    parts = epoch(ndd.readers.Video(filenames=path, sequence_length=5, dtype=ndd.float32, normalized=True))[1][0]
    assert floats.dtype == parts.dtype == np.float32
    np.testing.assert_array_equal(floats, whole)
    np.testing.assert_allclose(parts, whole / np.float32(255), rtol=1e-6)


def test_ycbcr_is_what_the_stream_has(folder):
    path = str(folder / "cat" / "a.mp4")
    stream = epoch(ndd.readers.Video(filenames=path, sequence_length=5, image_type=ndd.types.YCbCr))[0][0].astype(float)
    red_green_blue = epoch(ndd.readers.Video(filenames=path, sequence_length=5))[0][0]
    luma = 16 + (red_green_blue @ [0.299, 0.587, 0.114]) * 219 / 255
    assert np.abs(stream[..., 0] - luma).mean() < 1
    assert np.abs(stream[..., 1:] - 128).max() <= 2, "gray has no colour"


def test_resized_sequences_are_those_of_resize(folder):
    path = str(folder / "cat" / "a.mp4")
    how = {"resize_shorter": 20, "interp_type": ndd.types.INTERP_NN}
    frames = next(ndd.readers.Video(filenames=path, sequence_length=3).next_epoch(batch_size=2))[0]
    resized = next(ndd.readers.VideoResize(filenames=path, sequence_length=3, **how).next_epoch(batch_size=2))[0]
    expected = ndd.resize(frames, **how)
    assert [s.shape for s in resized] == [(3, 20, 30, 3)] * 2
    for first, second in zip(resized.tensors, expected.tensors, strict=True):
        np.testing.assert_array_equal(np.asarray(first), np.asarray(second))


@pytest.mark.oracle
@pytest.mark.parametrize(
    "how",
    [
        {"sequence_length": 4, "stride": 3, "enable_frame_num": "sequence", "enable_timestamps": True},
        {"sequence_length": 24, "pad_mode": "reflect_1001", "enable_frame_num": "sequence"},
        {"sequence_length": 24, "pad_mode": "constant", "fill_value": [1, 2, 3], "enable_timestamps": True},
        {"sequence_length": 7, "uniform_sample": True, "enable_frame_num": "sequence"},
        {"sequence_length": 4, "step": 9, "labels": [3], "enable_frame_num": "scalar"},
        {"sequence_length": 2, "stride": 7, "step": 1, "enable_frame_num": "scalar"},
        {"sequence_length": 7, "stride": 3, "step": 5, "pad_mode": "reflect", "enable_frame_num": "sequence"},
        {"sequence_length": 9, "pad_mode": "symmetric", "part": "31 35", "enable_frame_num": "sequence"},
        {"sequence_length": 4, "random_shuffle": True, "seed": 3, "initial_fill": 5, "enable_frame_num": "scalar"},
    ],
    ids=str,
)
@pytest.mark.drawn(1)
def test_against_dali(dali, how, tmp_path):
    path = next((str(p) for p in REAL if p.name == "vp8_cfr_nasa_320x180.webm"), None)
    if path is None:
        pytest.skip("needs the real videos")
    how = dict(how)
    if "part" in how:
        (tmp_path / "list.txt").write_text(f"{path} 5 {how.pop('part')}\n")
        how |= {"file_list": str(tmp_path / "list.txt"), "file_list_format": "frames"}
    else:
        how["filenames"] = [path]
    sides = [kind.experimental.readers.Video(**how) for kind in (ndd, dali)]
    assert sides[0].get_metadata() == sides[1].get_metadata()
    for _, *batches in zip(range(3), *(side.next_epoch(batch_size=1) for side in sides), strict=False):
        for first, second in zip(*batches, strict=True):
            ours, theirs = (np.asarray(side.tensors[0]) for side in (first, second))
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
            assert np.abs(ours.astype(float) - theirs).max() <= (1 if ours.ndim == 4 else 1e-9)


@pytest.mark.parametrize("rounding", ["start_down_end_up", "start_up_end_down", "all_up", "all_down"])
def test_rounding_of_moments(folder, tmp_path, rounding):
    (tmp_path / "list.txt").write_text(f"{folder / 'cat' / 'a.mp4'} 0 0.41 0.77\n")
    reader = Sequences(
        file_list=tmp_path / "list.txt", sequence_length=1, enable_frame_num="scalar", file_list_rounding=rounding
    )
    first = 5 if rounding in ("start_up_end_down", "all_up") else 4
    last = 7 if rounding in ("start_down_end_up", "all_up") else 6
    assert [int(number[0]) for _, _, number in epoch(reader)] == list(range(first, last + 1))


@pytest.mark.parametrize("ending", ["webm", "avi"])
def test_moments_are_cut_off_to_ticks_as_in_dali(dali, tmp_path, ending):
    """Ticks of 1 ms in webm; in avi there is one for each frame, so that "up" means no more than "down"."""
    path = write(tmp_path / f"a.{ending}", 20, codec="libvpx-vp9")
    for part in ("0.3 1.3", "0.6 1.25", "0.265 0.9", "0.9 1.001"):
        (tmp_path / "list.txt").write_text(f"{path} 0 {part}\n")
        for rounding in ("all_up", "all_down"):
            how = {"sequence_length": 2, "step": 1, "enable_frame_num": "scalar", "file_list_rounding": rounding}
            sides = [
                [
                    int(np.asarray(number.tensors[0])[0])
                    for _, _, number in package.experimental.readers.Video(
                        file_list=str(tmp_path / "list.txt"), **how
                    ).next_epoch(batch_size=1)
                ]
                for package in (ndd, dali)
            ]
            assert sides[0] == sides[1], (part, rounding)


def test_a_broken_file_is_named_or_left_out(folder, tmp_path):
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(encoded(20)[:400].tobytes())
    files = [str(folder / "cat" / "a.mp4"), str(bad)]
    with pytest.raises(RuntimeError, match=r"bad.mp4: expected a video"):
        len(ndd.readers.Video(filenames=files, sequence_length=4))
    with pytest.warns(UserWarning, match="bad.mp4"):
        assert len(ndd.readers.Video(filenames=files, sequence_length=4, on_error="skip")) == 5


def test_threads_share_a_decoder_that_passes_by(folder):
    """A thread that wants later frames waits for the decoder that is on its way there."""
    from ndd.decoders.video.index import scan

    path = str(folder / "cat" / "a.mp4")
    index = {**scan(path), "keys": np.array([0])}
    videos, seen = OpenVideos(1, str), []

    def second():
        with videos.using(path, index, 8, 11) as file:
            seen.append(file)

    with videos.using(path, index, 0, 5) as file:
        file.expect([5])
        file.write(5, [np.empty((32, 48, 3), np.uint8)])
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.1)
        assert thread.is_alive()
    thread.join()
    assert seen == [file]
    videos.close()


def test_a_decoder_that_would_stop_far_before_is_not_waited_for(folder):
    from ndd.decoders.video.index import scan

    path = str(folder / "cat" / "a.mp4")
    index = {**scan(path), "keys": np.array([0])}
    videos = OpenVideos(1, str)
    with videos.using(path, index, 0, 5) as file, videos.using(path, index, 12, 15) as other:
        assert other is not file
    videos.close()


def test_as_many_videos_stay_open_as_were_in_use_at_the_same_time(folder):
    from ndd.decoders.video.index import scan

    index, opened = scan(str(folder / "cat" / "a.mp4")), []
    videos = OpenVideos(1, lambda name: opened.append(name) or str(folder / "cat" / "a.mp4"))

    def use(names):
        with ExitStack() as stack:
            for name in names:
                stack.enter_context(videos.using(name, index, 0, 1))

    twenty, sixteen = [f"{k}" for k in range(20)], [f"more {k}" for k in range(16)]
    use(sixteen)
    for name in twenty:
        use([name])
    del opened[:]
    use(sixteen)
    assert opened == sixteen, "sixteen are kept"
    for _ in range(3):
        use(twenty)
    assert opened == [*sixteen, *twenty]
    videos.close()


def test_a_video_in_use_is_closed_when_it_no_longer_is(folder):
    from ndd.decoders.video.index import scan

    path = str(folder / "cat" / "a.mp4")
    videos, index = OpenVideos(1, str), scan(path)
    for _ in range(2):  # and what is closed opens again
        with videos.using(path, index, 0, 1) as file:
            videos.close()
            file.write(0, [np.empty((32, 48, 3), np.uint8)])
            assert file._decoder is not None
        assert file._decoder is None


def test_overlapping_sequences_decode_each_frame_once(folder, monkeypatch):
    from ndd.decoders.video import file as _video_file

    written = []
    plain = _video_file.write_rgb
    monkeypatch.setattr(_video_file, "write_rgb", lambda frame, *rest: (written.append(frame.pts), plain(frame, *rest)))
    reader = ndd.readers.Video(filenames=str(folder / "cat" / "a.mp4"), sequence_length=8, step=2)
    result = reader.fetch(list(range(7)))[0]
    assert numbers_of(result.tensors[6]) == list(range(12, 20))
    assert len(written) == len(set(written)) == 20


def test_videos_go_into_operators_frame_by_frame(folder):
    frames = next(
        ndd.readers.Video(filenames=str(folder / "cat" / "a.mp4"), sequence_length=4).next_epoch(batch_size=2)
    )[0]
    turned = ndd.sequence_rearrange(frames, new_order=[3, 2, 1, 0])
    assert [numbers_of(sample) for sample in turned.tensors] == [[3, 2, 1, 0], [7, 6, 5, 4]]
    first, last = ndd.element_extract(frames, element_map=[0, 3])
    assert first.layout == "HWC"
    assert [numbers_of([np.asarray(one), np.asarray(two)]) for one, two in zip(first.tensors, last.tensors, strict=True)] == [
        [0, 3], [4, 7],
    ]  # fmt: skip
    turned = ndd.rotate(frames, angle=ndd.per_frame(ndd.batch([[0, 180, 0, 180]] * 2)), interp_type=ndd.types.INTERP_NN)
    whole, turned = np.asarray(frames.tensors[0]), np.asarray(turned.tensors[0])
    np.testing.assert_array_equal(turned[[0, 2]], whole[[0, 2]])
    np.testing.assert_array_equal(turned[[1, 3]], whole[[1, 3], ::-1, ::-1])


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        (ndd.readers.Video, {"sequence_length": 5, "pad_sequences": True, "dtype": ndd.float32, "normalized": True}),
        (ndd.readers.Video, {"sequence_length": 4, "step": 3, "random_shuffle": True, "seed": 1, "image_type": ndd.types.YCbCr}),
        (Sequences, {"sequence_length": 7, "pad_mode": "reflect_101", "enable_timestamps": True}),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.drawn(1)
def test_on_a_gpu_as_on_the_cpu(folder, emulated_gpu, monkeypatch, kind, how):
    engine = None if emulated_gpu.real else nvdec.put_in_place(monkeypatch)
    files = [str(folder / "cat" / name) for name in ("a.mp4", "b.webm")]
    here, there = (
        kind(filenames=files, enable_frame_num="sequence", labels=[3, 4], device=d, **how) for d in ("cpu", "gpu")
    )
    most = 1 / 255 if how.get("normalized") else 1
    for first, second in zip(here.next_epoch(batch_size=3), there.next_epoch(batch_size=3), strict=True):
        assert second[0].device.device_type == "gpu"
        for ours, theirs in zip(first, second, strict=True):
            for a, b in zip(ours.tensors, theirs.cpu().tensors, strict=True):
                np.testing.assert_allclose(np.asarray(a).astype(float), np.asarray(b).astype(float), atol=most * 1.01)
    there.close()
    if engine is not None:
        wait_until(lambda: engine.open == 0)
    assert engine is None or engine.copies > 0


def test_a_batch_that_is_decoded_after_close_leaves_nothing_open(folder, emulated_gpu, monkeypatch):
    engine = None if emulated_gpu.real else nvdec.put_in_place(monkeypatch)
    reader = ndd.readers.Video(filenames=str(folder / "cat" / "a.mp4"), sequence_length=4, device="gpu")
    with ndd.EvalMode.deferred:
        (late,) = reader.fetch([1, 3])
        reader.close()
        assert [numbers_of(item)[0] for item in late.cpu().tensors] == [4, 12]
        assert engine is None or engine.open == 0
        assert numbers_of(reader.fetch([2])[0].cpu().tensors[0]) == [8, 9, 10, 11], "it can be used again"
        assert engine is None or engine.open == 1
        reader.close()
        assert engine is None or engine.open == 0


def test_a_batch_on_a_gpu_decodes_each_frame_once(folder, emulated_gpu, monkeypatch):
    if emulated_gpu.real:
        pytest.skip("nobody counts the frames of an engine")
    engine = nvdec.put_in_place(monkeypatch)
    reader = ndd.readers.Video(
        filenames=str(folder / "cat" / "a.mp4"), sequence_length=8, step=2, stick_to_shard=True, device="gpu"
    )
    frames = reader.fetch(list(range(7)))[0].cpu()
    assert numbers_of(frames.tensors[6]) == list(range(12, 20))
    assert engine.copies == 20


def damaged_file(path):
    """A video of 20 frames in four groups of pictures; those of the second and the third one are spoilt."""
    path.write_bytes(damaged(encoded(20, key_interval=5), 5, 15).tobytes())
    return str(path)


def test_a_damaged_frame_on_a_gpu_is_named(folder, tmp_path, emulated_gpu, monkeypatch):
    if not emulated_gpu.real:
        nvdec.put_in_place(monkeypatch)
    files = [str(folder / "cat" / "a.mp4"), damaged_file(tmp_path / "bad.mp4")]
    reader = ndd.readers.Video(filenames=files, sequence_length=5, device="gpu")
    with pytest.raises(RuntimeError, match=r"sample 2 .*bad.mp4 frame 5.* frame 5 of 20"):
        reader.fetch([0, 4, 5])[0].evaluate()
    assert numbers_of(reader[1][0].cpu()) == list(range(5, 10)), "the next call works"


def test_many_threads_lose_no_good_frame_beside_damage(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    reader = ndd.readers.Video(filenames=damaged_file(tmp_path / "bad.mp4"), sequence_length=5, on_error="skip")
    with pytest.warns(UserWarning, match="frame 5 of 20"):
        assert [numbers_of(item)[0] for (item,) in reader.next_epoch()] == [0, 15]


def test_a_reader_that_nobody_has_keeps_no_decoder(folder, emulated_gpu, monkeypatch):
    engine = None if emulated_gpu.real else nvdec.put_in_place(monkeypatch)
    reader = ndd.readers.Video(filenames=str(folder / "cat" / "a.mp4"), sequence_length=2, device="gpu")
    epoch = reader.next_epoch(batch_size=2)
    kept = [next(epoch)[0].evaluate(), next(epoch)[0]]
    gc.disable()
    try:
        del reader, epoch
        assert [numbers_of(item) for batch in kept for item in batch.cpu().tensors] == [[0, 1], [2, 3], [4, 5], [6, 7]]
        if engine is not None:
            wait_until(lambda: engine.open == 0)
    finally:
        gc.enable()


@pytest.mark.parametrize("batch", [None, 3, 8])
@pytest.mark.drawn(1)
def test_a_damaged_frame_on_a_gpu_is_left_out_as_on_the_cpu(folder, tmp_path, emulated_gpu, monkeypatch, batch):
    if not emulated_gpu.real:
        nvdec.put_in_place(monkeypatch)
    files = [str(folder / "cat" / "a.mp4"), damaged_file(tmp_path / "bad.mp4"), str(folder / "cat" / "b.webm")]

    def read(epoch):
        for parts in epoch:
            parts = [part.cpu().tensors if batch else [part.cpu()] for part in parts]
            for frames, label, first in zip(*parts, strict=True):
                assert numbers_of(frames) == list(range(first.item(), first.item() + 5))
                yield label.item(), first.item()
            yield list(epoch.indices), [(bad.index, bad.source) for bad in epoch.dropped]

    how = {"labels": [3, 4, 5], "sequence_length": 5, "on_error": "skip", "enable_frame_num": "scalar"}
    result = []
    for device in ("cpu", "gpu"):
        reader = ndd.readers.Video(filenames=files, device=device, **how)
        with pytest.warns(UserWarning, match=r"bad.mp4 frame 5\) is left out: RuntimeError: frame 5 of 20"):
            seen = list(read(reader.next_epoch(batch_size=batch)))
        result.append((seen, [(bad.number, bad.source) for bad in reader.skipped]))
        reader.close()
    assert result[0] == result[1]
    assert [number for number, _ in result[1][1]] == [5, 6]


def test_one_sequence_may_be_more_pieces_than_there_are_sequences(tmp_path):
    """In sequence a batch is cut at key frames: of a batch of 1 that gave a part with no sequence in it, and its reader hung."""
    path = str(tmp_path / "keys.mp4")
    ndd.io.video.write(path, numbered(40, 32, 48), key_interval=5)
    for random in (False, True):
        reader = Sequences(
            filenames=path, sequence_length=10, stride=4, random_shuffle=random, enable_frame_num="sequence"
        )
        ((frames, numbers),) = reader.next_epoch(batch_size=1)
        assert np.asarray(numbers.tensors[0]).tolist() == list(range(0, 40, 4)) == numbers_of(frames.tensors[0])


def test_in_sequence_no_frame_is_decoded_twice(tmp_path, monkeypatch):
    """However many threads read ahead, and where batches do not end at key frames. It was up to 1.8 packets a frame."""
    path = str(tmp_path / "long.mp4")
    ndd.io.video.write(path, numbered(120, 32, 48), key_interval=25)
    sent, choose = [], VideoFile._choose_effort
    monkeypatch.setattr(VideoFile, "_choose_effort", lambda self, packet: (sent.append(1), choose(self, packet))[1])
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    reader = Sequences(filenames=path, sequence_length=8, enable_frame_num="scalar")
    for _ in range(5):
        result = [numbers_of(video) for frames, _ in reader.next_epoch(batch_size=3) for video in frames.tensors]
        assert result == [list(range(k, k + 8)) for k in range(0, 120, 8)]
    assert len(sent) <= 5 * 120 + 150  # and six batches read ahead


def test_an_emptied_decoder_begins_anew():
    """A decoder that is emptied behind the last frame of a piece begins anew, wherever it is sent next."""
    clip = ndd.io.video.encode(numbered(60, 32, 48), key_interval=12)
    file = VideoFile(clip)
    out = np.empty((60, 32, 48, 3), np.uint8)
    for first, last in ((0, 12), (12, 24), (20, 30), (30, 31), (5, 48), (48, 60)):
        file.expect(range(first, last), ends=True)
        for number in range(first, last):
            file.write(number, [out[number]])
        assert numbers_of(out[first:last]) == list(range(first, last))
    file.close()
