"""`ndd.jpeg_compression_distortion`: adds the artefacts of a JPEG file of low quality."""

from __future__ import annotations

import functools

import numpy as np

from ndd._operator import PerSample, Plan, bad_sample, like, operator
from ndd.ops.color.jpeg_losses import LEAST_WIDTH, factors_of_qualities, lose_as_jpeg, lose_by_opencv

_LONGEST = 65500  # libjpeg's limit
_TILE_H, _TILE_W = 32, 64  # pixels that a block of threads works on
_BLOCK = 256


@operator(layouts=("HWC", "FHWC"), types=("u8",), frames=True)
def jpeg_compression_distortion(input, /, *, quality: PerSample[int] = 50):
    """Adds the artefacts of JPEG to images, as if they were written to a file and read again.

    Args:
        input: uint8 RGB images, layout HWC or FHWC; without a layout by rank.
        quality: 1 (worst) to 100 (best); numbers outside count as the nearest of these. Video may have one for each
            frame. A list of one number counts as that number (DALI refuses it, and values for frames).

    RGB becomes YCbCr, the chroma is averaged over 2x2 pixels, each 8x8 block goes through a cosine transform, the
    coefficients become multiples of the quantisation tables of the JPEG standard, scaled as libjpeg does
    (`5000 / quality` percent below 50, `200 - 2 quality` from there), and all steps are reversed, with interpolated chroma. The
    entropy coding in between is lossless and left out. CPU and GPU give the same pixels, bit for bit: those of libjpeg with
    exact integer transforms, as in OpenCV's and Pillow's files at the same quality.

    torchvision's `v2.JPEG` and albumentations' `ImageCompression` do this with a file in memory.

    Images without pixels stay as they are (DALI: an error). On the CPU an image has at most 65500 rows and columns.

    Raises ValueError for other layouts, RuntimeError for other types and numbers of channels.

    >>> import ndd, numpy as np
    >>> image = np.zeros((8, 8, 3), np.uint8)
    >>> image[3:5] = 255
    >>> ndd.jpeg_compression_distortion(image, quality=5)[:, 0, 0].torch()
    tensor([  4,   0,   6, 255, 255,   6,   0,   4], dtype=torch.uint8)
    >>> ndd.jpeg_compression_distortion(ndd.demo.photo("cat"), quality=3).shape
    (266, 400, 3)
    """
    return like(input)


@jpeg_compression_distortion.plan
def _(input, *, quality):
    shapes = input.shapes
    wrong = np.flatnonzero(shapes[:, 2] != 3)
    if len(wrong):
        got = tuple(shapes[wrong[0]].tolist())
        raise bad_sample(int(wrong[0]), f"expected images of 3 channels (RGB), got shape {got}")
    # OpenCV takes very narrow images; no JPEG file has larger ones than `_LONGEST`.
    usual = (shapes <= _LONGEST).all(axis=1) & (shapes[:, 1] >= LEAST_WIDTH)
    ours = functools.partial(lose_as_jpeg, factors=factors_of_qualities())
    return Plan(shapes, {"quality": np.clip(quality.each(), 1, 100)}, kernel={ours: usual, _by_opencv: ~usual})


def _by_opencv(image, out, quality):
    if max(image.shape) > _LONGEST:
        raise RuntimeError(f"a JPEG image has at most {_LONGEST} rows and columns, got shape {image.shape}")
    lose_by_opencv(image, out, quality)


@jpeg_compression_distortion.cuda("jpeg_compression_distortion.cu")
def _(launch, input, out, *, quality):
    height, width = out.shapes[:, 0], out.shapes[:, 1]
    tiles = -(-height // _TILE_H) * -(-width // _TILE_W)
    percent = np.where(quality < 50, 5000 // quality, 200 - 2 * quality).astype(np.int32)
    launch(
        "jpeg_compression_distortion",
        tiles * _BLOCK,
        per_sample={"percent": percent},
        macros={"TILE_H": _TILE_H, "TILE_W": _TILE_W},
    )
