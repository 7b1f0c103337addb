"""The input loop of SSD: COCO files to normalised images and encoded boxes."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from ndd.bench.libraries import Setting
from ndd.bench.photographs import folder
from ndd.bench.rounds import Result, interleaved, rate_of
from ndd.demo.loop import MEAN, STD

_LEAST = {"cpu": 256, "gpu": 4096}
_BATCH = 32


def measure(
    setting: Setting, data: Path | None, batch_size: int | None = None, images: int | None = None
) -> Iterator[Result]:
    """Images a second of an epoch. `data` may also be a folder with `instances.json` and `images`."""
    batch = batch_size or _BATCH
    with tempfile.TemporaryDirectory() as place:
        root, annotations = _annotated(data, images or _LEAST[setting.device], Path(place))
        sides = {
            name: _epochs(library, setting, root, annotations, batch) for name, library in setting.libraries.items()
        }
        for side in sides.values():
            side()
        rates = interleaved(sides, setting.rounds)
    target = "ratio >= 2.0" if setting.device == "cpu" else "ratio >= 1.2"
    title = f"SSD300 input; batch {batch}, {setting.device.upper()}, {setting.threads} threads"
    yield Result("detection", title, "images/s", rates["ndd"], rates.get("DALI"), target)


def anchors() -> list[float]:
    """The 8732 default boxes of SSD300, left, top, right, bottom: "SSD: Single Shot MultiBox Detector", section 2.2."""
    boxes = []
    sizes = [21, 45, 99, 153, 207, 261, 315]
    for k, (cells, ratios) in enumerate(
        zip((38, 19, 10, 5, 3, 1), ((2,), (2, 3), (2, 3), (2, 3), (2,), (2,)), strict=True)
    ):
        side, between = sizes[k] / 300, sqrt(sizes[k] * sizes[k + 1]) / 300
        shapes = [(side, side), (between, between)]
        for ratio in ratios:
            shapes += [(side * sqrt(ratio), side / sqrt(ratio)), (side / sqrt(ratio), side * sqrt(ratio))]
        for y, x in itertools.product(range(cells), repeat=2):
            for w, h in shapes:
                cx, cy = (x + 0.5) / cells, (y + 0.5) / cells
                boxes += [cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2]
    return np.clip(boxes, 0, 1).tolist()


def _annotated(data: Path | None, least: int, place: Path) -> tuple[Path, Path]:
    """A folder of images and a COCO file of at least this many: the user's, or photographs with artificial boxes."""
    if data is not None and (data / "instances.json").exists():
        return data / "images", data / "instances.json"
    from PIL import Image

    files = folder(data, least)
    rng = np.random.default_rng(5)
    entries, things, sizes = [], [], {}
    for i, name in enumerate(files.files):
        if name not in sizes:
            with Image.open(files.root / name) as image:
                sizes[name] = image.size
        width, height = sizes[name]
        entries.append({"id": i, "file_name": name, "width": width, "height": height})
        for _ in range(rng.integers(1, 15)):
            w, h = rng.uniform(0.05, 0.7, 2)
            x, y = rng.uniform(0, 1 - w), rng.uniform(0, 1 - h)
            box = [x * width, y * height, w * width, h * height]
            things.append({"id": len(things), "image_id": i, "category_id": int(rng.integers(1, 80)), "bbox": box})
    content = {"images": entries, "annotations": things, "categories": [{"id": k} for k in range(1, 80)]}
    file = place / "instances.json"
    file.write_text(json.dumps(content))
    return files.root, file


def _epochs(library: Any, setting: Setting, root: Path, annotations: Path, batch: int) -> Callable[[], float]:
    """A function that runs one epoch and returns images a second."""
    device, boxes_of_ssd = setting.device, anchors()
    reader = library.readers.COCO(
        file_root=str(root), annotations_file=str(annotations), ltrb=True, ratio=True, random_shuffle=True
    )

    def epoch() -> int:
        count = 0
        for jpegs, boxes, labels in reader.next_epoch(batch_size=batch):
            tensors = [value.torch() for value in _step(library, device, boxes_of_ssd, jpegs, boxes, labels)]
            count += len(tensors[0])
        return count

    return partial(rate_of, epoch, device)


def _step(library: Any, device: str, boxes_of_ssd: list[float], jpegs: Any, boxes: Any, labels: Any) -> tuple[Any, ...]:
    begin, extent, boxes, labels = library.random_bbox_crop(
        boxes,
        labels,
        aspect_ratio=[0.5, 2.0],
        thresholds=[0.0, 0.1, 0.3, 0.5, 0.7, 0.9],
        scaling=[0.3, 1.0],
        bbox_layout="xyXY",
        allow_no_crop=True,
        num_attempts=50,
    )
    n = labels.batch_size
    images = library.decoders.image_slice(jpegs, begin, extent, device=device)
    images = library.resize(images, size=[300, 300])
    change = {name: library.random.uniform(range=[0.5, 1.5], batch_size=n) for name in ("brightness", "saturation")}
    images = library.color_twist(images, hue=library.random.uniform(range=[-18.0, 18.0], batch_size=n), **change)
    mirror = library.random.coin_flip(batch_size=n)
    images = library.crop_mirror_normalize(images, mean=MEAN, std=STD, mirror=mirror)
    boxes = library.bb_flip(boxes, ltrb=True, horizontal=mirror)
    if device == "gpu":
        boxes, labels = boxes.gpu(), labels.gpu()
    how = {"offset": True, "scale": 300.0, "stds": [0.1, 0.1, 0.2, 0.2]}
    return images, *library.box_encoder(boxes, labels, anchors=boxes_of_ssd, criteria=0.5, **how)
