"""The common part of `mixup` and `cutmix`: the partners, the shares and the labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ndd._cpu.draws import beta_constants, fill_beta
from ndd._operator import Operand, Values, bad_sample, output
from ndd._tensor import DType, Spec
from ndd._tensor.dtype import bfloat16, float32

_INTEGERS = (DType.Kind.signed, DType.Kind.unsigned)


class Partners:
    """The partner of each sample, looked up when a kernel on the CPU needs it."""

    def __init__(self, operand: Operand, index: np.ndarray):
        self.operand = operand
        self.index = index

    def __iter__(self) -> Iterator[Any]:
        arrays = self.operand.arrays
        return iter([arrays[i] for i in self.index.tolist()])


def soft_labels(labels: Spec, num_classes: int | None) -> Spec:
    """The description of the output of labels: a weight for each class."""
    if labels.dtype.kind not in (*_INTEGERS, DType.Kind.float) or labels.dtype is bfloat16:
        raise RuntimeError(f"labels are integers or floats of 16, 32 or 64 bits, got {labels.dtype}")
    if labels.dtype.kind in _INTEGERS and (num_classes is None or num_classes < 1):
        raise ValueError(f"labels that are class numbers need `num_classes`, a positive integer; got {num_classes}")
    return output(float32, 1)


def label_shapes(labels: Operand, num_classes: int | None) -> np.ndarray:
    """int64 [N, 1]: the number of classes. A label is one class number, or a vector with a weight for each class."""
    sizes = labels.sizes
    classes = int(sizes[0]) if num_classes is None else num_classes
    for i in np.flatnonzero((sizes != classes) & ((sizes != 1) | (num_classes is None)))[:1]:
        number = "" if num_classes is None else "one class number or "
        raise bad_sample(
            int(i), f"label: expected {number}{classes} weights, one for each class, got {sizes[i]} numbers"
        )
    return np.full((labels.n, 1), classes, np.int64)


def partners_of(images: Operand, partners: Values | None) -> np.ndarray:
    """int64 [N]: the number of each sample's partner; by default the sample before it, for the first sample the last."""
    n = images.n
    index = np.roll(np.arange(n), 1) if partners is None else partners.each()
    for i in np.flatnonzero((index < 0) | (index >= n))[:1]:
        raise bad_sample(int(i), f"argument 'partners': expected numbers from 0 to {n - 1}, got {index[i]}")
    for i in np.flatnonzero((images.shapes != images.shapes[index]).any(axis=1))[:1]:
        shape, other = (tuple(images.shapes[k].tolist()) for k in (i, index[i]))
        raise bad_sample(
            int(i),
            f"shape {shape}: cannot be mixed with sample {index[i]} of shape {other}. Resize the images to one size",
        )
    return index


def weights_of(call: Any, alpha: Values, weight: Values | None) -> np.ndarray:
    """float32 [N]: the share of the sample itself, passed by the user or drawn from Beta(alpha, alpha)."""
    if weight is not None:
        weights = weight.each().astype(np.float32)
        for i in np.flatnonzero(~((weights >= 0) & (weights <= 1)))[:1]:
            raise bad_sample(int(i), f"argument 'weight': expected a share from 0 to 1, got {weights[i]:g}")
        return weights
    shape = alpha.each().astype(np.float32)
    for i in np.flatnonzero(~((shape > 0) & (shape < np.inf)))[:1]:
        raise bad_sample(int(i), f"argument 'alpha': expected a positive finite number, got {shape[i]:g}")
    drawn = np.empty((call.n, 1), np.float32)
    fill_beta(drawn, call.draws.streams(call.n), shape, shape, beta_constants(np.float32))
    return drawn[:, 0]


def mix_labels(label: np.ndarray, other: np.ndarray, out: np.ndarray, share: float) -> None:
    """Mixes labels: `share` of one label and the rest of another."""
    out[...] = 0
    for value, part in ((label, share), (other, 1 - share)):
        if value.size == 1 and out.size > 1:
            number = int(value.reshape(()))
            if not 0 <= number < out.size:
                raise RuntimeError(f"label: expected a class number from 0 to {out.size - 1}, got {number}")
            out[number] += part
        else:
            out += np.float32(part) * value.reshape(-1).astype(np.float32)


def launch_labels(launch: Any, labels: Operand) -> None:
    """Does the same on a GPU, where a class number out of range means no class."""
    numbers = (labels.sizes == 1) & (launch.outputs[1].sizes > 1)
    launch(
        "mix_labels", launch.outputs[1].sizes, per_sample={"numbered": numbers.astype(np.int32)}, file="mix_labels.cu"
    )
