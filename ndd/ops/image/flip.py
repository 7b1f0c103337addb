"""`ndd.flip`: mirrors images."""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd._cpu.element_copies import copy_bytes
from ndd._operator import PerSample, Plan, View, like, operator
from ndd._tensor.store import grouped


@operator(layouts=("FDHWC", "FHWC", "DHWC", "HWC", "FCDHW", "FCHW", "CDHW", "CHW", "HW", "FHW"))
def flip(input, /, *, depthwise: PerSample[int] = 0, horizontal: PerSample[int] = 1, vertical: PerSample[int] = 0):
    """Mirrors images and volumes along chosen axes.

    Args:
        input: layout HWC, CHW, DHWC, CDHW, with a leading F for video; without a layout HWC, FHWC or FDHWC by rank.
            Any element type. (DALI 2.4.0 refuses float16 and bool, and images without channels: HW, FHW.)
        depthwise, horizontal, vertical: mirror along D, W, H unless 0.

    Shapes, type and layout stay: `out[y, x] = in[y, W - 1 - x]` for a horizontal flip. The pixels are those of
    `numpy.flip`, `cv2.flip` and torchvision's `hflip` and `vflip`.

    Raises ValueError for other layouts, RuntimeError if an argument is not one number for each sample.

    >>> import ndd
    >>> ndd.flip(ndd.tensor([[1, 2, 3]], layout="HW")).torch()
    tensor([[3, 2, 1]], dtype=torch.int32)
    >>> ndd.flip(ndd.demo.photo("cat")).shape
    (266, 400, 3)
    """
    return like(input)


@flip.plan
def _(input, *, depthwise, horizontal, vertical):
    """Views the axes as [outer, D, H, W, inner]: the axes before, between and after the spatial ones move as a whole."""
    axes = [i for i, c in enumerate(input.layout) if c in "DHW"]
    extents = grouped(input.shapes, *[axes[0]] * (3 - len(axes)), *axes, axes[-1] + 1)
    mirror = np.array([depthwise.each(), vertical.each(), horizontal.each()]).T
    view, pixel = View(extents, "bits"), input.dtype.bytes * int(extents[0, 4])
    if pixel in (2, 4, 8) and (extents[:, 4] == extents[0, 4]).all():  # a pixel moves as one number
        view = View(extents * [1, 1, 1, 1, 0] + [0, 0, 0, 0, 1], f"u{pixel}")
    return Plan(input.shapes, {"extents": extents, "mirror": mirror}, view=view)


@flip.cpu
@kernel
def _mirrored(image, out, mirror):
    outer, depth, height, width, inner = image.shape
    for o in range(outer):
        for d in range(depth):
            for y in range(height):
                from_d = depth - 1 - d if mirror[0] else d
                from_y = height - 1 - y if mirror[1] else y
                row = image[o, from_d, from_y].reshape(width * inner)
                line = out[o, d, y].reshape(width * inner)
                if mirror[2]:
                    _reversed(row, line, width, inner)
                else:
                    copy_bytes(line.ctypes.data, row.ctypes.data, np.uintp(row.nbytes))


@_mirrored.fallback
def _(image, out, mirror):
    deep, high, wide = np.where(mirror, -1, 1)
    out[...] = image[:, ::deep, ::high, ::wide]


@kernel
def _reversed(row, out, width, inner):
    # Unsigned indices, so that numba need not check for negative ones, and the loops become vector code.
    count, one, two, three = np.uint64(width), np.uint64(1), np.uint64(2), np.uint64(3)
    if inner == 1:
        for x in range(count):
            out[x] = row[count - one - x]
    elif inner == 3:
        for x in range(count):
            s, t = three * (count - one - x), three * x
            out[t], out[t + one], out[t + two] = row[s], row[s + one], row[s + two]
    else:
        for x in range(width):
            for c in range(inner):
                out[x * inner + c] = row[(width - 1 - x) * inner + c]


@flip.cuda("flip.cu")
def _(launch, image, out):
    launch("flip", pack=8)
