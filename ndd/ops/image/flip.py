"""`ndd.flip`: mirror images."""

from __future__ import annotations

import numpy as np

from ndd._cpu.jit import kernel
from ndd._operator import PerSample, Plan, like, operator


@operator(layouts=("HW", "HWC", "DHWC", "FDHWC", "FHWC", "CHW", "CDHW", "FCHW", "FCDHW", "FHW"))
def flip(
    input, /, *, depthwise: PerSample[int] = 0, horizontal: PerSample[int] = 1, vertical: PerSample[int] = 0
):
    """Mirrors images and volumes along chosen axes.

    Args:
        input: any element type; layout HWC, CHW, HW, DHWC, CDHW, with a leading F for video. Without a layout:
            HW, HWC or DHWC by rank.
        depthwise, horizontal, vertical: mirror along D, W, H where not 0.

    Shapes, type and layout stay: `out[y, x] = in[y, W - 1 - x]` for a horizontal flip.

    >>> import ndd
    >>> ndd.flip(ndd.tensor([[1, 2, 3]], layout="HW")).torch()
    tensor([[3, 2, 1]], dtype=torch.int32)
    """
    return like(input)


@flip.plan
def _(input, *, depthwise, horizontal, vertical):
    """The axes as [outer, D, H, W, inner]: what lies before, between and behind the spatial axes moves as one."""
    layout = input.layout
    spatial = [i for i, c in enumerate(layout) if c in "DHW"]
    shapes = input.shapes
    extents = np.ones((input.n, 5), np.int64)
    extents[:, 0] = shapes[:, : spatial[0]].prod(axis=1)
    for place, axis in zip((1, 2, 3)[3 - len(spatial) :], spatial, strict=True):
        extents[:, place] = shapes[:, axis]
    extents[:, 4] = shapes[:, spatial[-1] + 1 :].prod(axis=1)
    mirror = np.empty((input.n, 3), np.int64)
    mirror[:, 0], mirror[:, 1], mirror[:, 2] = depthwise, vertical, horizontal
    return Plan(shapes, per_sample={"extents": extents, "mirror": mirror})


@flip.cpu
def _(image, out, extents, mirror):
    if image.size:
        shape = tuple(extents.tolist())
        _mirrored(image.reshape(shape), out.reshape(shape), *mirror.tolist())


@kernel
def _mirrored(image, out, flip_d, flip_h, flip_w):
    outer, depth, height, width, inner = image.shape
    for o in range(outer):
        for d in range(depth):
            source_d = depth - 1 - d if flip_d else d
            for y in range(height):
                source_y = height - 1 - y if flip_h else y
                row = image[o, source_d, source_y]
                target = out[o, d, y]
                if not flip_w:
                    target[:] = row
                elif inner == 3:
                    for x in range(width):
                        s = width - 1 - x
                        target[x, 0] = row[s, 0]
                        target[x, 1] = row[s, 1]
                        target[x, 2] = row[s, 2]
                else:
                    for x in range(width):
                        for c in range(inner):
                            target[x, c] = row[width - 1 - x, c]


flip.cuda("flip.cu")
