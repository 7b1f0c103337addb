"""Runs each transform of `ndd.torchvision.v2` with usual arguments, see `programs.py`."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_SIZES = ((37, 53), (40, 41), (60, 37), (50, 50))
_SEEDS = 3  # some transforms choose among others
ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "CenterCrop": [(30,)],
    "ColorJitter": [(0.4, 0.4, 0.4, 0.1)],
    "ConvertBoundingBoxFormat": [("XYWH",)],
    "FiveCrop": [(20,)],
    "GaussianBlur": [(5,), ((3, 5), (0.2, 1.0))],
    "Grayscale": [(), (3,)],
    "JPEG": [(50,)],
    "Normalize": [(_MEAN, _STD)],
    "Pad": [(3,), (2, 0, "reflect"), (2, 0, "edge")],
    "RandomAdjustSharpness": [(2.0, 1.0)],
    "RandomAffine": [(30,), (30, (0.1, 0.2), (0.5, 1.5), 10, "bilinear")],
    "RandomCrop": [(20,), (30, 4)],
    "RandomErasing": [(1.0,), (1.0, (0.02, 0.33), (0.3, 3.3), "random")],
    "RandomHorizontalFlip": [(1.0,)],
    "RandomPosterize": [(3, 1.0)],
    "RandomResize": [(20, 30)],
    "RandomResizedCrop": [(24,)],
    "RandomRotation": [(45,), (45, "bilinear", True)],
    "RandomShortestSize": [([20, 30], 50)],
    "RandomSolarize": [(100, 1.0)],
    "RandomVerticalFlip": [(1.0,)],
    "Resize": [(20,), ([20, 30],), (20, "nearest"), (20, "bicubic")],
    "ScaleJitter": [((40, 40),)],
    "SetClampingMode": [("hard",)],
    "TenCrop": [(20,)],
    "ToDtype": [(torch.float32, True)],
    "UniformTemporalSubsample": [(2,)],
}
"""Of each class with required arguments, and of those whose arguments choose other kernels; the others are called without."""
APART = {
    "CutMix", "MixUp",  # the operators are called by themselves
    "Compose", "Lambda", "LinearTransformation", "RandomApply", "RandomChoice", "RandomOrder", "Transform",
}  # fmt: skip


def run_transforms(folder: Path) -> None:
    """Each transform, on pictures as bytes and as floats, of several sizes and of one, and on the inputs of detection."""
    from ndd.torchvision import v2

    values = [*_pictures(), *_detection()]
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some transforms are deprecated
        for name, kind in vars(v2).items():
            if not inspect.isclass(kind) or not issubclass(kind, torch.nn.Module) or name in APART:
                continue
            for arguments in ARGUMENTS.get(name, [()]):
                for value in values:
                    for seed in range(_SEEDS):
                        torch.manual_seed(seed)
                        with contextlib.suppress(Exception):  # not for these values
                            _evaluate(kind(*arguments)(value))


def _pictures() -> Iterator[Any]:
    import ndd

    rng = np.random.default_rng(0)
    for sizes in (_SIZES, _SIZES[:1] * 2):
        for layout in ("HWC", "CHW"):
            shapes = [(*size, 3) if layout == "HWC" else (3, *size) for size in sizes]
            pictures = [rng.integers(0, 256, shape, np.uint8) for shape in shapes]
            yield ndd.batch(pictures, layout=layout)
            yield ndd.batch([picture / np.float32(255) for picture in pictures], layout=layout)


def _detection() -> Iterator[Any]:
    """A picture with boxes, masks and labels, if torchvision is installed."""
    with contextlib.suppress(ImportError):
        from torchvision import tv_tensors

        (height, width), rng = _SIZES[0], torch.Generator().manual_seed(0)
        picture = torch.randint(0, 256, (3, height, width), dtype=torch.uint8, generator=rng)
        boxes = torch.tensor([[1.0, 2, 20, 30], [10, 10, 50, 36]])
        yield {
            "image": tv_tensors.Image(picture),
            "boxes": tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=_SIZES[0]),  # type: ignore[call-arg]
            "masks": tv_tensors.Mask(torch.randint(0, 2, (2, height, width), generator=rng)),
            "labels": torch.tensor([1, 2]),
        }
        yield picture / 255


def _evaluate(results: Any) -> None:
    for result in results if isinstance(results, tuple | list) else [results]:
        if hasattr(result, "evaluate"):
            result.evaluate()
