"""A recipe for object detection."""

from __future__ import annotations

from typing import Any

import ndd
from ndd.recipes.classification import MEAN, STD
from ndd.recipes.recipe import recipe


@recipe
def detection(
    jpegs: Any, boxes: Any, labels: Any, /, size: int = 320, *, train: bool = True, device: str = "cpu", rng: Any = None
) -> Any:
    """Encoded pictures with boxes and labels to float32 CHW of `size` x `size`, boxes and labels.

    Equals the recipe "ssdlite" of torchvision's references/detection, that of SSD ("SSD: Single Shot MultiBox Detector",
    https://arxiv.org/abs/1512.02325, section 2.2) without its distortion of colours: a random window that overlaps the boxes
    enough, mirrored at random, and resized; boxes whose centre is outside are dropped with their labels.

    Args:
        jpegs, boxes, labels: as from `readers.COCO(ltrb=True, ratio=True)`: boxes are left, top, right, bottom, as fractions.
        size: height and width of the results, in pixels.
        train: False leaves out the random steps.
        device: "cpu" or "gpu".
        rng: an `ndd.random.RNG`; without it the generator of the thread.

    >>> import ndd
    >>> ndd.recipes.detection(300, train=False)
    detection(size=300, train=False, device='cpu', rng=None)
    """
    images = ndd.decoders.image(jpegs, device=device, jpeg_fancy_upsampling=True)
    targets = ndd.Targets(images, boxes, labels)
    if train:
        thresholds = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9]
        how: dict[str, Any] = {
            "scaling": [0.3, 1.0],
            "aspect_ratio": [0.5, 2.0],
            "thresholds": thresholds,
            "num_attempts": 40,
        }
        how |= {"all_boxes_above_threshold": False, "total_num_attempts": 400, "quiet": True}
        targets = targets.random_crop(rng=rng, **how)
        targets = targets.flip(horizontal=ndd.random.coin_flip(batch_size=jpegs.batch_size, rng=rng))
    targets = targets.resize(size=[size, size])
    return ndd.crop_mirror_normalize(targets.images, mean=MEAN, std=STD), targets.boxes, targets.labels
