"""A network scores the same whether torchvision's pipeline or a recipe feeds it: trained with either, evaluated with both."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from torchvision_rule import torchvision

import ndd

Image = pytest.importorskip("PIL.Image")
DIRECTIONS, SIZE, RESIZE = 4, 28, 32
CLASSES = 2 * DIRECTIONS
TRAINED, TESTED, EPOCHS, SEEDS = 1000, 2000, 6, (0, 1, 2)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def pictures(count, seed):
    """Stripes of four directions, dark or bright, as JPEGs of many sizes, and which they are. So much noise lies on them that only
    those who shrink them with antialias see them well, and how bright they are shows in absolute terms alone."""
    rng = np.random.default_rng(seed)
    files, labels = [], rng.integers(0, CLASSES, count)
    for label in labels:
        height, width = rng.integers(90, 150, 2)
        y, x = np.mgrid[0:height, 0:width]
        angle = np.pi * (label // 2) / DIRECTIONS + rng.normal(0, 0.05)
        wave = np.sin((x * np.cos(angle) + y * np.sin(angle)) * rng.uniform(0.2, 0.35) + rng.uniform(0, 6))
        noise = rng.normal(0, 1, (height, width, 3)) * rng.uniform(80, 120)
        bright = 112 + 32 * (label % 2) + rng.normal(0, 3)
        pixels = np.clip(bright + 40 * wave[..., None] + noise, 0, 255).astype(np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "JPEG", quality=85)
        files.append(np.frombuffer(file.getvalue(), np.uint8))
    return files, torch.from_numpy(labels)


class Theirs:
    """torchvision's presets, picture by picture. A mirrored direction is another one: nothing is mirrored."""

    def __init__(self, mean=MEAN, antialias=True):
        """Without antialias tensors are resized: Pillow always has it."""
        v2 = torchvision().transforms.v2
        last = [v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean, STD)]
        self.train = v2.Compose([v2.RandomResizedCrop(SIZE, scale=(0.08, 1.0), antialias=True), *last])
        first = [] if antialias else [v2.PILToTensor()]
        rest = last if antialias else last[1:]
        self.eval = v2.Compose([*first, v2.Resize(RESIZE, antialias=antialias), v2.CenterCrop(SIZE), *rest])

    def __call__(self, files, training):
        transform = self.train if training else self.eval
        return torch.stack([transform(Image.open(io.BytesIO(f.tobytes())).convert("RGB")) for f in files])


class Ours:
    """The recipes; a picture that `imagenet_train` has mirrored is told by its generator, and mirrored back."""

    def __init__(self, seed):
        self.rng = ndd.random.RNG(seed)

    def __call__(self, files, training):
        jpegs = ndd.batch(files)
        if not training:
            return ndd.recipes.imagenet_eval(SIZE, resize=RESIZE)(jpegs).torch()
        told = self.rng.clone()
        images = ndd.recipes.imagenet_train(SIZE, rng=self.rng)(jpegs)
        ndd.random_crop_generator(ndd.peek_image_shape(jpegs), rng=told)
        return ndd.flip(images, horizontal=ndd.random.coin_flip(batch_size=len(files), rng=told)).torch()


def network():
    nn = torch.nn
    layers = []
    for before, after in ((3, 12), (12, 24), (24, 24)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, CLASSES))


def trained(feed, files, labels, seed):
    """The averaged weights of a training whose rate goes to zero: what is left of chance is small."""
    torch.manual_seed(seed)
    model = network()
    averaged = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.95), use_buffers=True
    )
    steps = EPOCHS * (len(files) // 50)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=steps)
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(files)).split(50):
            loss = torch.nn.functional.cross_entropy(
                model(feed([files[i] for i in chosen.tolist()], True)), labels[chosen]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            averaged.update_parameters(model)
    return averaged.eval()


@torch.no_grad()
def score(model, images, labels):
    """Of 100."""
    return 100 * (model(images).argmax(dim=1) == labels).float().mean().item()


@pytest.fixture
def one_thread():
    """For torch: threads that wait for each other cost a busy machine many times what so small a network needs."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("one_thread")
def test_a_network_scores_the_same_whoever_feeds_it():
    files, labels = pictures(TRAINED, 0)
    held_out, answers = pictures(TESTED, 1)
    theirs = Theirs()
    shown = [theirs(held_out, False), Ours(0)(held_out, False)]
    faults = [Theirs(mean=(0.4, 0.4, 0.4))(held_out, False), Theirs(antialias=False)(held_out, False)]
    scores = []
    for seed in SEEDS:
        for feed in (theirs, Ours(seed)):
            model = trained(feed, files, labels, seed)
            scores.append([score(model, images, answers) for images in (*shown, *faults)])
    table = np.reshape(scores, (len(SEEDS), 2, 4)).mean(axis=0)  # trained by, evaluated by
    print(np.round(np.reshape(scores, (len(SEEDS), 2, 4)), 2).tolist(), np.round(table, 2).tolist())
    assert table[:, :2].min() > 99, table
    assert np.ptp(table[:, :2]) <= 0.2, table  # trained and evaluated by either
    assert (table[:, 2:] < table[:, :2].min() - 0.2).all(), table  # another mean, or no antialias, would show
