"""`ndd.grid_mask`: erases a grid of squares from an image."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._operator import PerSample, Plan, View, bad_sample, like, operator
from ndd._tensor.store import grouped


@operator(frames=True)
def grid_mask(
    input,
    /,
    *,
    angle: PerSample[float] = 0.0,
    ratio: PerSample[float] = 0.5,
    shift_x: PerSample[float] = 0.0,
    shift_y: PerSample[float] = 0.0,
    tile: PerSample[int] = 100,
):
    """Sets a grid of squares to 0 (GridMask, https://arxiv.org/abs/2001.04086).

    With `c` and `s` the cosine and sine of the angle, the pixel in column `x` and row `y` lies at
    `u = (c x - s y - shift_x) / tile`, `v = (s x + c y - shift_y) / tile` of the grid. It becomes 0, in all channels, if
    the fractions of both, `u - floor(u)` and `v - floor(v)`, are below `ratio` (or one is NaN). In an unmoved grid this is the
    top left corner of every tile.

    Args:
        input: any element type (DALI: uint8, int16, int32 and float32). A layout in which W follows H, such as HWC,
            CHW, HW or FHWC (video: each frame separately, and arguments may differ between frames); without these letters, HWC
            or HW by rank. DALI 2.4.0 uses the first two axes as rows and columns whatever the layout, which is right for HWC
            only.
        angle: the angle of the grid, in radians.
        ratio: side of the squares, as a fraction of `tile`: 0 erases nothing, above 1 everything.
        shift_x, shift_y: the origin of the grid, in pixels.
        tile: distance from square to square, in pixels.

    Element type, shape and layout stay. torchvision and Pillow have no equivalent. Raises RuntimeError for a `tile`
    below 1 and for other layouts and ranks.

    >>> import ndd, numpy as np
    >>> image = ndd.tensor(np.ones((3, 6), np.uint8), layout="HW")
    >>> ndd.grid_mask(image, tile=3, ratio=0.4, shift_x=1).torch()
    tensor([[1, 0, 0, 1, 0, 0],
            [1, 0, 0, 1, 0, 0],
            [1, 1, 1, 1, 1, 1]], dtype=torch.uint8)
    >>> ndd.grid_mask(ndd.demo.photo("cat"), tile=60, ratio=0.5, angle=0.3).shape
    (266, 400, 3)
    """
    _rows_axis(input.layout or "", input.ndim)
    return like(input)


def _rows_axis(layout: str, ndim: int) -> int:
    """The axis of the rows; that of the columns is the next one."""
    if "H" in layout or "W" in layout:
        if "HW" not in layout:
            raise RuntimeError(f"Expected a layout in which W follows H, got {layout!r}")
        return layout.index("HW")
    if ndim - layout.startswith("F") not in (2, 3):
        raise RuntimeError(f"Expected an image (HWC or HW) or a layout with H and W, got {ndim} dimensions")
    return int(layout.startswith("F"))


@grid_mask.plan
def _(input, *, angle, ratio, shift_x, shift_y, tile):
    size = tile.each()
    for i in np.flatnonzero(size <= 0)[:1]:
        raise bad_sample(int(i), f"Argument `tile` must be positive, got {size[i]}")
    # DALI's numbers are 32-bit, rounded in this order.
    radians = angle.each().astype(np.float64)
    grid = np.array([np.cos(radians), np.sin(radians), shift_x.each(), shift_y.each(), ratio.each()], np.float32).T
    grid[:, :4] /= size.astype(np.float32)[:, None]
    rows = _rows_axis(input.layout or "", input.ndim)
    extents = grouped(input.shapes, rows, rows + 1, rows + 2)
    return Plan(input.shapes, {"grid": grid, "extents": extents}, view=View(extents, "bits"))


@grid_mask.cpu
@kernel
def _mask(image, out, grid):
    planes, height, width, channels = image.shape
    along_u, along_v = empty(width, np.float32), empty(width, np.float32)
    for x in range(width):
        along_u[x], along_v[x] = np.float32(x) * grid[0], np.float32(x) * grid[1]
    mask = empty(width, image.dtype)  # all bits of a pixel, or none
    row = empty((width, channels), image.dtype)
    elements = row.reshape(-1)
    for y in range(height):
        u0 = -grid[2] - np.float32(y) * grid[1]
        v0 = -grid[3] + np.float32(y) * grid[0]
        for x in range(width):
            u, v = u0 + along_u[x], v0 + along_v[x]
            mask[x] = -np.int64((u - np.floor(u) >= grid[4]) | (v - np.floor(v) >= grid[4]))
        if channels == 3:
            for x in range(width):
                row[x, 0], row[x, 1], row[x, 2] = mask[x], mask[x], mask[x]
        else:
            for x in range(width):
                for k in range(channels):
                    row[x, k] = mask[x]
        for plane in range(planes):
            source, target = image[plane, y].reshape(-1), out[plane, y].reshape(-1)
            for i in range(elements.size):
                target[i] = source[i] & elements[i]


@_mask.fallback
def _(image, out, grid):
    x, y = np.arange(image.shape[2], dtype=np.float32), np.arange(image.shape[1], dtype=np.float32)[:, None]
    u, v = -grid[2] - y * grid[1] + x * grid[0], -grid[3] + y * grid[0] + x * grid[1]
    mask = (u - np.floor(u) >= grid[4]) | (v - np.floor(v) >= grid[4])
    np.multiply(image, mask[..., None], out=out)


@grid_mask.cuda("grid_mask.cu")
def _(launch, input, out):
    launch("grid_mask", pack=16 // input.dtype.bytes)
