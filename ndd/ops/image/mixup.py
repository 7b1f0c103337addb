"""`ndd.mixup`: blends images and labels with those of another sample."""

from __future__ import annotations

import numpy as np

from ndd._cpu.opencv import single_threaded
from ndd._operator import PerSample, Plan, like, operator
from ndd.ops.image.mixing import Partners, label_shapes, launch_labels, mix_labels, partners_of, soft_labels, weights_of


@operator(random=True, outputs=2, types=("u8", "u16", "i16", "f16", "f32", "f64"))
def mixup(
    images,
    labels,
    /,
    *,
    alpha: PerSample[float] = 1.0,
    num_classes: int | None = None,
    partners: PerSample[int] = None,
    weight: PerSample[float] = None,
):
    """Blends each sample of a batch, and its label, with another sample (MixUp, https://arxiv.org/abs/1710.09412).

    `out = weight * image + (1 - weight) * other`, and the same of the labels. Returns images and labels.

    Args:
        images: any layout; a sample and its partner have one shape. uint8, uint16, int16, float16, float32 or float64.
        labels: a class number for each sample, or a float vector with a weight for each class (one-hot, or mixed before).
        alpha: the weight is drawn from Beta(alpha, alpha), for each sample: 1 makes all weights equally likely, less
            leaves most samples nearly as they are.
        num_classes: the number of classes, if labels are class numbers.
        partners: the number of the sample that each is blended with, as `batch_permutation` gives them. Default: the
            sample before it (for the first, the last).
        weight: the share of the sample itself, from 0 to 1, in place of a drawn one: one for all (as torchvision draws it)
            or one for each.
        rng: an `RNG`; without it the thread's default one. A call advances it by seven words.

    Images keep type, shape and layout; integers are rounded. Labels become float32 vectors of `num_classes` weights; both are
    on the device where the operator runs. torchvision's `v2.MixUp` with the same weight gives the same floats.

    Raises ValueError without `num_classes` where it is needed, RuntimeError for other types, for samples of different
    shapes, for a partner, weight, alpha or class number out of range (on a GPU such a label has no class).

    >>> import ndd
    >>> images = ndd.batch([[[[100]]], [[[200]]]], dtype=ndd.uint8, layout="HWC")
    >>> mixed, soft = ndd.mixup(images, ndd.batch([0, 1]), num_classes=2, weight=0.75)
    >>> mixed.torch().flatten().tolist(), soft.torch().tolist()
    ([125, 175], [[0.75, 0.25], [0.25, 0.75]])
    >>> photos = ndd.resize(ndd.batch([ndd.demo.photo("cat"), ndd.demo.photo("coffee")], layout="HWC"), size=[200, 300])
    >>> mixed, soft = ndd.mixup(photos, ndd.batch([0, 1]), num_classes=2, weight=0.6)
    >>> mixed.shape[0]
    (200, 300, 3)
    """
    return like(images), soft_labels(labels, num_classes)


@mixup.plan
def _(call, images, labels, *, alpha, num_classes, partners, weight):
    index = partners_of(images, partners)
    per_sample = {
        "share": weights_of(call, alpha, weight), "step": index - np.arange(call.n),
        "other": Partners(images, index), "other_label": Partners(labels, index),
    }  # fmt: skip
    return Plan([images.shapes, label_shapes(labels, num_classes)], per_sample)


@mixup.cpu
def _(image, label, out, out_label, other, other_label, share):
    mix_labels(label, other_label, out_label, share)
    if not image.size:
        return
    if image.dtype == np.float16:
        out[...] = np.float32(share) * image + np.float32(1 - share) * other
        return
    rows = (image.reshape(1, -1), share, other.reshape(1, -1), 1 - share, 0)
    single_threaded().addWeighted(*rows, dst=out.reshape(1, -1))


@mixup.cuda("mixup.cu")
def _(launch, images, labels, out, out_labels):
    launch("mixup", pack=16 // images.dtype.bytes)
    launch_labels(launch, labels)


mixup.operator.independent_samples = False  # pictures are mixed with others of their batch
