"""`ndd.cutmix`: replaces a window of each image with another sample's, and mixes labels by area."""

from __future__ import annotations

import numpy as np

from ndd._cpu.draws import uniform_numbers
from ndd._operator import PerSample, Plan, Values, like, operator
from ndd.ops.image.mixing import Partners, label_shapes, launch_labels, mix_labels, partners_of, soft_labels, weights_of


@operator(random=True, outputs=2, layouts=("HWC", "CHW", "HW", "FHWC", "FCHW"))
def cutmix(
    images,
    labels,
    /,
    *,
    alpha: PerSample[float] = 1.0,
    center: PerSample[list[float]] = None,
    num_classes: int | None = None,
    partners: PerSample[int] = None,
    weight: PerSample[float] = None,
):
    """Puts a window of another sample of the batch into each image (CutMix, https://arxiv.org/abs/1905.04899).

    The window has the same place in both, sides of `sqrt(1 - weight)` of the image's, and a random centre; it is cut off at the
    edges of the image. The labels are mixed by the areas. Returns images and labels.

    Args:
        images: HWC, CHW, HW, FHWC or FCHW (the same window in all frames), of any type; without a layout HWC, HW or FHWC by
            rank. A sample and its partner have one shape.
        labels: a class number for each sample, or a float vector with a weight for each class (one-hot, or mixed before).
        alpha: the weight is drawn from Beta(alpha, alpha), for each sample.
        center: the centre of the window, (y, x) as fractions of height and width from 0 to 1, in place of a drawn one.
        num_classes: the number of classes, if labels are class numbers.
        partners: the number of the sample that each gets its window from, as `batch_permutation` gives them. Default: the
            sample before it (for the first, the last).
        weight: the share of the image that stays, from 0 to 1, in place of a drawn one (unless the window is cut off).
        rng: an `RNG`; without it the thread's default one. A call advances it by seven words.

    With generators in the same state, images and their masks get the same windows. Images keep type, shape and
    layout. Labels become float32 vectors of `num_classes` weights; both are on the device where the operator runs.
    torchvision's `v2.CutMix` with the same numbers is equivalent, but draws one window for the whole batch.

    Raises ValueError for other layouts and without `num_classes` where it is needed, RuntimeError for samples of different
    shapes, for a partner, weight, alpha, center or class number out of range (on a GPU such a label has no class).

    >>> import ndd, numpy as np
    >>> images = ndd.batch([np.full((4, 4), v) for v in (1, 2)], dtype=ndd.uint8, layout="HW")
    >>> cut, soft = ndd.cutmix(images, ndd.batch([0, 1]), num_classes=2, weight=0.75, center=[0.25, 0.5])
    >>> cut.select(0).torch()
    tensor([[1, 2, 2, 1],
            [1, 2, 2, 1],
            [1, 1, 1, 1],
            [1, 1, 1, 1]], dtype=torch.uint8)
    >>> soft.torch()
    tensor([[0.7500, 0.2500],
            [0.2500, 0.7500]])
    >>> photos = ndd.resize(ndd.batch([ndd.demo.photo("cat"), ndd.demo.photo("coffee")], layout="HWC"), size=[200, 300])
    >>> mixed, soft = ndd.cutmix(photos, ndd.batch([0, 1]), num_classes=2, weight=0.6)
    >>> mixed.shape[0]
    (200, 300, 3)
    """
    return like(images), soft_labels(labels, num_classes)


@cutmix.plan
def _(call, images, labels, *, alpha, center, num_classes, partners, weight):
    index = partners_of(images, partners)
    rows = images.layout.index("H")
    extents = images.shapes[:, rows : rows + 2]
    if center is None:
        # The first words are those of the weight.
        middle = uniform_numbers(call.draws.streams(call.n), 3)[:, 1:]
    else:
        middle = _checked(center)
    share = weights_of(call, alpha, weight).astype(np.float64)
    half = (0.5 * np.sqrt(1 - share)[:, None] * extents).astype(np.int64)
    at = np.minimum((middle * extents).astype(np.int64), extents - 1)
    window = np.concatenate([np.maximum(at - half, 0), np.minimum(at + half, extents)], axis=1)
    area = (window[:, 2] - window[:, 0]) * (window[:, 3] - window[:, 1])
    kept = 1 - area / np.maximum(extents.prod(axis=1), 1)
    per_sample = {
        "share": kept.astype(np.float32), "step": index - np.arange(call.n), "window": window,
        "other": Partners(images, index), "other_label": Partners(labels, index),
    }  # fmt: skip
    return Plan([images.shapes, label_shapes(labels, num_classes)], per_sample, {"rows": rows})


def _checked(center: Values) -> np.ndarray:
    middle = center.rows(2, meaning="(y, x)")
    for i in np.flatnonzero(~((middle >= 0) & (middle <= 1)).all(axis=1))[:1]:
        text = f"argument 'center': expected (y, x) from 0 to 1, got {middle[i].tolist()}"
        raise center.error(int(i), text)
    return middle


@cutmix.cpu
def _(image, label, out, out_label, other, other_label, share, window, rows):
    mix_labels(label, other_label, out_label, share)
    y, x, bottom, right = window.tolist()
    place = (*[slice(None)] * rows, slice(y, bottom), slice(x, right))
    out[...] = image
    out[place] = other[place]


@cutmix.cuda("cutmix.cu")
def _(launch, images, labels, out, out_labels, rows):
    inner = images.shapes[:, rows + 2 :].prod(axis=1)
    fields = {"height": images.shapes[:, rows], "width": images.shapes[:, rows + 1], "inner": inner}
    launch("cutmix", per_sample=fields)
    launch_labels(launch, labels)


cutmix.operator.independent_samples = False  # pictures are mixed with others of their batch
