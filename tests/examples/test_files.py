"""What DALI's example notebooks read, and how they feed frameworks, in a loop, with ndd and with DALI: the values are the same."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from compare import check_same

import ndd

pytestmark = pytest.mark.oracle
PHOTOS = Path(ndd.demo.photos())
FILES = sorted(str(path) for path in PHOTOS.glob("*/*.jpg"))[:6]


def first(reader, count=3):
    """The outputs of the first batch, in the order of their names if they have some."""
    batch = next(iter(reader.next_epoch(batch_size=count)))
    return [batch[name] for name in sorted(batch)] if isinstance(batch, dict) else list(batch)


def files_in_folders(m, folder):
    return first(m.readers.File(file_root=str(PHOTOS), random_shuffle=True, seed=5, initial_fill=4), 6)


def lists_of_files(m, folder):
    (folder / "list.txt").write_text("".join(f"{name} {i * 3}\n" for i, name in enumerate(FILES)))
    return first(m.readers.File(file_list=str(folder / "list.txt")))


def arrays_and_their_regions(m, folder):
    for i in range(3):
        np.save(folder / f"{i}.npy", np.arange(60, dtype=np.float32).reshape(6, 10) + i)
    whole = first(m.readers.Numpy(file_root=str(folder), file_filter="*.npy"))
    part = first(m.readers.Numpy(file_root=str(folder), file_filter="*.npy", roi_start=[1, 2], roi_shape=[3, 4]))
    return whole + part


def coco(m, folder):
    pictures = [{"id": i, "file_name": Path(f).name, "width": 400, "height": 266} for i, f in enumerate(FILES)]
    boxes = [
        {"id": i, "image_id": i, "category_id": 1 + i % 2, "bbox": [10, 20, 30 + i, 40]} for i in range(len(FILES))
    ]
    for file in FILES:
        (folder / Path(file).name).write_bytes(Path(file).read_bytes())
    content = {"images": pictures, "annotations": boxes, "categories": [{"id": 1}, {"id": 2}]}
    (folder / "objects.json").write_text(json.dumps(content))
    return first(
        m.readers.COCO(file_root=str(folder), annotations_file=str(folder / "objects.json"), ltrb=True, ratio=True)
    )


def detection(m, folder):
    """Crop that keeps boxes, resize, mirror, colours: the input of SSD."""
    jpegs, boxes, labels = coco(m, folder)
    rng = m.random.RNG(seed=2)
    begin, shape, boxes, labels = m.random_bbox_crop(
        boxes, labels, thresholds=[0.1, 0.3], aspect_ratio=[0.5, 2.0], scaling=[0.3, 1.0], bbox_layout="xyXY", rng=rng
    )
    images = m.decoders.image_slice(jpegs, begin, shape)
    images = m.resize(images, size=[50, 50])
    coin = m.random.coin_flip(batch_size=3, rng=rng)
    return [m.flip(images, horizontal=coin), m.bb_flip(boxes, ltrb=True, horizontal=coin), labels]


def webdataset(m, folder):
    with tarfile.open(folder / "a.tar", "w") as tar:
        for i, file in enumerate(FILES):
            for ending, data in (("jpg", Path(file).read_bytes()), ("cls", str(i).encode())):
                member = tarfile.TarInfo(f"{i:03}.{ending}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    jpegs, classes = first(m.readers.Webdataset(paths=[str(folder / "a.tar")], ext=["jpg", "cls"]))
    return [m.decoders.image(jpegs), classes]


def classification(m, folder):
    """The loop of training: random window, mirror, normalise."""
    rng = m.random.RNG(seed=7)
    jpegs, labels = first(m.readers.File(files=FILES))
    images = m.decoders.image_random_crop(jpegs, random_area=[0.2, 1.0], rng=rng)
    images = m.resize(images, size=[48, 48])
    mirror = m.random.coin_flip(batch_size=3, rng=rng)
    return [
        m.crop_mirror_normalize(images, mirror=mirror, mean=[124, 116, 104], std=[58, 57, 57], dtype=m.float16),
        labels,
    ]


def sound_decoding(m, folder):
    soundfile = pytest.importorskip("soundfile")
    tone = 0.5 * np.sin(np.arange(4000) / 9)
    soundfile.write(folder / "a.wav", np.stack([tone, -tone], axis=1), 16000)
    encoded = m.tensor(np.fromfile(folder / "a.wav", np.uint8))
    samples, rate = m.decoders.audio(encoded, downmix=True)
    stereo, _ = m.decoders.audio(encoded, sample_rate=8000.0)
    return [samples, rate, stereo]


def spectrograms(m, folder):
    wave = m.batch([(0.4 * np.sin(np.arange(3000) ** 1.2 / 30)).astype(np.float32)])
    power = m.spectrogram(wave, nfft=512, window_length=400, window_step=160)
    mels = m.mel_filter_bank(power, sample_rate=16000, nfilter=40)
    decibels = m.to_decibels(mels, multiplier=10, reference=1.0, cutoff_db=-80)
    return [power, mels, decibels, m.mfcc(decibels, n_mfcc=13)]


def external_input(m, folder):
    """Any Python code that gives arrays."""

    def source():
        rng = np.random.default_rng(3)
        while True:
            yield [rng.integers(0, 256, (20 + i, 30, 3)).astype(np.uint8) for i in range(3)]

    batches = source()
    return [m.resize(m.batch(next(batches), layout="HWC"), size=[10, 15]) for _ in range(2)]


def a_place_that_is_saved(m, folder):
    how = {"enable_checkpointing": True} if m is not ndd else {}
    reader = m.readers.File(files=FILES, random_shuffle=True, seed=1, **how)
    epoch = iter(reader.next_epoch(batch_size=2))
    next(epoch)
    state = reader.get_state()
    again = m.readers.File(files=FILES, random_shuffle=True, seed=1, **how)
    again.set_state(state)
    return list(next(iter(again.next_epoch(batch_size=2))))


def parts_for_several_gpus(m, folder):
    return [first(m.readers.File(files=FILES, shard_id=rank, num_shards=3), 2)[1] for rank in range(3)]


PROGRAMS = [
    files_in_folders, lists_of_files, arrays_and_their_regions, coco, detection, webdataset, classification, sound_decoding,
    spectrograms, external_input, a_place_that_is_saved, parts_for_several_gpus,
]  # fmt: skip


def nearly(result, expected):
    """Integers differ by 1 in few places, floats by rounding."""
    apart = np.abs(result.astype(np.float64) - expected.astype(np.float64))
    if result.dtype.kind == "f":
        share = 2e-3 if result.dtype == np.float16 else 1e-4
        assert apart.max(initial=0) <= share * max(1.0, float(np.abs(expected.astype(np.float64)).max(initial=0)))
    else:
        assert (apart > 1).mean() <= 0.002
        assert (apart == 1).mean() <= 0.02


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.drawn(4)
def test_as_with_dali(dali, program, tmp_path):
    folders = {}

    def run(m):
        folder = folders.setdefault(m, tmp_path / str(len(folders)))
        folder.mkdir(exist_ok=True)
        return program(m, folder)

    assert check_same(dali, run, close=nearly), "DALI cannot do it either"
