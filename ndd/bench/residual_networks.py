"""ResNet-18 and ResNet-50 (He et al. 2015, with the stride in a bottleneck's 3 x 3 convolution), and a small network for
CPUs."""

from __future__ import annotations

import torch
from torch import nn

MODELS = ("resnet50", "resnet18", "small")
_DEPTHS = {"resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}


def network(name: str, classes: int = 1000) -> nn.Module:
    """A network for images `[N, 3, 224, 224]`, with random weights.

    `small` has three convolutions, for steps of milliseconds on a CPU.
    """
    if name == "small":
        layers = [_convolution(3, 8, 7, 8), nn.ReLU(), _convolution(8, 16, 3, 2), nn.ReLU(), _convolution(16, 32, 3, 2)]
        return nn.Sequential(*layers, *_head(32, classes))
    bottleneck = name == "resnet50"
    layers = [_convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, depth in enumerate(_DEPTHS[name]):
        for k in range(depth):
            block = _Block(channels, 64 << stage, 2 if stage and not k else 1, bottleneck)
            channels = block.channels
            layers.append(block)
    return nn.Sequential(*layers, *_head(channels, classes))


def _head(channels: int, classes: int) -> tuple[nn.Module, ...]:
    return nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)


def _convolution(channels: int, out: int, size: int, stride: int = 1) -> nn.Module:
    return nn.Sequential(nn.Conv2d(channels, out, size, stride, size // 2, bias=False), nn.BatchNorm2d(out))


class _Block(nn.Module):
    """A residual block: two convolutions, or a bottleneck of three."""

    def __init__(self, channels: int, width: int, stride: int, bottleneck: bool):
        super().__init__()
        self.channels = width * 4 if bottleneck else width
        if bottleneck:
            layers = [
                _convolution(channels, width, 1), nn.ReLU(inplace=True), _convolution(width, width, 3, stride),
                nn.ReLU(inplace=True), _convolution(width, self.channels, 1),
            ]  # fmt: skip
        else:
            layers = [
                _convolution(channels, width, 3, stride),
                nn.ReLU(inplace=True),
                _convolution(width, width, 3),
            ]
        self.body = nn.Sequential(*layers)
        changes = stride != 1 or channels != self.channels
        self.shortcut = _convolution(channels, self.channels, 1, stride) if changes else nn.Identity()
        self.last = nn.ReLU(inplace=True)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The block's result for `[N, C, H, W]`."""
        return self.last(self.body(images) + self.shortcut(images))
