"""`ndd.show`: a batch at a glance, in a notebook at once, elsewhere as a picture to save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ndd._execution.notebook import show_now
from ndd._tensor import Batch, Tensor, as_batch
from ndd.picture import Picture, picture
from ndd.targets import Targets

__all__ = ["show"]


class Shown(Picture):
    """A picture that the notebook has shown already: as the value of a cell it is not shown again."""

    def __init__(self, tiles: Any, at_once: bool):
        super().__init__(tiles)
        self._at_once = at_once

    def _ipython_display_(self) -> None:
        if not self._at_once:
            show_now(Picture(self._tiles))


def show(
    batch: Any,
    *,
    labels: Any = None,
    names: Sequence[str] | Mapping[int, str] | None = None,
    boxes: Any = None,
    masks: Any = None,
    max: int = 16,
    ltrb: bool = True,
    ratio: bool = True,
    tile: int = 192,
) -> Picture:
    """Shows the first images of a batch as a contact sheet, with their labels, boxes and masks.

    In a notebook the sheet appears at once, also in the middle of a cell. Elsewhere `save(path)` of the result makes a file.

    Args:
        batch: a Batch, a Tensor, an `ndd.Targets`, encoded images as readers give them, or an array or torch tensor
            [N, H, W, C] or [N, C, H, W]; also after normalising: values are stretched to what can be seen.
        labels: a class number for each image, or, with `boxes`, for each box.
        names: names of the labels: a list, from 0 on, or a dict.
        boxes: (N, 4) for each image.
        masks: labels of pixels for each image; 0 stays clear.
        max: the number of images that are shown, 1 to 64.
        ltrb: boxes are left, top, right, bottom; False: x, y, width, height.
        ratio: boxes are fractions of the image's width and height; False: pixels.
        tile: the longer side of each image, in pixels.

    Needs Pillow.

    Raises TypeError for other values, ValueError if an argument does not have one entry for each image.

    >>> import ndd
    >>> photos = [ndd.demo.photo("cat"), ndd.demo.photo("coffee")]
    >>> ndd.show(ndd.batch(photos, layout="HWC"), labels=[0, 1], names=["cat", "cup"])
    Picture of 2 images
    """
    if not 1 <= max <= 64:
        raise ValueError(f"show: max: expected 1 to 64, got {max}")
    if isinstance(batch, Targets):
        if boxes is None:  # those of the targets are not what `ltrb` and `ratio` say of others
            boxes, ltrb, ratio = batch.convert(format="xyxy", normalized=True).boxes, True, True
        labels = batch.labels if labels is None else labels
        masks = batch.masks if masks is None else masks
        batch = batch.images
    images = _images(batch)
    count = images.batch_size if isinstance(images, Batch) else 1
    beside = {"labels": _samples(labels), "boxes": _samples(boxes), "masks": _samples(masks)}
    for name, value in beside.items():
        if value is not None and value.batch_size != count:
            raise ValueError(f"show: {name}: expected {count}, one for each image, got {value.batch_size}")
    if isinstance(images, Batch) and count > max:
        images = images.select(slice(max))
        beside = {name: None if value is None else value.select(slice(max)) for name, value in beside.items()}
    sheet = picture(images, **beside, names=names, ltrb=ltrb, ratio=ratio, tile=tile)
    return Shown(sheet._tiles, show_now(Picture(sheet._tiles)))


def _images(value: Any) -> Batch | Tensor:
    """A batch of images with a layout, if it may be guessed."""
    images = value if isinstance(value, Batch | Tensor) else as_batch(value)
    if images.layout or images.ndim != 3:
        return images
    first = images.shape[0] if isinstance(images, Batch) else images.shape
    planar = first[0] in (1, 3, 4) and first[2] not in (1, 3, 4)
    layout = "CHW" if planar else "HWC"
    return as_batch(images, layout=layout) if isinstance(images, Batch) else Tensor(images, layout=layout)


def _samples(value: Any) -> Batch | None:
    if value is None or isinstance(value, Batch):
        return value
    return as_batch([value]) if isinstance(value, Tensor) else as_batch(value)
