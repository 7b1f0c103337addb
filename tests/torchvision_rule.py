"""torchvision, as an oracle. Beside a CPU build of torch its wheel lacks operators that it registers at its import: they are
declared first."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import pytest

_kept: list[Any] = []  # what a library declares lives as long as it does


@functools.cache
def torchvision() -> Any:
    """The package, or a skipped test where it is not installed."""
    import torch

    if not hasattr(torch.ops.torchvision, "nms"):
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _kept.append(library)
    pytest.importorskip("torchvision")
    importlib.import_module("torchvision.transforms.v2.functional")
    return importlib.import_module("torchvision")


def functional() -> Any:
    """`torchvision.transforms.v2.functional`."""
    return torchvision().transforms.v2.functional
