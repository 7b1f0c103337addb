"""Converts values of `torchvision.tv_tensors` to those of `ndd.Targets`, and back. They are recognised if the program has
imported torchvision; only the conversion to them imports it here."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ndd._tensor import Batch, Tensor, as_tensor, batch

# Declared by torchvision's C++ library, and needed by its Python files.
_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_WANTED = "torchvision.transforms.v2"
_declared: list[torch.library.Library] = []
_LAYOUTS = {"Image": "CHW", "Video": "FCHW"}


@functools.cache
def import_torchvision() -> Any:
    """The module `torchvision`, even with a CPU build of torch, with which its library does not load.

    Raises ImportError where it is not installed.
    """
    try:
        importlib.import_module(_WANTED)
    except RuntimeError:  # "operator torchvision::nms does not exist"
        library = torch.library.Library("torchvision", "FRAGMENT")
        for schema in _SCHEMAS:
            library.define(schema)
        _declared.append(library)  # the declarations last as long as it
        importlib.import_module(_WANTED)
    return importlib.import_module("torchvision")


def _module() -> Any:
    return sys.modules.get("torchvision.tv_tensors")


def _kind(value: Any) -> str:
    """The name of the type of a value of tv_tensors, "" for other values; for a list that of the first."""
    module = _module()
    if module is None:
        return ""
    if isinstance(value, list | tuple) and value:
        return _kind(value[0])
    return type(value).__name__ if isinstance(value, module.TVTensor) else ""


def received(value: Any) -> Tensor | Batch:
    """A value of ndd: tv_tensors with the layout of their type, lists of them as a batch."""
    if isinstance(value, Tensor | Batch):
        return value
    kind = _kind(value)
    if not kind:
        return as_tensor(value)
    several = list(value) if isinstance(value, list | tuple) else [value]
    plain = [v.as_subclass(torch.Tensor).detach() for v in several]
    layout = _LAYOUTS.get(kind) or ({2: "HW", 3: "NHW"}.get(plain[0].ndim) if kind == "Mask" else None)
    if isinstance(value, list | tuple):
        return batch(plain, layout=layout)
    return as_tensor(plain[0], layout=layout)


def agreed(boxes: Any, points: Any, format: str | None, normalized: bool | None) -> tuple[str, bool]:
    """The format of boxes and whether they are fractions: from the arguments, or from tv_tensors themselves."""
    in_pixels = (
        "BoundingBoxes" if _kind(boxes) == "BoundingBoxes" else "KeyPoints" if _kind(points) == "KeyPoints" else ""
    )
    if in_pixels:
        if normalized:
            raise ValueError(f"Targets: normalized: tv_tensors.{in_pixels} are in pixels, got normalized=True")
        if normalized is None and in_pixels == "KeyPoints" and boxes is not None:
            raise ValueError(
                "Targets: points are tv_tensors.KeyPoints, in pixels, beside boxes of another type: say normalized=False "
                "if these are in pixels too"
            )
        normalized = False
    if in_pixels == "BoundingBoxes":
        listed = boxes if isinstance(boxes, list | tuple) else [boxes]
        formats = {str(b.format.value).lower() for b in listed}
        if len(formats) > 1 or (format is not None and {format} != formats):
            raise ValueError(
                f"Targets: format: expected one for all boxes, got {', '.join(sorted(formats | {str(format)}))}"
            )
        (format,) = formats
    return format or "xyxy", True if normalized is None else normalized


def parts_of(samples: Any, targets: Any) -> dict[str, Any]:
    """The arguments of `Targets` for samples of a torchvision data set."""
    if targets is None:
        single = isinstance(samples, tuple) and len(samples) == 2 and not isinstance(samples[0], list | tuple)
        pairs = [samples] if single else list(samples)
        for i, pair in enumerate(pairs):
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise TypeError(
                    f"Targets.from_tv_tensors: sample {i}: expected (image, target), got {type(pair).__name__}"
                )
        images, listed = ([pair[k] for pair in pairs] for k in range(2))
    else:
        single = not isinstance(targets, list | tuple)
        images, listed = ([samples], [targets]) if single else (list(samples), list(targets))
        if len(images) != len(listed):
            raise ValueError(
                f"Targets.from_tv_tensors: expected a target for each image, got {len(images)} images and {len(listed)} targets"
            )
    named = [_parts_of_one(i, target) for i, target in enumerate(listed)]
    for i, own in enumerate(named):
        if own.keys() != named[0].keys():
            raise ValueError(
                f"Targets.from_tv_tensors: sample {i}: expected the entries of sample 0, {sorted(named[0])}, got {sorted(own)}"
            )
    parts = {name: [own[name] for own in named] for name in named[0]}
    parts["images"] = images
    return {name: _joined(value, single) for name, value in parts.items()}


def _joined(values: Sequence[Any], single: bool) -> Any:
    if single:
        return values[0]
    return list(values) if _kind(values) else batch([received(v) for v in values])


_OF_TYPES = {"BoundingBoxes": "boxes", "KeyPoints": "points"}


def _parts_of_one(i: int, target: Any) -> dict[str, Any]:
    """The entries of a target under the names of the parts."""
    if _kind(target) == "Mask":
        return {"semantic": target}
    if not isinstance(target, Mapping):
        raise TypeError(f"Targets.from_tv_tensors: sample {i}: expected a dict or a Mask, got {type(target).__name__}")
    parts: dict[str, Any] = {}
    for key, value in target.items():
        kind, name = _kind(value), str(key)
        name = _OF_TYPES.get(kind, name)
        if kind == "Mask":
            name = "masks" if value.ndim == 3 and key != "semantic" else "semantic"
        if name in parts:
            raise ValueError(f"Targets.from_tv_tensors: sample {i}: expected one {kind}, got another one, {key!r}")
        parts[name] = value
    rows = next((len(parts[name]) for name in ("boxes", "labels") if name in parts), None)
    return {name: value for name, value in parts.items() if _kind(value) or _follows(value, rows, name)}


def _follows(value: Any, rows: int | None, name: str) -> bool:
    """Whether a value is one number, or has a row for each box."""
    if name in ("labels", "point_labels"):
        return True
    if isinstance(value, torch.Tensor):
        return value.ndim == 0 or (rows is not None and len(value) == rows)
    return isinstance(value, int | float)


def samples_of(targets: Any) -> Any:
    """Pairs (Image, dict) of targets in pixels: a list of a batch."""
    module = import_torchvision().tv_tensors
    images = _tensors(targets.images)
    names = ("boxes", "labels", "masks", "semantic", "points", "point_labels")
    values = {name: getattr(targets, name) for name in names if getattr(targets, name) is not None}
    listed = {name: _tensors(value) for name, value in {**values, **targets.extra}.items()}
    layout = (targets.images.layout or "HWC").removeprefix("F")
    samples = []
    for i, image in enumerate(images):
        if layout == "HW":
            image = image[None]
        elif layout == "HWC":
            image = image.movedim(-1, -3).contiguous()
        size = tuple(image.shape[-2:])
        own = {name: value[i] for name, value in listed.items()}
        for name in own.keys() & {"masks", "semantic"}:
            mask = own[name]
            own[name] = module.Mask(mask.squeeze(-1) if values[name].layout == "HWC" and mask.shape[-1] == 1 else mask)
        if "boxes" in own:
            boxes = own["boxes"].reshape(-1, 4)
            own["boxes"] = module.BoundingBoxes(boxes, format=targets.format.upper(), canvas_size=size)
        if "points" in own:
            own["points"] = module.KeyPoints(own["points"], canvas_size=size)
        samples.append(((module.Video if image.ndim == 4 else module.Image)(image), own))
    return samples if isinstance(targets.images, Batch) else samples[0]


def _tensors(value: Tensor | Batch) -> list[torch.Tensor]:
    return [t.torch() for t in (value.tensors if isinstance(value, Batch) else [value])]
