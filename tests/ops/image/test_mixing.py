"""`ndd.mixup` and `ndd.cutmix`, beside the formulas of the papers and of torchvision's transforms."""

import numpy as np
import pytest
from cases import DTYPES, Case, values

import ndd

pytestmark = pytest.mark.fast
REGISTRY_INPUTS = {
    "same picture": (lambda rng, i, dtype: values(rng, (8, 9, 3), dtype), "HWC"),
    "class number": (lambda rng, i, dtype: np.int32(i % 3), None),
    "soft label": (lambda rng, i, dtype: np.array([0.25, 0.75 - i / 8, i / 8], np.float32), None),
}
_BOTH = ("same picture", "class number")
REGISTRY_CASES = {
    "mixup": [
        Case({"num_classes": 3}, inputs=_BOTH, dtypes=("uint8", "uint16", "int16", "float16", "float32", "float64")),
        Case({"weight": 0.3, "alpha": 0.2}, inputs=("same picture", "soft label")),
    ],
    "cutmix": [
        Case({"num_classes": 3}, inputs=_BOTH, dtypes=DTYPES),
        Case({"weight": 0.3, "center": [0.1, 0.5]}, inputs=("same picture", "soft label")),
    ],
}


def pictures(n=5, shape=(11, 14, 3), kind=np.float32):
    return (np.random.default_rng(3).random((n, *shape)) * 250).astype(kind)


def one_hot(labels, classes):
    return np.eye(classes, dtype=np.float32)[labels]


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.float16, np.float32])
def test_mixup_is_that_of_the_paper(kind):
    """torchvision's `v2.MixUp`: `batch * lam + batch.roll(1, 0) * (1 - lam)`, and labels so."""
    x, labels, lam = pictures(kind=kind), np.array([0, 3, 1, 1, 2]), np.float32(0.3)
    wide = x.astype(np.float32)
    wanted = wide * lam + np.roll(wide, 1, axis=0) * (1 - lam)
    hot = one_hot(labels, 4)
    for arguments, classes in ((ndd.batch(labels), 4), (ndd.batch(hot), None), (ndd.batch(labels[:, None]), 4)):
        mixed, soft = ndd.mixup(ndd.batch(x, layout="HWC"), arguments, weight=0.3, num_classes=classes)
        assert mixed.dtype == ndd.dtype(kind)
        assert mixed.layout == "HWC"
        tolerance = 0.501 if np.dtype(kind).kind in "iu" else 0.13 if kind is np.float16 else 1e-4
        assert np.abs(mixed.numpy().astype(np.float32) - wanted).max() <= tolerance
        assert np.allclose(soft.numpy(), hot * lam + np.roll(hot, 1, axis=0) * (1 - lam))
        assert soft.dtype == ndd.float32


def window_of(lam, y, x, height, width):
    """torchvision's `v2.CutMix._get_params`, for a middle (y, x) in pixels."""
    r = 0.5 * np.sqrt(1.0 - lam)
    half_w, half_h = int(r * width), int(r * height)
    box = max(y - half_h, 0), max(x - half_w, 0), min(y + half_h, height), min(x + half_w, width)
    return box, 1.0 - (box[2] - box[0]) * (box[3] - box[1]) / (height * width)


@pytest.mark.parametrize("layout", ["HWC", "CHW", "HW", "FHWC"])
def test_cutmix_is_that_of_the_paper(layout):
    extents = {"H": 11, "W": 14, "C": 3, "F": 2}
    x = pictures(shape=tuple(extents[c] for c in layout), kind=np.uint8)
    labels, weights = np.array([0, 3, 1, 1, 2]), np.array([0.0, 0.2, 0.55, 0.9, 1.0], np.float32)
    middles = np.array([(0, 0), (0.5, 0.25), (0.99, 0.3), (0.2, 1), (0.3, 0.4)], np.float32)
    cut, soft = ndd.cutmix(
        ndd.batch(x, layout=layout),
        ndd.batch(labels),
        num_classes=4,
        weight=ndd.batch(weights),
        center=ndd.batch(middles),
    )
    hot, rows = one_hot(labels, 4), layout.index("H")
    for i in range(5):
        y, x_ = min(int(middles[i, 0] * 11), 10), min(int(middles[i, 1] * 14), 13)
        (top, left, bottom, right), lam = window_of(float(weights[i]), y, x_, 11, 14)
        wanted = x[i].copy()
        place = (*[slice(None)] * rows, slice(top, bottom), slice(left, right))
        wanted[place] = x[i - 1][place]
        assert (np.asarray(cut.select(i)) == wanted).all()
        assert np.allclose(np.asarray(soft.select(i)), hot[i] * lam + hot[i - 1] * (1 - lam))
    assert cut.layout == layout


def test_numbers_are_drawn_for_each_sample_and_counted():
    images = ndd.batch(np.arange(400, dtype=np.float32)[:, None], layout=None)
    labels = ndd.batch(np.arange(400))
    for alpha, spread in ((1.0, 1 / 12), (0.2, 1 / (4 * 1.4))):
        _, soft = ndd.mixup(images, labels, num_classes=400, alpha=alpha, rng=ndd.random.RNG(2))
        weights = soft.numpy()[np.arange(400), np.arange(400)]
        assert abs(weights.mean() - 0.5) < 0.06
        assert abs(weights.var() - spread) < 0.03
    again = ndd.random.beta(alpha=0.2, beta=0.2, batch_size=400, rng=ndd.random.RNG(2)).numpy()
    assert np.allclose(weights, again)
    planes = ndd.batch(np.zeros((300, 20, 30), np.uint8), layout="HW")
    masks = ndd.batch(np.stack([np.full((20, 30, 1), i % 251, np.uint16) for i in range(300)]), layout="HWC")
    numbers = ndd.batch(np.arange(300))
    rng = ndd.random.RNG(5)
    _, item = ndd.cutmix(planes, numbers, num_classes=300, rng=rng.clone())
    cut, other = ndd.cutmix(masks, numbers, num_classes=300, rng=rng.clone())
    assert (item.numpy() == other.numpy()).all()  # images and masks get the same windows
    kept = np.array([(np.asarray(c) == i % 251).mean() for i, c in enumerate(cut.tensors)])
    assert np.allclose(kept, other.numpy()[np.arange(300), np.arange(300)], atol=1e-6)
    assert 0.5 < kept.mean() < 0.8
    centers = [
        np.argwhere(np.asarray(c)[..., 0] != i % 251).mean(axis=0) for i, c in enumerate(cut.tensors) if kept[i] < 1
    ]
    assert np.abs(np.mean(centers, axis=0) - (9.5, 14.5)).max() < 1.5


def test_partners_may_be_any():
    x = pictures()
    order = np.array([3, 3, 0, 4, 1])
    mixed, soft = ndd.mixup(ndd.batch(x), ndd.batch(np.eye(5, dtype=np.float32)), weight=0, partners=ndd.batch(order))
    assert np.allclose(mixed.numpy(), x[order])
    assert (soft.numpy() == np.eye(5)[order]).all()
    ragged = [pictures(1, (4 + i // 2, 5, 3))[0] for i in range(4)]
    pairs = ndd.batch([1, 0, 3, 2])
    mixed, _ = ndd.mixup(
        ndd.batch(ragged, layout="HWC"), ndd.batch([0, 1, 2, 3]), num_classes=4, weight=0, partners=pairs
    )
    assert (np.asarray(mixed.select(2)) == ragged[3]).all()
    single, soft = ndd.mixup(ndd.tensor(x[0], layout="HWC"), 1, num_classes=2)
    assert np.allclose(np.asarray(single), x[0], atol=1e-4)
    assert soft.torch().tolist() == [0, 1]


def test_a_gpu_gives_the_same(emulated_gpu):
    labels = ndd.batch([0, 2, 1, 1, 2])
    for kind in (np.uint8, np.float16):
        for shape in ((11, 14, 3), (16, 16, 2)):
            images = ndd.batch(pictures(shape=shape, kind=kind), layout="HWC")
            for mix in (ndd.mixup, ndd.cutmix):
                wanted = mix(images, labels, num_classes=3, rng=ndd.random.RNG(4))
                before = len(emulated_gpu.launches)
                result = mix(images.gpu(), labels, num_classes=3, rng=ndd.random.RNG(4))
                result[0].evaluate()
                assert len(emulated_gpu.launches) - before == 2
                for a, b in zip(result, wanted, strict=True):
                    assert a.device.device_type == "gpu"
                    a, b = (v.cpu().numpy().astype(np.float32) for v in (a, b))
                    assert np.abs(a - b).max() <= (
                        1 if kind is np.uint8 and a.ndim == 4 else 0.126 if a.ndim == 4 else 1e-6
                    )


def test_errors():
    images, labels = ndd.batch(pictures(), layout="HWC"), ndd.batch([0, 1, 2, 3, 4])
    uneven = ndd.batch([np.zeros((4 + i, 5, 3), np.uint8) for i in range(5)], layout="HWC")
    for mix in (ndd.mixup, ndd.cutmix):
        with pytest.raises(ValueError, match="need `num_classes`"):
            mix(images, labels)
        for arguments, sentence in (
            ((images, labels, {"num_classes": 4, "weight": 0.5}), r"class number from 0 to 3, got 4"),
            ((images, labels, {"num_classes": 5, "weight": 2.0}), r"'weight': expected a share from 0 to 1, got 2"),
            ((images, labels, {"num_classes": 5, "alpha": 0.0}), r"'alpha': expected a positive"),
            ((images, labels, {"num_classes": 5, "partners": 5}), r"'partners': expected numbers from 0 to 4, got 5"),
            ((uneven, labels, {"num_classes": 5}), r"sample 0.*Resize the images"),
            (
                (images, ndd.batch(np.ones((5, 2), np.int32)), {"num_classes": 5}),
                r"one class number or 5 weights, .* got 2 numbers",
            ),
        ):
            with pytest.raises(RuntimeError, match=sentence):
                mix(*arguments[:2], **arguments[2])[0].evaluate()
    with pytest.raises(RuntimeError, match=r"\(y, x\) from 0 to 1"):
        ndd.cutmix(images, labels, num_classes=5, center=[0.5, 2])[0].evaluate()
