"""`ndd.random_crop_generator`: random windows for images of given shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ndd._operator import bad_sample, operator, output
from ndd._tensor import DType
from ndd._tensor.dtype import int32
from ndd.random.crop_window import crop_window


@operator(random=True, outputs=2)
def random_crop_generator(
    input,
    /,
    *,
    num_attempts: int = 10,
    random_area: Sequence[float] = (0.08, 1.0),
    random_aspect_ratio: Sequence[float] = (0.75, 4 / 3),
):
    """Draws a window of random area and aspect ratio for each image: the same as that of `random_resized_crop`.

    Args:
        input: the shape of the image: 2 or 3 integers, (H, W) or (H, W, C).
        num_attempts: the number of windows to draw until one fits; after that the largest permitted window is used.
        random_area: range of the window's area as a share of the image's.
        random_aspect_ratio: range of its width / height; the logarithm is uniform.
        rng: an `RNG`; without it the thread's default one. A call advances it by seven words.

    Two results, both int32: the anchor (y, x) and the shape (height, width), for `slice(images, start=anchor,
    shape=shape, axes=[0, 1])` or `decoders.image_slice`. With `share` and `ratio` drawn, the height is
    `round(sqrt(share * H * W / ratio))` and the width `round(sqrt(share * H * W * ratio))`. The numbers are those
    that DALI draws. torchvision's `RandomResizedCrop.get_params` draws by the same rule, but takes the middle of the
    image where no window fits. An image without pixels has an empty window.

    Raises RuntimeError for an input that is not 2 or 3 integers, for a range that ends before it starts, and for
    aspect ratios that are not above 0.

    >>> import ndd
    >>> anchor, shape = ndd.random_crop_generator(ndd.tensor([480, 640, 3]), rng=ndd.random.RNG(1))
    >>> anchor.torch(), shape.torch()
    (tensor([  1, 298], dtype=torch.int32), tensor([386, 308], dtype=torch.int32))
    """
    if input.dtype.kind not in (DType.Kind.signed, DType.Kind.unsigned) or input.dtype.name == "u64":
        raise RuntimeError(f"input 0: expected the shape of an image as integers, got elements of type {input.dtype}")
    return output(int32, 1), output(int32, 1)


# A batch: the numbers of all samples are drawn at once.
@random_crop_generator.batch
def _(call, input, *, num_attempts, random_area, random_aspect_ratio):
    shapes = input.arrays
    for i, shape in enumerate(shapes):
        if shape.shape not in ((2,), (3,)):
            text = f"input 0: expected the shape of an image, (H, W) or (H, W, C), got values of shape {shape.shape}"
            raise bad_sample(i, text)
    images = np.array([shape[:2] for shape in shapes], np.int64)
    drawn = crop_window(images, call.draws.streams(call.n), random_area, random_aspect_ratio, num_attempts)
    return [windows.astype(np.int32) for windows in drawn]
