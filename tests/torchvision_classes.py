"""The transforms of torchvision: with which arguments and inputs they are compared, and how."""

from __future__ import annotations

from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torch.utils._pytree import tree_flatten

import ndd
from ndd.torchvision.installed import import_torchvision

try:
    import_torchvision()
except ImportError:
    pytest.skip("needs torchvision", allow_module_level=True)
from torchvision import tv_tensors
from torchvision.transforms import v2 as theirs

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SIZE = (37, 53)
# Arguments of each class; the others are called without. Containers and what needs labels have tests of their own.
CASES: dict[str, list[tuple[Any, ...]]] = {
    "AugMix": [(), (5, 2, 2)],
    "AutoAugment": [(), (theirs.AutoAugmentPolicy.CIFAR10,), (theirs.AutoAugmentPolicy.SVHN,)],
    "CenterCrop": [(30,), ((60, 20),), ((20, 21),)],
    "ColorJitter": [(0.4, 0.4, 0.4, 0.1), (0.5,), ()],
    "ConvertBoundingBoxFormat": [("XYWH",), ("CXCYWH",)],
    "ElasticTransform": [(), ((20.0, 30.0), (3.0, 4.0))],
    "FiveCrop": [(20,)],
    "GaussianBlur": [(5,), ((3, 5), (0.2, 1.0))],
    "Grayscale": [(), (3,)],
    "JPEG": [(50,), ((10, 90),)],
    "Normalize": [(MEAN, STD)],
    "Pad": [(3,), ([1, 2],), ([1, 2, 3, 4], 5), (2, 0, "reflect"), (2, 0, "edge")],
    "RandAugment": [(), (3, 20)],
    "RandomAdjustSharpness": [(2.0,), (0.3, 1.0)],
    "RandomAffine": [(30,), (30, (0.1, 0.2), (0.5, 1.5), 10), (0, None, None, [1, 2, 3, 4])],
    "RandomCrop": [(20,), ((60, 70), None, True), (30, 4)],
    "RandomErasing": [(1.0,), (1.0, (0.02, 0.33), (0.3, 3.3), "random"), (0.5, (0.1, 0.2), (1, 2), [1.0, 2.0, 3.0])],
    "RandomGrayscale": [(0.5,)],
    "RandomPerspective": [(), (0.7, 1.0)],
    "RandomPosterize": [(3,)],
    "RandomResize": [(20, 30)],
    "RandomResizedCrop": [(24,), ((10, 20), (0.5, 1.0))],
    "RandomRotation": [(45,), ((10, 20), "bilinear", True)],
    "RandomShortestSize": [([20, 30], 50)],
    "RandomSolarize": [(100,)],
    "RandomZoomOut": [(), (0, (1.0, 2.0), 1.0)],
    "Resize": [(20,), ([20, 30],), (20, "nearest", 25), (None, "bilinear", 40), ((50, 60), "bicubic")],
    "ScaleJitter": [((40, 40),)],
    "SetClampingMode": [("hard",)],
    "TenCrop": [(20,), (20, True)],
    "ToDtype": [(torch.float32, True), (torch.float32,)],
    "UniformTemporalSubsample": [(2,)],
}
APART = {
    "Compose", "CutMix", "GaussianNoise", "JPEG", "Lambda", "LinearTransformation", "MixUp", "RandomApply", "RandomChoice",
    "RandomOrder", "Transform",
}  # fmt: skip
# What mixes pixels by other sums: how far bytes may be off, and which share of them by more than that.
FAR = {
    "AugMix": (2, 0.02), "Resize": (1, 0.0005), "RandomAffine": (1, 0.004), "RandomRotation": (1, 0.004),
    "RandomPerspective": (1, 0.004), "ElasticTransform": (1, 0.004), "RandAugment": (1, 0.01), "AutoAugment": (1, 0.01),
    "TrivialAugmentWide": (1, 0.01),
}  # fmt: skip


def names() -> list[str]:
    """The transforms that torchvision registers."""
    values = {name: getattr(theirs, name) for name in dir(theirs) if not name.startswith("_")}
    return sorted(n for n, v in values.items() if isinstance(v, type) and issubclass(v, torch.nn.Module))


def inputs() -> dict[str, Any]:
    """Structures of every kind of value."""
    result = torch.Generator().manual_seed(1)
    h, w = SIZE
    image = torch.randint(0, 256, (3, h, w), dtype=torch.uint8, generator=result)
    boxes = tv_tensors.BoundingBoxes(  # type: ignore[call-arg]
        torch.tensor([[1.0, 2, 20, 30], [10, 10, 50, 36], [0, 0, 5, 5]]), format="XYXY", canvas_size=SIZE
    )
    empty = tv_tensors.BoundingBoxes(torch.zeros(0, 4), format="XYXY", canvas_size=SIZE)  # type: ignore[call-arg]
    points = tv_tensors.KeyPoints(torch.tensor([[3.0, 4], [50, 30]]), canvas_size=SIZE)  # type: ignore[call-arg]
    ids = tv_tensors.Mask(torch.randint(0, 5, SIZE, generator=result))
    objects = tv_tensors.Mask(torch.randint(0, 2, (3, h, w), generator=result))
    video = tv_tensors.Video(torch.randint(0, 256, (4, 3, h, w), dtype=torch.uint8, generator=result))
    picture = tv_tensors.Image(image)
    labels = torch.tensor([1, 2, 3])
    return {
        "bytes": image,
        "floats": torch.rand(3, h, w, generator=result),
        "grey": image[:1],
        "one pixel high": image[:, :1].contiguous(),
        "batch": torch.stack([image, image.flip(2)]),
        "PIL": PIL.Image.fromarray(image.permute(1, 2, 0).numpy()),
        "detection": {"image": picture, "boxes": boxes, "masks": objects, "labels": labels},
        "no boxes": (picture, {"boxes": empty, "labels": labels[:0]}),
        "segmentation": (picture, ids),
        "points": [picture, points],
        "video": video,
        "with a label": (image, 3, "name"),
    }


def outcome(transform: Any, value: Any, seed: int) -> Any:
    """What comes out after `torch.manual_seed`, or the error."""
    torch.manual_seed(seed)
    try:
        return transform(value)
    except Exception as error:
        return error


def difference(name: str, ours: Any, expected: Any) -> str:
    """How what came out differs from torchvision's; "" if it does not."""
    (a, spec), (b, wanted) = tree_flatten(ours), tree_flatten(expected)
    if spec != wanted:
        return f"structure {spec}, expected {wanted}"
    return next((text for x, y in zip(a, b, strict=True) if (text := _of_values(name, x, y))), "")


def _of_values(name: str, x: Any, y: Any) -> str:
    if type(x) is not type(y):
        return f"{type(x)}, expected {type(y)}"
    if isinstance(x, PIL.Image.Image):
        if (x.mode, x.size) != (y.mode, y.size):
            return f"{x}, expected {y}"
        return of_pixels(name, torch.from_numpy(np.array(x)), torch.from_numpy(np.array(y)))
    if not isinstance(x, torch.Tensor):
        return "" if x is y or x == y else f"{x}, expected {y}"
    for fact in ("shape", "dtype", "canvas_size", "format", "clamping_mode"):
        if getattr(x, fact, None) != getattr(y, fact, None):
            return f"{fact} {getattr(x, fact, None)}, expected {getattr(y, fact, None)}"
    return of_pixels(name, x.as_subclass(torch.Tensor), y.as_subclass(torch.Tensor))


def of_pixels(name: str, x: torch.Tensor, y: torch.Tensor) -> str:
    """Bytes are at most 1 off where there is anything to round, floats 1e-5, but for the share that `FAR` says."""
    off = (x.double() - y.double()).abs()
    most, share = FAR.get(name, (1, 0.0))
    bound = most if x.dtype == torch.uint8 else 1e-5 * max(1.0, float(y.double().abs().max()) if y.numel() else 1.0)
    far = float((off > bound).double().mean()) if off.numel() else 0.0
    return "" if far <= share else f"{far:.3%} of the values are off by more than {bound:g}, at most {off.max():g}"


def batch_of(samples: list[torch.Tensor], layout: str) -> ndd.Batch:
    """Images CHW as a batch of another layout."""
    last = layout.endswith("HWC")
    return ndd.as_batch([s.movedim(-3, -1).contiguous() if last else s for s in samples], layout=layout)


def samples_of(batch: ndd.Batch) -> list[torch.Tensor]:
    """The samples of a batch as images CHW."""
    last = (batch.layout or "").endswith("HWC")
    return [s.torch().movedim(-1, -3) if last else s.torch() for s in batch]
