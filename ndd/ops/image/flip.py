"""`ndd.flip`: mirror images."""

from __future__ import annotations

import numpy as np

from ndd._cpu.opencv import single_threaded
from ndd._operator import PerSample, Plan, like, operator

_CHUNK = 8  # elements that a GPU thread makes
_PIXEL = 128  # the largest pixel that OpenCV mirrors, in bytes


@operator(layouts=("FDHWC", "FHWC", "DHWC", "HWC", "FCDHW", "FCHW", "CDHW", "CHW", "HW", "FHW"))
def flip(input, /, *, depthwise: PerSample[int] = 0, horizontal: PerSample[int] = 1, vertical: PerSample[int] = 0):
    """Mirrors images and volumes along chosen axes.

    Args:
        input: layout HWC, CHW, DHWC, CDHW, with a leading F for video; without a layout HWC, FHWC or FDHWC by rank.
            Any element type. (DALI 2.4.0 refuses float16 and bool, and images without channels: HW, FHW.)
        depthwise, horizontal, vertical: mirror along D, W, H where not 0.

    Shapes, type and layout stay: `out[y, x] = in[y, W - 1 - x]` for a horizontal flip. The pixels are those of
    `numpy.flip`, `cv2.flip` and torchvision's `hflip` and `vflip`.

    Raises ValueError for other layouts, RuntimeError if `horizontal` and the like are not one number for each sample.

    >>> import ndd
    >>> ndd.flip(ndd.tensor([[1, 2, 3]], layout="HW")).torch()
    tensor([[3, 2, 1]], dtype=torch.int32)
    """
    return like(input)


@flip.plan
def _(input, *, depthwise, horizontal, vertical):
    """The axes as [outer, D, H, W, inner]: what lies before, between and behind the spatial axes moves as one."""
    shapes, axes = input.shapes, [i for i, c in enumerate(input.layout) if c in "DHW"]
    extents = np.ones((input.n, 5), np.int64)
    extents[:, 0], extents[:, 4] = shapes[:, : axes[0]].prod(axis=1), shapes[:, axes[-1] + 1 :].prod(axis=1)
    extents[:, 4 - len(axes) : 4] = shapes[:, axes]
    mirror = np.array([depthwise.each(), vertical.each(), horizontal.each()]).T
    return Plan(shapes, {"extents": extents, "mirror": mirror})


@flip.cpu
def _(image, out, extents, mirror):
    if not image.size:
        return
    depthwise, vertical, horizontal = [-1 if m else 1 for m in mirror.tolist()]
    source, target = image.reshape(extents).view(np.uint8)[:, ::depthwise], out.reshape(extents).view(np.uint8)
    if vertical == horizontal == 1 or source.shape[-1] > _PIXEL:
        target[...] = source[:, :, ::vertical, ::horizontal]  # whole lines: NumPy copies them as fast as memory allows
        return
    axes = 0 if horizontal == 1 else vertical  # OpenCV's number: 0 vertical, 1 horizontal, -1 both
    for place in np.ndindex(source.shape[:2]):
        single_threaded().flip(source[place], axes, target[place])


@flip.cuda("flip.cu")
def _(launch, image, out):
    launch("flip", -(-out.sizes // _CHUNK), macros={"CHUNK": _CHUNK})
