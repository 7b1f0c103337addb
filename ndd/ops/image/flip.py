"""`ndd.flip`: mirror images."""

from __future__ import annotations

import numpy as np

from ndd._cpu.jit import External, kernel
from ndd._operator import PerSample, Plan, like, operator

_CHUNK = 8  # elements that a GPU thread makes


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


@flip.cpu_batch
def _(input, out, extents, mirror):
    if not input.size:
        return
    *outside, inner = extents[0].tolist()
    pixel = inner * input.itemsize
    # Four compiled kernels serve all types; a pixel of 2, 4 or 8 bytes moves as one number.
    size, inner = (pixel, 1) if pixel in (1, 2, 4, 8) else (input.itemsize, inner)
    shape = (len(input), *outside, pixel)
    source, target = input.reshape(len(input), -1).view(np.uint8), out.reshape(len(out), -1).view(np.uint8)
    _mirrored(source.reshape(shape).view(f"u{size}"), target.reshape(shape).view(f"u{size}"), mirror, inner)


_copy = External("memcpy", "uintp(uintp, uintp, uintp)")


@kernel
def _mirrored(images, out, mirror, inner):
    count, outer, depth, height, width, _ = images.shape
    for n in range(count):
        for o in range(outer):
            for d in range(depth):
                for y in range(height):
                    from_d = depth - 1 - d if mirror[n, 0] else d
                    from_y = height - 1 - y if mirror[n, 1] else y
                    row = images[n, o, from_d, from_y].reshape(width * inner)
                    line = out[n, o, d, y].reshape(width * inner)
                    if mirror[n, 2]:
                        _reversed(row, line, width, inner)
                    else:
                        _copy(line.ctypes.data, row.ctypes.data, np.uintp(row.nbytes))


@_mirrored.meanwhile
def _(images, out, mirror, inner):
    for image, target, (deep, high, wide) in zip(images, out, np.where(mirror, -1, 1), strict=True):
        target[...] = image[:, ::deep, ::high, ::wide]


@kernel
def _reversed(row, out, width, inner):
    # Unsigned indices: numba need not ask whether one counts from the end, and makes vector code of the loops.
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
    launch("flip", -(-out.sizes // _CHUNK), macros={"CHUNK": _CHUNK})
