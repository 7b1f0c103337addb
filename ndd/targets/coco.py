"""Annotations in the form of COCO's files as parts of `ndd.Targets`, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ndd._tensor import Batch, Tensor, batch, tensor
from ndd.readers.formats.coco_masks import Outline, Run, counts_of_text, painted

_WHERE = "Targets.from_coco"
_OWN = ("bbox", "category_id", "segmentation", "keypoints", "num_keypoints", "image_id")


def parts_of(images: Any, annotations: Any, image_ids: Sequence[int] | None, masks: bool) -> dict[str, Any]:
    """The arguments of `Targets` for images and their annotations."""
    single = not isinstance(images, Batch)
    shapes = [images.shape] if single else images.shape
    listed = _listed(annotations, image_ids, single)
    if len(listed) != len(shapes):
        raise ValueError(f"{_WHERE}: expected annotations of {len(shapes)} images, got those of {len(listed)}")
    layout = images.layout or {2: "HW", 3: "HWC", 4: "FHWC"}.get(images.ndim, "")
    numbers = max((len(a.get("keypoints") or ()) for own in listed for a in own), default=0)
    with_masks = masks and any("segmentation" in a for own in listed for a in own)
    columns: dict[str, list[Any]] = {"boxes": [], "labels": []}
    for i, own in enumerate(listed):
        _check(i, own)
        columns["boxes"].append(np.array([a["bbox"] for a in own], np.float32).reshape(-1, 4))
        columns["labels"].append(np.array([a["category_id"] for a in own], np.int64))
        if numbers:
            points = _points(i, own, numbers)
            columns.setdefault("points", []).append(points[..., :2])
            columns.setdefault("point_labels", []).append(points[..., 2].astype(np.int64))
        if with_masks:
            size = tuple(shapes[i][layout.index(c)] for c in "HW")
            columns.setdefault("masks", []).append(_masks(i, own, size))
    parts: dict[str, Any] = {"images": images, "format": "xywh", "normalized": False}
    layouts = {"masks": "NHW"}
    fields = {name: _value(column, single, layouts.get(name)) for name, column in columns.items()}
    return parts | fields | {"extra": {name: _value(c, single, None) for name, c in _further(listed).items()}}


def _value(column: list[Any], single: bool, layout: str | None) -> Tensor | Batch:
    return tensor(column[0], layout=layout) if single else batch(column, layout=layout)


def _listed(annotations: Any, image_ids: Sequence[int] | None, single: bool) -> list[list[Mapping[str, Any]]]:
    """The dictionaries of each image."""
    if image_ids is not None:
        if not isinstance(annotations, Mapping) or "annotations" not in annotations:
            raise TypeError(f"{_WHERE}: with `image_ids` the annotations are those of a whole file, a dictionary")
        of_images: dict[Any, list[Any]] = {}
        for a in annotations["annotations"]:
            of_images.setdefault(a.get("image_id"), []).append(a)
        return [of_images.get(number, []) for number in ([image_ids] if isinstance(image_ids, int) else image_ids)]
    entries = [annotations] if single else list(annotations)
    listed: list[Any] = [own.get("annotations") if isinstance(own, Mapping) else own for own in entries]
    for i, own in enumerate(listed):
        if not isinstance(own, list | tuple) or not all(isinstance(a, Mapping) for a in own):
            raise TypeError(
                f"{_WHERE}: image {i}: expected a list of dictionaries, one for each object, got {entries[i]!r:.80}"
            )
    return [list(own) for own in listed]


def _check(i: int, own: list[Mapping[str, Any]]) -> None:
    for k, a in enumerate(own):
        if len(a.get("bbox", ())) != 4 or not isinstance(a.get("category_id"), int | np.integer):
            raise ValueError(
                f'{_WHERE}: image {i}: object {k}: expected "bbox" of 4 numbers and "category_id", an integer, got '
                f"{a.get('bbox')!r:.60} and {a.get('category_id')!r:.60}"
            )


def _points(i: int, own: list[Mapping[str, Any]], count: int) -> np.ndarray:
    """Key points of all objects, [N, K, 3], of `count` numbers each; zeros for objects without key points."""
    points = np.zeros((len(own), count), np.float32)
    for k, a in enumerate(own):
        numbers = a.get("keypoints") or []
        if len(numbers) not in (0, count) or count % 3:
            expected = f"{count - count % 3} numbers, 3 a point"
            raise ValueError(f'{_WHERE}: image {i}: object {k}: "keypoints": expected {expected}, got {len(numbers)}')
        points[k, : len(numbers)] = numbers
    return points.reshape(len(own), count // 3, 3)


def _further(listed: list[list[Mapping[str, Any]]]) -> dict[str, list[np.ndarray]]:
    """Numbers that all dictionaries have, by name: arrays for each image."""
    every = [a for own in listed for a in own]
    names = [name for name in (every[0] if every else ()) if name not in _OWN and str(name).isidentifier()]
    columns = {}
    for name in names:
        values = [a.get(name) for a in every]
        if all(isinstance(v, int | float | np.number) for v in values):
            whole = all(isinstance(v, int | np.integer) for v in values)
            columns[name] = [np.array([a[name] for a in own], np.int64 if whole else np.float32) for own in listed]
    return columns


def _masks(i: int, own: list[Mapping[str, Any]], size: tuple[int, ...]) -> np.ndarray:
    """Masks of objects, uint8 [N, H, W]."""
    masks = np.zeros((len(own), *size), np.uint8)
    for k, a in enumerate(own):
        try:
            outline = _outline(a.get("segmentation") or [])
            masks[k] = painted(outline, np.ones(1, np.int32), *size)[..., 0] if size[0] * size[1] else 0
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f'{_WHERE}: image {i}: object {k}: "segmentation": {error}') from None
    return masks


def _outline(segmentation: Any) -> Outline:
    """Polygons, or run lengths {"size", "counts"}, listed or compressed."""
    if isinstance(segmentation, Mapping):
        counts = segmentation["counts"]
        if isinstance(counts, bytes):
            counts = counts.decode("ascii", "replace")
        lengths = counts_of_text(counts) if isinstance(counts, str) else np.asarray(counts, np.int64)
        height, width = map(int, segmentation["size"])
        return Outline(np.empty((0, 3), np.int32), np.empty((0, 2), np.float32), [Run(0, height, width, lengths)])
    polygons = [np.asarray(p, np.float32).reshape(-1, 2) for p in segmentation]
    ends = np.cumsum([0, *map(len, polygons)])
    rows = np.stack([np.zeros(len(polygons)), ends[:-1], ends[1:]], axis=1).astype(np.int32)
    return Outline(rows, np.concatenate([np.empty((0, 2), np.float32), *polygons]), [])


def annotations_of(targets: Any) -> Any:
    """Lists of dictionaries for targets in pixels, "xywh"."""
    names = ("boxes", "labels", "masks", "points", "point_labels")
    if targets.boxes is None:
        raise TypeError("Targets.to_coco: expected `boxes`, one for each dictionary, got none")
    values = {name: getattr(targets, name) for name in names if getattr(targets, name) is not None}
    if "masks" in values and values["masks"].layout != "NHW":
        del values["masks"]
    if "points" in values and values["points"].ndim != 3:
        raise TypeError("Targets.to_coco: points (P, 2) belong to no box: a dictionary has those of a box, (N, K, 2)")
    listed = {name: _arrays(value) for name, value in {**values, **targets.extra}.items()}
    count = len(listed["boxes"])
    every = [_of_image({name: column[i] for name, column in listed.items()}) for i in range(count)]
    return every if isinstance(targets.images, Batch) else every[0]


def _arrays(value: Tensor | Batch) -> list[np.ndarray]:
    return [np.asarray(t.cpu()) for t in (value.tensors if isinstance(value, Batch) else [value])]


def _of_image(values: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    annotations = []
    for k, box in enumerate(values.pop("boxes").reshape(-1, 4).tolist()):
        own = {name: v[k] if v.ndim else v for name, v in values.items()}
        entry: dict[str, Any] = {"bbox": box}
        if "labels" in own:
            entry["category_id"] = int(own.pop("labels").reshape(-1)[0])
        entry["area"] = float(box[2] * box[3])
        own.pop("area", None)
        if "masks" in own:
            mask = own.pop("masks") != 0
            entry |= {"segmentation": _runs(mask), "area": float(mask.sum())}
        if "points" in own:
            points = own.pop("points")
            seen = own.pop("point_labels", np.full(len(points), 2))
            entry["keypoints"] = np.column_stack([points, seen]).reshape(-1).tolist()
            entry["num_keypoints"] = int((seen > 0).sum())
        annotations.append(entry | {name: np.asarray(v).tolist() for name, v in own.items()})
    return annotations


def _runs(mask: np.ndarray) -> dict[str, Any]:
    """The lengths of alternating runs of 0 and 1, down the columns."""
    flat = mask.T.reshape(-1)
    changes = np.flatnonzero(np.diff(flat, prepend=False))
    return {"size": list(mask.shape), "counts": np.diff(np.concatenate([[0], changes, [flat.size]])).tolist()}
