"""What DALI's notebooks on RecordIO, TFRecord, LMDB, web datasets, parallel sources, videos and optical flow do, in a loop.

Pictures are compared with DALI's. It decodes H.264 on GPUs only: videos are compared with PyAV, flow with where pixels were.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from compare import check_same
from readers.datasets import (
    bytes_list,
    datum,
    example,
    float_list,
    int64_list,
    recordio_item,
    tensor,
    write_lmdb,
    write_recordio,
    write_tar,
    write_tfrecord,
)
from videos import numbered, numbers_of, write

import ndd

FILES = sorted(Path(ndd.demo.photos()).glob("*/*.jpg"))[:4]
JPEGS = [path.read_bytes() for path in FILES]


def first(reader, count=4):
    batch = next(iter(reader.next_epoch(batch_size=count)))
    return [batch[name] for name in sorted(batch)] if isinstance(batch, dict) else list(batch)


def trained_on(m, jpegs, labels):
    """The steps of a classifier's input: a window, a size, a mirror image, channels first."""
    rng = m.random.RNG(seed=9)
    images = m.decoders.image(jpegs)
    images = m.random_resized_crop(images, size=[40, 40], random_area=[0.3, 1.0], rng=rng)
    mirror = m.random.coin_flip(batch_size=len(JPEGS), rng=rng)
    return [m.crop_mirror_normalize(images, mirror=mirror, mean=[124.0], std=[58.0]), labels]


def recordio(m, folder):
    files = write_recordio(folder, [recordio_item(jpeg, [float(i)]) for i, jpeg in enumerate(JPEGS)])
    return trained_on(m, *first(m.readers.MXNet(**files)))


def several_labels_in_recordio(m, folder):
    files = write_recordio(folder, [recordio_item(jpeg, [1.0, 0.0, i]) for i, jpeg in enumerate(JPEGS)])
    jpegs, labels = first(m.readers.MXNet(**files))
    return [m.decoders.image(jpegs), labels]


def tfrecords(m, folder):
    """Pictures with boxes of their own number: features of fixed and of variable length."""
    if m is ndd:
        from ndd import tfrecord
    else:
        from nvidia.dali import tfrecord
    records = [
        example(
            ("image/encoded", bytes_list(jpeg)),
            ("image/class/label", int64_list(i)),
            ("image/object/bbox/xmin", float_list(*np.arange(i) / 8)),
        )
        for i, jpeg in enumerate(JPEGS)
    ]
    features = {
        "image/encoded": tfrecord.FixedLenFeature((), tfrecord.string, ""),
        "image/class/label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
        "image/object/bbox/xmin": tfrecord.VarLenFeature(tfrecord.float32, 0.0),
    }
    label, encoded, lefts = first(m.readers.TFRecord(features=features, **write_tfrecord(folder, records)))
    return [*trained_on(m, encoded, label), lefts]


def lmdb_of_caffe(m, folder):
    path = write_lmdb(folder / "lmdb", [datum(jpeg, i) for i, jpeg in enumerate(JPEGS)])
    return trained_on(m, *first(m.readers.Caffe(path=path)))


def lmdb_of_caffe2(m, folder):
    records = [tensor(4, [1], texts=[jpeg]) + tensor(2, [1], integers=[i]) for i, jpeg in enumerate(JPEGS)]
    return trained_on(m, *first(m.readers.Caffe2(path=write_lmdb(folder / "lmdb", records))))


def pairs_in_a_tar(m, folder):
    """Two pictures of each sample, one of which may be missing."""
    members = [
        member
        for i, jpeg in enumerate(JPEGS)
        for member in ([(f"{i}.jpg", jpeg)] + ([] if i == 2 else [(f"{i}.mask.jpg", JPEGS[-1 - i])]))
    ]
    write_tar(folder / "a.tar", members)
    reader = m.readers.Webdataset(
        paths=[str(folder / "a.tar")], ext=["jpg", "mask.jpg"], missing_component_behavior="skip"
    )
    return [m.decoders.image(encoded) for encoded in first(reader, 3)]


def a_source_that_knows_its_place(m, folder):
    """The topic of parallel external sources: a function of the sample's number; in a loop it is called."""

    def sample(place):
        return JPEGS[place % len(JPEGS)], np.int32([place])

    result = []
    for batch in range(2):
        jpegs, labels = zip(*[sample(3 * batch + i) for i in range(3)], strict=True)
        images = m.decoders.image(m.batch([np.frombuffer(jpeg, np.uint8) for jpeg in jpegs]))
        result += [m.resize(images, size=[30, 30]), m.batch(list(labels))]
    return result


def kernels_of_filters(m, folder):
    images = m.decoders.image(first(m.readers.File(files=[str(f) for f in FILES]))[0])
    small = m.resize(images, size=[40, 50])
    sigmas = m.batch([np.float32(s) for s in (0.5, 1.0, 2.0, 3.0)])
    edges = m.laplacian(m.cast(small, dtype=m.float32), window_size=5, dtype=m.float32)
    return [m.gaussian_blur(small, sigma=sigmas), m.gaussian_blur(small, window_size=7), edges]


PROGRAMS = [
    recordio, several_labels_in_recordio, tfrecords, lmdb_of_caffe, lmdb_of_caffe2, pairs_in_a_tar,
    a_source_that_knows_its_place, kernels_of_filters,
]  # fmt: skip


def nearly(result, expected):
    if not result.size:
        return
    apart = np.abs(result.astype(np.float64) - expected.astype(np.float64))
    if result.dtype.kind == "f":
        # Of a normalised picture one step of a pixel is 1 / 58.
        assert np.mean(apart > 1e-4 * max(1.0, float(np.abs(expected).max()))) <= 0.02
        assert apart.max() <= max(2 / 58, 1e-4 * float(np.abs(expected).max()))
    else:
        assert (apart > 1).mean() <= 0.002
        assert (apart == 1).mean() <= 0.02


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.drawn(3)
def test_as_with_dali(dali, program, tmp_path):
    if program.__name__.startswith("lmdb"):
        pytest.importorskip("lmdb")
    folders = {}

    def run(m):
        folder = folders.setdefault(m, tmp_path / str(len(folders)))
        folder.mkdir(exist_ok=True)
        return program(m, folder)

    assert check_same(dali, run, close=nearly), "DALI cannot do it either"


@pytest.fixture
def clips(tmp_path):
    """Two folders with a video each, whose frames tell their numbers."""
    for label in ("a", "b"):
        (tmp_path / label).mkdir()
    return [write(tmp_path / "a" / "x.mp4", 20), write(tmp_path / "b" / "y.mp4", 14)]


def frames_of(path):
    av = pytest.importorskip("av")
    with av.open(path) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def test_clips_of_a_video(clips):
    (clip,) = next(iter(ndd.readers.Video(filenames=clips[:1], sequence_length=5, step=5).next_epoch(batch_size=4)))
    assert clip.layout == "FHWC"
    assert [numbers_of(sample) for sample in clip.tensors] == [list(range(k, k + 5)) for k in (0, 5, 10, 15)]
    apart = np.asarray(clip.select(1)).astype(int) - np.stack(frames_of(clips[0])[5:10])
    assert abs(apart).max() <= 3
    assert abs(apart).mean() < 1


def test_labels_of_clips_are_their_folders(clips, tmp_path):
    reader = ndd.readers.Video(file_root=str(tmp_path), sequence_length=6, step=6, random_shuffle=True, seed=3)
    seen = [(label.item(), numbers_of(clip)[0]) for clip, label in reader.next_epoch()]
    assert sorted(seen) == [(0, 0), (0, 6), (0, 12), (1, 0), (1, 6)]


def test_a_list_names_parts_and_outputs_tell_their_place(clips, tmp_path):
    """Times in seconds; the number of the first frame and the time of each come out as well."""
    (tmp_path / "list.txt").write_text(f"{clips[0]} 3 0.5 1.3\n{clips[1]} 7\n")
    how = {"sequence_length": 4, "step": 4, "enable_frame_num": True, "enable_timestamps": True}
    reader = ndd.readers.Video(file_list=str(tmp_path / "list.txt"), **how)
    seen = [
        (label.item(), numbers_of(clip), number.item(), np.asarray(times).ravel().tolist())
        for clip, label, number, times in reader.next_epoch()
    ]
    begins = [(3, 5), (3, 9), (7, 0), (7, 4), (7, 8)]
    assert [(label, numbers) for label, numbers, _, _ in seen] == [(k, list(range(b, b + 4))) for k, b in begins]
    assert [number for _, _, number, _ in seen] == [b for _, b in begins]
    for (_, b), (*_, times) in zip(begins, seen, strict=True):
        assert times == pytest.approx([float(Fraction(b + i, 10)) for i in range(4)])


def test_frames_go_through_the_operators_of_images(clips):
    (clip,) = next(iter(ndd.readers.Video(filenames=clips, sequence_length=3, step=7).next_epoch(batch_size=2)))
    angles = ndd.batch([np.float32([0, 90, 180])] * 2, layout="F")
    turned = ndd.rotate(ndd.crop(clip, crop=(32, 32)), angle=ndd.per_frame(angles), keep_size=True)
    for sample, source in zip(turned.tensors, clip.tensors, strict=True):
        frames = [np.asarray(source)[i, :, 8:40] for i in range(3)]
        wanted = np.stack([np.rot90(frame, i) for i, frame in enumerate(frames)])
        assert abs(np.asarray(sample).astype(int) - wanted).max() <= 1
    assert numbers_of(ndd.element_extract(clip, element_map=[2]).torch(pad=True).numpy()) == [2, 9]


def test_flow_says_where_pixels_were():
    rng = np.random.default_rng(2)
    noise = ndd.gaussian_blur(ndd.tensor(rng.integers(0, 256, (80, 96, 3)).astype(np.uint8), layout="HWC"), sigma=2.0)
    still = np.asarray(noise)
    moved = np.roll(still, (2, 3), (0, 1))
    (flow,) = np.asarray(ndd.optical_flow(ndd.tensor(np.stack([still, moved]), layout="FHWC")))
    rows, columns = flow.shape[0] // 4, flow.shape[1] // 4
    assert np.median(flow[rows:-rows, columns:-columns], (0, 1)) == pytest.approx([-3, -2], abs=0.5)


def test_numbered_frames_are_told_apart():
    assert numbers_of(numbered(5)) == [0, 1, 2, 3, 4]
