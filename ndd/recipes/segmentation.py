"""A recipe for semantic segmentation."""

from __future__ import annotations

from typing import Any

import ndd
from ndd.recipes.classification import MEAN, STD
from ndd.recipes.recipe import recipe


@recipe
def segmentation(
    jpegs: Any,
    masks: Any,
    /,
    size: int = 480,
    *,
    base: int = 520,
    train: bool = True,
    ignore: int = 255,
    device: str = "cpu",
    rng: Any = None,
) -> Any:
    """Encoded pictures with masks to float32 CHW of `size` x `size`, and masks HW of int64 (for evaluation in their own sizes).

    Equals torchvision's references/segmentation, `SegmentationPresetTrain` and, with `train=False`, `SegmentationPresetEval`
    (that of DeepLab and FCN): the shorter side is resized to between a half and twice `base`, the picture is mirrored at
    random, padded to the size at the right and at the bottom (pictures with 0, masks with `ignore`), and cropped to a random
    window; for evaluation the shorter side is resized to `base`.

    Args:
        masks: labels of pixels, HW or HWC with one channel: decoded, or encoded as PNG.
        size: height and width of the results, in pixels.
        base: the shorter side before the window is cut, in pixels; for training from half to twice as long.
        train: False leaves out the random steps and the window.
        ignore: the label outside the picture.
        device: "cpu" or "gpu".
        rng: an `ndd.random.RNG`; without it the generator of the thread.

    >>> import ndd
    >>> ndd.recipes.segmentation(train=False)
    segmentation(size=480, base=520, train=False, ignore=255, device='cpu', rng=None)
    """
    count = jpegs.batch_size
    images = ndd.decoders.image(jpegs, device=device, jpeg_fancy_upsampling=True)
    if masks.ndim == 1:
        masks = ndd.decoders.image(masks, device=device, output_type=ndd.types.GRAY)
    elif device == "gpu":
        masks = masks.gpu()
    both: Any = ndd.Targets(images, semantic=masks)
    if not train:
        both = both.resize(resize_shorter=base, rule="torchvision")
        return ndd.crop_mirror_normalize(both.images, mean=MEAN, std=STD), _labels(both.semantic)
    sides, of_batch = [base // 2, base * 2 + 1], {"batch_size": count, "rng": rng}
    side = ndd.cast(ndd.math.floor(ndd.random.uniform(range=sides, **of_batch)), dtype=ndd.int64)
    mirror = ndd.random.coin_flip(**of_batch)
    down, across = (ndd.random.uniform(range=[0, 1], **of_batch) for _ in range(2))
    extents = ndd.slice(ndd.peek_image_shape(jpegs), start=0, shape=2, axes=0)
    resized = side * extents // ndd.reductions.min(extents)
    how = {"rule": "torchvision", "resize_shorter": side, "mirror": mirror}
    how["crop"] = (resized > size) * size  # 0 keeps all of a side that is shorter than the window
    how |= {"crop_pos_y": down, "crop_pos_x": ndd.math.abs(mirror - across)}  # from the right if mirrored
    nearest = {"interp_type": ndd.types.INTERP_NN, "antialias": False}
    images = ndd.resize_crop_mirror(both.images, **how)
    masks = ndd.resize_crop_mirror(ndd.cast(both.semantic, dtype=ndd.float32), **how, **nearest)
    window: dict[str, Any] = {"crop": [size, size], "crop_pos_x": 0, "crop_pos_y": 0, "out_of_bounds_policy": "pad"}
    images, masks = ndd.crop(images, **window), ndd.crop(masks, **window, fill_values=[ignore])
    return ndd.crop_mirror_normalize(images, mean=MEAN, std=STD), _labels(masks)


def _labels(masks: Any) -> Any:
    return ndd.cast(masks if masks.layout == "HW" else ndd.squeeze(masks, axis_names="C"), dtype=ndd.int64)
