"""`ndd.paste`: puts an image on a larger canvas."""

from __future__ import annotations

import numpy as np

from ndd._operator import PerSample, Values, like, operator
from ndd.ops.image.window import cut_on_gpu, window_plan

_MOST = 1 << 20  # of a ratio, and pixels of an extent: larger products would wrap


@operator(layouts=("HWC",), masks=True, types=("u8",))
def paste(
    input,
    /,
    *,
    fill_value: list[int],
    min_canvas_size: PerSample[float] = 0.0,
    n_channels: int = 3,
    paste_x: PerSample[float] = 0.5,
    paste_y: PerSample[float] = 0.5,
    ratio: PerSample[float],
):
    """Puts each image on a larger canvas of one colour.

    Args:
        input: u8 images, HWC. A mask, HW, counts as one channel and comes out as HW.
        ratio: canvas size over image size, at least 1 (DALI 2.4.0 does not check that).
        fill_value: the colour: one number, or one for each channel; integers wrap around.
        n_channels: the number of channels of a colour, if not one.
        paste_x, paste_y: the position of the image, from 0 (left, top) to 1 (right, bottom).
        min_canvas_size: the smallest extent of the canvas.

    The canvas has `max(floor(ratio * size), floor(min_canvas_size))` pixels along each axis, the image begins at
    `floor(position * (canvas - size))`, in 32-bit floats. Any number of channels works; DALI writes three whatever the image has.
    `PIL.ImageOps.expand` and `cv2.copyMakeBorder` take the border of each side in pixels; torchvision's
    `RandomZoomOut` draws ratio and place.

    Raises ValueError for other layouts, RuntimeError for positions outside [0, 1], a ratio below 1, numbers above 2**20, and
    colours that do not fit.

    >>> import ndd, numpy as np
    >>> ndd.paste(ndd.tensor(np.ones((1, 1, 3), np.uint8), layout="HWC"), ratio=3, fill_value=0)[:, :, 0].torch()
    tensor([[0, 0, 0],
            [0, 1, 0],
            [0, 0, 0]], dtype=torch.uint8)
    >>> ndd.paste(ndd.demo.photo("cat"), ratio=1.5, fill_value=90, paste_x=0.2, paste_y=0.8).shape
    (399, 600, 3)
    """
    if len(fill_value) not in (1, n_channels):
        raise RuntimeError(f"`fill_value`: expected 1 number or `n_channels` = {n_channels}, got {len(fill_value)}")
    return like(input)


@paste.plan
def _(input, *, fill_value, min_canvas_size, n_channels, paste_x, paste_y, ratio):
    scale = _numbers(ratio, 1, _MOST, f"from 1 to {_MOST:,}")
    least = _numbers(min_canvas_size, -_MOST, _MOST, f"up to {_MOST:,}").astype(np.int64)
    shapes, starts = input.shapes.copy(), np.zeros_like(input.shapes)
    for axis, place in enumerate((paste_y, paste_x)):
        position = _numbers(place, 0, 1, "from 0 to 1")
        extent = input.shapes[:, axis]
        shapes[:, axis] = canvas = np.maximum((extent.astype(np.float32) * scale).astype(np.int64), least)
        # In float32, as the canvas: there .08 of 50 free pixels are 4, in float64 3.9999999.
        starts[:, axis] = -(position.astype(np.float32) * (canvas - extent).astype(np.float32)).astype(np.int64)
    return window_plan(input, starts, shapes, fill_value[None], input.dtype, input.layout)


def _numbers(values: Values, low: float, high: float, meaning: str) -> np.ndarray:
    """One number for each sample, within the bounds."""
    numbers = values.each()
    for i in np.flatnonzero(~((numbers >= low) & (numbers <= high)))[:1]:
        text = f"`{values.name}`: expected a number {meaning}, got {numbers[i]:g}"
        raise values.error(int(i), text)
    return numbers


paste.cuda("window.cu")(cut_on_gpu)
