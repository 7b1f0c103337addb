"""`ndd.paste`: an image on a larger canvas."""

from __future__ import annotations

import numpy as np

from ndd._operator import PerSample, Plan, bad_sample, like, operator
from ndd.ops.image.window import conversion, cut, fill_for, gpu_window


@operator(layouts=("HWC",))
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
        input: u8 images, HWC.
        ratio: canvas size over image size, at least 1 (DALI 2.4.0 does not check that).
        fill_value: the colour: one number, or one for each channel; integers wrap around.
        n_channels: how many numbers a colour has, if not one.
        paste_x, paste_y: where the image lies, from 0 (left, top) to 1 (right, bottom).
        min_canvas_size: the least extent of the canvas.

    The canvas has `max(floor(ratio * size), floor(min_canvas_size))` pixels along each axis, the image begins at
    `floor(position * (canvas - size))`. Any number of channels works; DALI writes three whatever the image has.
    `PIL.ImageOps.expand` and `cv2.copyMakeBorder` take the border of each side in pixels; torchvision's
    `RandomZoomOut` draws ratio and place.

    Raises RuntimeError for positions outside [0, 1], a ratio below 1, and colours that do not fit.

    >>> import ndd, numpy as np
    >>> ndd.paste(ndd.tensor(np.ones((1, 1, 3), np.uint8), layout="HWC"), ratio=3, fill_value=0)[:, :, 0].torch()
    tensor([[0, 0, 0],
            [0, 1, 0],
            [0, 0, 0]], dtype=torch.uint8)
    """
    if input.dtype.name != "u8":
        raise RuntimeError(f"paste: images must be uint8, got {input.dtype}")
    if len(fill_value) not in (1, n_channels):
        raise RuntimeError(
            f"paste: `fill_value`: expected 1 number or `n_channels` = {n_channels}, got {len(fill_value)}"
        )
    return like(input)


@paste.old_plan
def _(input, *, fill_value, min_canvas_size, n_channels, paste_x, paste_y, ratio):
    _check("ratio", ratio, np.asarray(ratio) >= 1, "at least 1")
    shapes, starts = input.shapes.copy(), np.zeros_like(input.shapes)
    for axis, name, position in ((0, "paste_y", paste_y), (1, "paste_x", paste_x)):
        _check(name, position, (np.asarray(position) >= 0) & (np.asarray(position) <= 1), "from 0 to 1")
        extent = input.shapes[:, axis]
        scaled = (extent.astype(np.float32) * np.asarray(ratio, np.float32)).astype(np.int64)
        canvas = np.maximum(scaled, np.asarray(min_canvas_size, np.float32).astype(np.int64))
        shapes[:, axis] = canvas
        starts[:, axis] = -(np.asarray(position, np.float32) * (canvas - extent)).astype(np.int64)
    fill = fill_for(fill_value, 2, shapes, input.dtype.numpy)
    if input.spec.device.device_id is not None:
        channels = fill.astype(np.float64).reshape(1, -1)
        return Plan(shapes, *gpu_window(input.shapes, starts, shapes, channels, 2 if fill.size > 1 else None))
    return Plan(shapes, {"start": starts.tolist()}, {"fill": fill, "convert": conversion("u8", "u8")})


def _check(name: str, value, good: np.ndarray, what: str) -> None:
    if good.all():
        return
    text = f"`{name}`: expected a number {what}, got "
    if not good.ndim:
        raise RuntimeError(f"{text}{value:g}")
    sample = int((~good).argmax())
    raise bad_sample(sample, f"{text}{value[sample]:g}")


@paste.cpu
def _(image, out, start, fill, convert):
    cut(image, out, start, fill, convert)


@paste.cuda("window.cu")
def _(launch, image, out, chunks):
    launch("window", chunks)
