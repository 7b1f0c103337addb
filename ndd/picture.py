"""`ndd.picture`: images with boxes, labels, masks, polygons and points drawn over them, for notebooks and files."""

from __future__ import annotations

import colorsys
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ndd._tensor import Batch, Tensor, as_batch
from ndd._tensor.dtype import uint8
from ndd._tensor.encoded_picture import encoded_as, pen, pillow
from ndd._tensor.picture import as_rgb, contact_sheet, image_tag
from ndd.decoders.image import image as decode

__all__ = ["Picture", "picture"]

_MAX_TILES = 64
_MASK_OPACITY = 0.45
_HUE_STEP = 0.61803399  # the step of the hue from label to label, as a share of the circle: neighbours look different


class Picture:
    """A contact sheet. A notebook shows it; `png()` and `save(path)` give a file."""

    def __init__(self, tiles: list[np.ndarray]):
        self._tiles = tiles

    def beside(self, after: Picture) -> Picture:
        """A sheet with each tile of this picture above the same tile of another: before and after."""
        if len(self._tiles) != len(after._tiles):
            raise ValueError(
                f"beside: expected pictures of equally many images, got {len(self._tiles)} and {len(after._tiles)}"
            )
        return Picture([_stacked(a, b) for a, b in zip(self._tiles, after._tiles, strict=True)])

    def png(self) -> bytes:
        """The sheet as a PNG."""
        return encoded_as(pillow().fromarray(contact_sheet(self._tiles)), "PNG")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the PNG."""
        with open(path, "wb") as file:
            file.write(self.png())

    def _repr_html_(self) -> str:
        return image_tag(self._tiles)

    def __repr__(self) -> str:
        return f"Picture of {len(self._tiles)} images"


def picture(
    images: Any,
    boxes: Any = None,
    labels: Any = None,
    masks: Any = None,
    points: Any = None,
    *,
    polygons: Any = None,
    vertices: Any = None,
    semantic: Any = None,
    point_labels: Any = None,
    ltrb: bool = True,
    ratio: bool = True,
    names: Sequence[str] | Mapping[int, str] | None = None,
    tile: int = 250,
) -> Picture:
    """Draws boxes, labels, masks, polygons and points over images.

    Args:
        images: a Batch or one Tensor: pixels (HWC, CHW or HW), or encoded images as readers give them, u8 of one axis;
            or an `ndd.Targets`, which has all of the following.
        boxes: (N, 4) for each image.
        labels: (N,) for each image; they select the colours and names of the boxes. Without boxes they are of the image
            itself: their names stand in its corner.
        masks: labels of pixels, HW or HWC with one channel; or [N, H, W] of layout NHW or CHW, whose planes are coloured by
            their number. 0 stays clear.
        points: (P, 2) for each image: x, y; or (N, K, 2), K of each box, which have the colours of their boxes.
        polygons, vertices: (P, 3) and (V, 2) for each image, as `readers.COCO(polygon_masks=True)` gives them; they have the
            colours of their boxes.
        semantic: labels of pixels, HW or HWC with one channel, below the masks.
        point_labels: (P,) or (N, K) for each image; they select the colours of the points.
        ltrb: boxes are left, top, right, bottom; False: x, y, width, height, the default of `readers.COCO`.
        ratio: numbers are fractions of the image's width and height; False: pixels, the default of `readers.COCO`.
        names: names of the labels: a list, from 0 on, or a dict. Default: the number itself.
        tile: the longer side of each image in the sheet, in pixels.

    At most 64 images are shown. Needs Pillow.

    Raises TypeError for other values, ValueError if an argument does not have one entry for each image, and for images of other
    shapes.

    >>> import ndd, numpy as np
    >>> image = ndd.tensor(np.zeros((40, 60, 3), np.uint8), layout="HWC")
    >>> sheet = ndd.picture(image, ndd.tensor([[0.25, 0.25, 0.75, 0.75]]), ndd.tensor([2]), names=["none", "cat", "dog"])
    >>> sheet.png()[1:4]
    b'PNG'
    """
    if hasattr(images, "images"):
        whole = images.convert(format="xyxy", normalized=True)
        images, boxes, labels, masks, points = whole.images, whole.boxes, whole.labels, whole.masks, whole.points
        semantic, point_labels, ltrb, ratio = whole.semantic, whole.point_labels, True, True
    if not hasattr(images, "layout"):
        raise TypeError(f"picture: expected a Batch, a Tensor or an ndd.Targets, got {type(images).__name__}")
    layout = images.layout
    if images.ndim == 1 and images.dtype is uint8:
        images, layout = decode(images), "HWC"
    pixels = _samples(images)
    drawn = {
        "boxes": boxes,
        "labels": labels,
        "masks": masks,
        "points": points,
        "polygons": polygons,
        "vertices": vertices,
        "semantic": semantic,
        "point_labels": point_labels,
    }
    samples = {name: None if value is None else _samples(value) for name, value in drawn.items()}
    if getattr(masks, "layout", None) in ("NHW", "CHW"):
        samples["masks"] = [_numbered(planes) for planes in samples["masks"] or []]
    for name, values in samples.items():
        if values is not None and len(values) != len(pixels):
            raise ValueError(f"picture: {name}: expected {len(pixels)}, one for each image, got {len(values)}")
    tiles = []
    for i, image in enumerate(pixels[:_MAX_TILES]):
        own = {name: None if values is None else values[i] for name, values in samples.items()}
        tiles.append(_drawn(_upright(image, layout), **own, ltrb=ltrb, ratio=ratio, names=names, tile=tile))
    return Picture(tiles)


def _samples(value: Any) -> list[np.ndarray]:
    batch = value if isinstance(value, Batch) else as_batch([value]) if isinstance(value, Tensor) else as_batch(value)
    return [np.asarray(t) for t in batch.cpu().tensors]


def _upright(image: np.ndarray, layout: str | None) -> np.ndarray:
    """u8 RGB, HWC."""
    if image.ndim == 2:
        image = image[..., None]
    elif layout == "CHW":
        image = np.moveaxis(image, 0, -1)
    if image.ndim != 3 or image.shape[2] not in (1, 3, 4) or not image.size:
        raise ValueError(
            f"picture: expected images HWC, CHW or HW of 1, 3 or 4 channels, got shape {image.shape}, {layout}"
        )
    return as_rgb(image)


def _numbered(planes: np.ndarray) -> np.ndarray:
    """Masks of objects as one mask: the number of the last object at each pixel, from 1 on, or 0."""
    numbers = np.arange(1, len(planes) + 1)[:, None, None]
    return np.where(planes != 0, numbers, 0).max(axis=0, initial=0)


def _drawn(
    image: np.ndarray, boxes: Any, labels: Any, masks: Any, points: Any, polygons: Any, vertices: Any, semantic: Any,
    point_labels: Any, *, ltrb: bool, ratio: bool, names: Any, tile: int,
) -> np.ndarray:  # fmt: skip
    Image = pillow()
    height, width = image.shape[:2]
    scale = tile / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    canvas = Image.fromarray(image).resize(size)
    for mask in (semantic, masks):
        if mask is not None:
            canvas = _with_mask(canvas, mask.reshape(mask.shape[:2]))
    factor = np.array(size, np.float64) / ((1, 1) if ratio else (width, height))
    numbers = [] if labels is None else labels.reshape(-1).tolist()
    if polygons is not None:
        layer = Image.new("RGBA", size)
        brush = pen(layer)
        for number, first, end in polygons.tolist():
            corners = [tuple(c) for c in (vertices[first:end] * factor).tolist()]
            if len(corners) > 1:
                color = _color(numbers[number] if number < len(numbers) else number)
                brush.polygon(corners, fill=(*color, int(255 * _MASK_OPACITY)), outline=(*color, 255))
        canvas = Image.alpha_composite(canvas.convert("RGBA"), layer).convert("RGB")
    draw = pen(canvas)
    for k, box in enumerate([] if boxes is None else boxes.reshape(-1, 4).astype(np.float64)):
        corners = box.copy()
        if not ltrb:
            corners[2:] += corners[:2]
        left, top, right, bottom = np.round(corners * np.tile(factor, 2)).tolist()
        if right < left or bottom < top:
            continue
        label = numbers[k] if k < len(numbers) else None
        color = _color(k if label is None else label)
        draw.rectangle((left, top, right - 1, bottom - 1), outline=color, width=2)
        if label is not None:
            _write(draw, (left + 2, top + 1), _name(label, names), color)
    if boxes is None and polygons is None and points is None:
        for k, label in enumerate(numbers):
            _write(draw, (2, 1 + 12 * k), _name(label, names), _color(label))
    if points is not None:
        for (x, y), color in zip(
            (points.reshape(-1, 2) * factor).tolist(), _point_colors(points, point_labels, numbers), strict=True
        ):
            draw.ellipse((x - 3, y - 3, x + 3, y + 3), fill=color, outline=(0, 0, 0))
    return np.asarray(canvas)


def _point_colors(points: np.ndarray, labels: np.ndarray | None, numbers: list[int]) -> list[tuple[int, int, int]]:
    """By their labels, or the labels of their boxes; yellow without either."""
    if labels is not None:
        return [_color(label) for label in labels.reshape(-1).tolist()]
    if points.ndim == 3:
        own = numbers if len(numbers) == len(points) else range(len(points))
        return [_color(label) for label in own for _ in range(points.shape[1])]
    return [(255, 255, 0)] * len(points.reshape(-1, 2))


def _with_mask(canvas: Any, mask: np.ndarray) -> Any:
    Image = pillow()

    labels = np.asarray(Image.fromarray(mask.astype(np.int32)).resize(canvas.size, Image.Resampling.NEAREST))
    pixels = np.asarray(canvas).astype(np.float32)
    for label in np.unique(labels[labels != 0]).tolist():
        inside = labels == label
        pixels[inside] = pixels[inside] * (1 - _MASK_OPACITY) + np.array(_color(label), np.float32) * _MASK_OPACITY
    return Image.fromarray(pixels.astype(np.uint8))


def _write(draw: Any, place: tuple[float, float], text: str, color: tuple[int, ...]) -> None:
    draw.rectangle(draw.textbbox(place, text), fill=color)
    draw.text(place, text, fill=(0, 0, 0))


def _name(label: int, names: Any) -> str:
    if names is None:
        return str(label)
    if isinstance(names, Mapping):
        return str(names.get(label, label))
    return str(names[label]) if 0 <= label < len(names) else str(label)


def _color(label: int) -> tuple[int, int, int]:
    red, green, blue = colorsys.hsv_to_rgb(label * _HUE_STEP % 1, 0.75, 1)
    return int(255 * red), int(255 * green), int(255 * blue)


def _stacked(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    width = max(above.shape[1], below.shape[1])
    gap = np.full((2, width, 3), 255, np.uint8)
    wide = [np.pad(t, ((0, 0), (0, width - t.shape[1]), (0, 0)), constant_values=255) for t in (above, below)]
    return np.concatenate([wide[0], gap, wide[1]])
