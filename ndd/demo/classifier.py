"""A convolutional network small enough for two CPU cores, and one training step."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import nn


def small_network(classes: int) -> nn.Module:
    """Four strided convolutions, a mean over the picture, a linear layer: about 0.1 M weights."""
    widths = (3, 24, 48, 96, 96)
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], classes))


class Trainer:
    """A network, its optimiser, and the sums that the progress line shows."""

    def __init__(self, classes: int, device: str, seed: int):
        torch.manual_seed(seed)
        self.network = small_network(classes).to("cuda" if device == "gpu" else "cpu")
        self.optimiser = torch.optim.AdamW(self.network.parameters(), lr=2e-3)

    def step(self, images: Any, labels: Any) -> tuple[float, int]:
        """Trains on one batch; the mean loss and how many were classified rightly."""
        self.network.train()
        scores = self.network(images)
        loss = nn.functional.cross_entropy(scores, labels)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()
        return float(loss.detach()), int((scores.argmax(1) == labels).sum())
