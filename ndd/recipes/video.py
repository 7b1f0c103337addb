"""A recipe for clips of video."""

from __future__ import annotations

from typing import Any

import ndd
from ndd.recipes.recipe import recipe

MEAN = [0.43216 * 255, 0.394666 * 255, 0.37645 * 255]
STD = [0.22803 * 255, 0.22145 * 255, 0.216989 * 255]


@recipe
def video_clips(
    clips: Any,
    /,
    size: int = 112,
    *,
    resize: tuple[int, int] = (128, 171),
    train: bool = True,
    device: str = "cpu",
    rng: Any = None,
) -> Any:
    """Clips FHWC of bytes to float32 CFHW of `size` x `size`.

    Equals torchvision's references/video_classification, `VideoClassificationPresetTrain` and, with `train=False`,
    `VideoClassificationPresetEval` (that of R3D, R(2+1)D and MC3, https://arxiv.org/abs/1711.11248): resized, mirrored at
    random, cropped to a random window (for evaluation to the centre), and normalized by the mean and standard deviation of
    Kinetics-400.

    Args:
        clips: as from `readers.Video`.
        size: height and width of the results, in pixels.
        resize: height and width before the window is cut, in pixels.
        train: False leaves out the random steps.
        device: "cpu" or "gpu".
        rng: an `ndd.random.RNG`; without it the generator of the thread.

    >>> import ndd
    >>> ndd.recipes.video_clips(resize=(256, 342), size=224).settings["resize"]
    (256, 342)
    """
    clips = clips.gpu() if device == "gpu" else clips
    clips = ndd.resize(clips, size=list(resize), antialias=False, dtype=ndd.float32, rule="torchvision")
    how = {"crop": [size, size], "rounding": "even", "mean": MEAN, "std": STD, "output_layout": "CFHW"}
    if train:
        count = clips.batch_size
        how["crop_pos_x"], how["crop_pos_y"] = (
            ndd.random.uniform(range=[0, 1], batch_size=count, rng=rng) for _ in range(2)
        )
        how["mirror"] = ndd.random.coin_flip(batch_size=count, rng=rng)
    return ndd.crop_mirror_normalize(clips, **how)
