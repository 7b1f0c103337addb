"""Recipes beside the published ones that they say they equal: torchvision's presets, and the formulas of papers."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from torchvision_rule import torchvision

import ndd
from ndd.recipes.classification import MEAN, STD
from ndd.recipes.video import MEAN as KINETICS_MEAN, STD as KINETICS_STD

Image = pytest.importorskip("PIL.Image")
PICTURES = sorted(Path(__file__).parents[2].joinpath("../shared/data/images/imagenet").glob("*/*"))


def encoded(pixels, kind="PNG"):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **({"quality": 92} if kind == "JPEG" else {}))
    return np.frombuffer(file.getvalue(), np.uint8)


def smooth(rng, height, width):
    coarse = rng.integers(0, 256, (height // 12 + 2, width // 12 + 2, 3), np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))


def opened(data):
    return Image.open(io.BytesIO(np.asarray(data).tobytes())).convert("RGB")


def in_bytes(image, mean=MEAN, std=STD):
    """A normalized image CHW as values of bytes."""
    return np.asarray(image, np.float64) * np.reshape(std, (-1, *[1] * (np.ndim(image) - 1))) + np.reshape(
        mean, (-1, *[1] * (np.ndim(image) - 1))
    )


def files_of(count):
    rng = np.random.default_rng(1)
    sizes = [(257, 301), (300, 257), (225, 480), (511, 333), (256, 256), (640, 227)]
    files = [encoded(smooth(rng, *sizes[k % len(sizes)]), "JPEG") for k in range(count)]
    return files + [np.fromfile(path, np.uint8) for path in PICTURES[::9]]


def assert_same_pixels(result, expected):
    difference = np.abs(result - np.asarray(expected, np.float64))
    assert result.shape == np.shape(expected)
    assert difference.max() <= 1.01, difference.max()
    assert (difference > 0.5).mean() < 0.2


@pytest.mark.parametrize(("size", "resize"), [(224, 256), (224, 232), (97, 130)])
@pytest.mark.drawn(1)
def test_imagenet_eval_is_torchvisions(size, resize):
    v2 = torchvision().transforms.v2
    theirs = v2.Compose([v2.Resize(resize), v2.CenterCrop(size), v2.PILToTensor()])
    files = files_of(6)
    for result, data in zip(
        ndd.recipes.imagenet_eval(size, resize=resize)(ndd.batch(files)).tensors, files, strict=True
    ):
        assert_same_pixels(in_bytes(result), theirs(opened(data)))


def test_imagenet_train_is_torchvisions_for_the_same_windows():
    functional = torchvision().transforms.v2.functional
    files = files_of(6)
    jpegs, rng = ndd.batch(files), ndd.random.RNG(8)
    anchors, shapes = ndd.random_crop_generator(ndd.peek_image_shape(jpegs), rng=rng)
    mirror = ndd.random.coin_flip(batch_size=len(files), rng=rng).torch().flatten().tolist()
    assert len(set(mirror)) == 2
    result = ndd.recipes.imagenet_train(96, rng=ndd.random.RNG(8))(jpegs)
    windows = np.concatenate([anchors.numpy(), shapes.numpy()], axis=1).tolist()
    for image, data, window, flipped in zip(result.tensors, files, windows, mirror, strict=True):
        expected = functional.pil_to_tensor(functional.resized_crop(opened(data), *window, [96, 96]))
        assert_same_pixels(in_bytes(image), expected.flip(-1) if flipped else expected)


def test_imagenet_train_erases_after_it_normalizes():
    jpegs = ndd.batch([encoded(np.full((64, 64, 3), 255, np.uint8))] * 200)
    result = ndd.recipes.imagenet_train(48, random_erase=0.25, rng=ndd.random.RNG(1))(jpegs).numpy()
    erased = (result == 0).all(axis=1).any(axis=(1, 2))
    assert 0.15 < erased.mean() < 0.35


def test_video_clips_is_torchvisions():
    import torch

    functional = torchvision().transforms.v2.functional
    clip = np.stack([smooth(np.random.default_rng(k), 120, 161) for k in range(3)])
    result = ndd.recipes.video_clips(train=False)(ndd.batch([clip], layout="FHWC")).tensors[0]
    video = torch.from_numpy(clip).permute(0, 3, 1, 2).float()
    expected = functional.center_crop(functional.resize(video, [128, 171], antialias=False), [112, 112])
    assert_same_pixels(in_bytes(result, KINETICS_MEAN, KINETICS_STD), expected.transpose(0, 1).numpy())
    trained = ndd.recipes.video_clips(rng=ndd.random.RNG(2))(ndd.batch([clip] * 3, layout="FHWC"))
    assert trained.shape == [(3, 3, 112, 112)] * 3


def labelled_picture(rng, height, width):
    """A picture of four even quarters and their labels: 50 times the label is the grey of each."""
    labels = np.zeros((height, width), np.uint8)
    labels[: height // 2, width // 2 :], labels[height // 2 :, : width // 2] = 1, 2
    labels[height // 2 :, width // 2 :] = 3
    return np.repeat(labels[..., None] * 50 + 40, 3, axis=2), labels


@pytest.mark.parametrize("form", ["encoded", "HW", "HWC"])
@pytest.mark.drawn(1)
def test_segmentation_moves_pictures_and_masks_alike(form):
    pictures = [labelled_picture(np.random.default_rng(k), 90 + 20 * k, 130 - 9 * k) for k in range(6)]
    images = ndd.batch([encoded(p) for p, _ in pictures])
    masks = {
        "encoded": lambda: ndd.batch([encoded(m) for _, m in pictures]),
        "HW": lambda: ndd.batch([m for _, m in pictures], layout="HW"),
        "HWC": lambda: ndd.batch([m[..., None] for _, m in pictures], layout="HWC"),
    }[form]()
    result, labels = ndd.recipes.segmentation(96, base=100, rng=ndd.random.RNG(3))(images, masks)
    assert labels.dtype == ndd.int64
    seen = set()
    for image, label in zip(result.numpy(), labels.numpy(), strict=True):
        grey = in_bytes(image)[0]
        expected = np.where(label == 255, 0, label * 50 + 40)
        assert (np.abs(grey - expected) < 1).mean() > 0.9  # but for the seams
        seen |= set(np.unique(label).tolist())
    assert seen == {0, 1, 2, 3, 255}


def test_segmentation_for_training_is_torchvisions():
    """Mirrored first, made up to the size at the right and at the bottom, then cut: with the numbers that the generator draws."""
    v2, rng = torchvision().transforms.v2.functional, np.random.default_rng(2)
    sizes = [(60, 90), (90, 60), (50, 300), (300, 55), (100, 100), (200, 130)] * 4
    pictures = [smooth(rng, *size) for size in sizes]
    labels = [rng.integers(0, 20, size, dtype=np.uint8) for size in sizes]
    result, masks = ndd.recipes.segmentation(96, base=100, ignore=99, rng=ndd.random.RNG(5))(
        ndd.batch([encoded(p) for p in pictures]), ndd.batch(labels, layout="HW")
    )
    told, n = ndd.random.RNG(5), len(sizes)
    sides = np.floor(ndd.random.uniform(range=[50, 201], batch_size=n, rng=told).numpy()).astype(int)
    mirrored = ndd.random.coin_flip(batch_size=n, rng=told).numpy()
    places = np.stack([ndd.random.uniform(range=[0, 1], batch_size=n, rng=told).numpy() for _ in range(2)], 1)
    padded = 0
    for k in range(n):
        picture = Image.open(io.BytesIO(encoded(pictures[k]).tobytes())).convert("RGB")
        layers = []
        for layer, fill in ((picture, 0), (torchvision().tv_tensors.Mask(labels[k][None]), 99)):
            layer = v2.resize(layer, [int(sides[k])])
            layer = v2.hflip(layer) if mirrored[k] else layer
            size = np.array(v2.get_size(layer))
            short = np.maximum(96 - size, 0).tolist()
            layer = v2.pad(layer, [0, 0, *short[::-1]], fill=fill)
            layers.append(v2.crop(layer, *np.rint(places[k] * np.maximum(size - 96, 0)).astype(int).tolist(), 96, 96))
            padded += any(short)
        assert_same_pixels(in_bytes(result.tensors[k]), v2.pil_to_tensor(layers[0]))
        assert (masks.tensors[k].numpy() == layers[1][0].numpy()).mean() > 0.999
    assert 10 < padded < 40


def test_segmentation_for_evaluation_is_torchvisions():
    v2 = torchvision().transforms.v2.functional
    rng = np.random.default_rng(0)
    picture, labels = smooth(rng, 201, 333), rng.integers(0, 20, (201, 333), dtype=np.uint8)
    result, masks = ndd.recipes.segmentation(base=130, train=False)(
        ndd.batch([encoded(picture)]), ndd.batch([labels], layout="HW")
    )
    assert_same_pixels(in_bytes(result.tensors[0]), v2.pil_to_tensor(v2.resize(Image.fromarray(picture), [130])))
    nearest = torchvision().transforms.InterpolationMode.NEAREST
    expected = np.asarray(v2.resize(torchvision().tv_tensors.Mask(labels[None]), [130], interpolation=nearest))[0]
    assert masks.tensors[0].shape == expected.shape
    assert (masks.tensors[0].numpy() == expected).mean() > 0.999


def test_detection_keeps_boxes_on_what_they_are_around():
    pictures, boxes = [], []
    rng = np.random.default_rng(5)
    for _ in range(20):
        height, width = rng.integers(150, 260, 2)
        top, left = int(rng.integers(0, height - 70)), int(rng.integers(0, width - 70))
        picture = np.zeros((height, width, 3), np.uint8)
        picture[top : top + 60, left : left + 50] = 255
        pictures.append(encoded(picture))
        boxes.append(np.float32([[left / width, top / height, (left + 50) / width, (top + 60) / height]]))
    labels = ndd.batch([np.int32([k]) for k in range(20)])
    result, kept, names = ndd.recipes.detection(128, rng=ndd.random.RNG(2))(
        ndd.batch(pictures), ndd.batch(boxes), labels
    )
    moved = 0
    for k, (image, box, name) in enumerate(zip(result.tensors, kept.tensors, names.tensors, strict=True)):
        box = box.numpy()
        assert name.numpy().tolist() == [k] * len(box)
        if not len(box):
            continue
        y, x = np.nonzero(in_bytes(image)[0] > 127)
        drawn = np.array([x.min(), y.min(), x.max() + 1, y.max() + 1])
        assert np.abs(drawn - box[0] * 128).max() <= 2
        moved += np.abs(box[0] - boxes[k][0]).max() > 0.02
    assert moved > 10


def test_simclr_draws_what_the_paper_says():
    picture = smooth(np.random.default_rng(3), 40, 40)
    jpegs = ndd.batch([encoded(picture)] * 500)
    first, second = ndd.recipes.simclr(16, rng=ndd.random.RNG(4))(jpegs)
    for view in (first.numpy(), second.numpy()):
        assert view.min() >= 0
        assert view.max() <= 1
        grey = (np.abs(view - view[:, :1]) < 0.01).all(axis=(1, 2, 3))
        assert 0.15 < grey.mean() < 0.26
    assert (np.abs(first.numpy() - second.numpy()).mean(axis=(1, 2, 3)) > 0.01).mean() > 0.95


def test_dino_solarizes_a_fifth_of_the_second_windows():
    white = ndd.batch([encoded(np.full((64, 64, 3), 250, np.uint8))] * 500)
    views = ndd.recipes.dino_multicrop(16, local_size=8, local_crops=1, rng=ndd.random.RNG(4))(white)
    dark = [np.mean(in_bytes(np.moveaxis(v.numpy(), 1, 0)).mean(axis=(0, 2, 3)) < 127) for v in views]
    assert dark[0] == dark[2] == 0
    assert 0.15 < dark[1] < 0.26
    assert [v.shape[0] for v in views] == [(3, 16, 16), (3, 16, 16), (3, 8, 8)]


def test_speech_is_the_logarithm_of_librosas_mel_bands():
    librosa, soundfile = pytest.importorskip("librosa"), pytest.importorskip("soundfile")
    rng = np.random.default_rng(0)
    wave = (np.sin(np.cumsum(rng.uniform(0.02, 0.6, 24000))) * 0.5).astype(np.float32)
    file = io.BytesIO()
    soundfile.write(file, wave, 16000, format="WAV", subtype="FLOAT")
    features = ndd.recipes.speech(dither=0.0)(ndd.batch([np.frombuffer(file.getvalue(), np.uint8)])).tensors[0].numpy()
    pushed = np.append(wave[:1] - 0.97 * wave[:1], wave[1:] - 0.97 * wave[:-1])
    power = np.abs(librosa.stft(pushed, n_fft=512, win_length=320, hop_length=160, pad_mode="reflect")) ** 2
    logs = np.log(librosa.filters.mel(sr=16000, n_fft=512, n_mels=64) @ power + 1e-20)
    expected = (logs - logs.mean(axis=1, keepdims=True)) / logs.std(axis=1, keepdims=True)
    assert features.shape == expected.shape
    assert np.corrcoef(features.ravel(), expected.ravel())[0, 1] > 0.98
