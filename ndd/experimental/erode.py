"""`ndd.experimental.erode`: shrinks bright regions."""

from __future__ import annotations

from ndd._operator import PerSample, like
from ndd.experimental.morphology import check, morphology


@morphology(largest=False)
def erode(
    input,
    /,
    *,
    anchor: PerSample[list[int]] = (-1, -1),
    border_mode: str = "constant",
    iterations: int = 1,
    mask_size: PerSample[list[int]] = (3, 3),
):
    """Replaces each pixel with the smallest number in a rectangle about it: bright regions shrink.

    Args:
        input: layout HW, HWC or CHW, with a leading F for video; uint8, uint16 or float32. Channels are independent.
        mask_size: (width, height) of the rectangle, or one number for both; -1 means 3. Video may have one for
            each frame.
        anchor: (x, y) of the pixel in the rectangle, from its upper left corner; -1 is the middle, `mask_size // 2`.
            It may lie outside the rectangle. Video may have one for each frame.
        iterations: the number of repetitions, at least 1.
        border_mode: the values outside the image: "constant" (none: never the smallest), "replicate", "reflect",
            "reflect_101" or "wrap".

    `out[y, x] = min of in[y - anchor_y + j, x - anchor_x + i]` for 0 <= j < height and 0 <= i < width. Shape, layout and
    type stay. OpenCV's `erode` with a mask of ones gives the same. Runs on the CPU and the GPU; DALI has it on the GPU
    only.

    Differences from DALI: any number of channels and empty images are accepted; an empty mask is an error.

    Raises ValueError for other layouts, RuntimeError for other types, borders, sizes and iterations.

    >>> import ndd
    >>> image = ndd.tensor([[5, 0, 0, 0, 7, 9]], dtype=ndd.uint8, layout="HW")
    >>> ndd.experimental.erode(image, mask_size=[3, 1]).torch()
    tensor([[0, 0, 0, 0, 0, 7]], dtype=torch.uint8)
    >>> ndd.experimental.erode(ndd.demo.photo("coins"), mask_size=[7, 7]).shape
    (303, 384, 3)
    """
    check(border_mode, iterations)
    return like(input)
