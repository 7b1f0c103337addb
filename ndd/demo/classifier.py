"""A convolutional network small enough for two CPU cores, and one training step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import nn


def small_network(classes: int) -> nn.Module:
    """Three strided convolutions, a mean over the picture, a linear layer: about 50,000 weights."""
    widths, kernels, strides = (3, 32, 48, 64), (7, 3, 3), (4, 2, 2)
    layers: list[nn.Module] = []
    for (before, after), kernel, stride in zip(pairwise(widths), kernels, strides, strict=True):
        convolution = nn.Conv2d(before, after, kernel, stride=stride, padding=kernel // 2, bias=False)
        layers += [convolution, nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], classes))


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Keeps torch's CPU kernels to one thread.

    A step of this network is too short to share: two threads of torch that wait for each other in a loop, while the
    decoders use the same two cores, take ten times as long.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Trainer:
    """A network, its optimiser, and the sums that the progress line shows."""

    def __init__(self, classes: int, device: str, seed: int):
        torch.manual_seed(seed)
        self.network = small_network(classes).to("cuda" if device == "gpu" else "cpu")
        self.optimiser = torch.optim.AdamW(self.network.parameters(), lr=3e-3)

    def step(self, images: Any, labels: Any) -> tuple[float, int]:
        """Trains on one batch; returns the mean loss and the number of correct classifications."""
        self.network.train()
        scores = self.network(images)
        loss = nn.functional.cross_entropy(scores, labels)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()
        return float(loss.detach()), int((scores.argmax(1) == labels).sum())
