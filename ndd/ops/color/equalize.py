"""`ndd.equalize`: histogram equalization of each channel."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cpu.jit import kernel
from ndd._operator import Plan, like, operator

_PER_THREAD = 64  # numbers that a GPU thread counts: enough to make up for adding a block's counts to the others'


@operator(layouts=("HW", "HWC", "CHW", "FHW", "FHWC", "FCHW"), frames=True)
def equalize(input, /):
    """Spreads the values of each channel over the whole range, so that all are about equally frequent.

    Each channel of each image (of video: of each frame) by itself. With `below(v)` the number of its pixels that are
    at most `v` and `least` that number for its darkest value, a pixel `v` becomes
    `round(255 * (below(v) - least) / (pixels - least))`, halves to even. A channel of a single value stays as it is.

    Args:
        input: uint8, layout HW, HWC or CHW, with a leading F for video; without a layout HW, HWC or FHWC by rank. Any
            number of channels (DALI: 1 to 128 on the CPU); images without pixels stay so (DALI refuses them).

    Element type, shape and layout stay. Equal to `cv2.equalizeHist` of each channel. `PIL.ImageOps.equalize` and
    torchvision's `equalize` differ: they divide in integers, by a step that leaves out the brightest value.

    Errors: RuntimeError for other element types, ValueError for other layouts.

    >>> import ndd
    >>> ndd.equalize(ndd.tensor([[10, 10, 11], [12, 12, 14]], dtype=ndd.uint8, layout="HW")).torch()
    tensor([[  0,   0,  64],
            [191, 191, 255]], dtype=torch.uint8)
    """
    if input.dtype.name != "u8":
        raise RuntimeError(f"equalize: Unsupported input type: {input.dtype}. Expected u8.")
    return like(input)


@equalize.plan
def _(input):
    first = 1 if (input.layout or "")[:1] == "C" else 0
    if input.spec.device.device_id is None:
        return Plan(input.shapes, shared={"channels_first": first})
    sides = input.shapes[:, first : first + 2]
    ones = np.ones(input.n, np.int64)
    other = ones if input.ndim == 2 else input.shapes[:, 0 if first else 2]
    per_sample = {
        "pixels": sides[:, 0] * sides[:, 1], "planes": other if first else ones, "channels": ones if first else other,
    }  # fmt: skip
    return Plan(input.shapes, per_sample)


@equalize.cpu
def _(image, out, channels_first):
    if not image.size:
        return
    if channels_first:
        planes = (image.shape[0], -1, 1)
    else:
        planes = (1, image.shape[0] * image.shape[1], -1)
    _equalize(image.reshape(planes), out.reshape(planes))


@kernel
def _equalize(image, out):
    planes, pixels, channels = image.shape
    counts = np.empty((channels, 256), np.int32)
    table = np.empty((channels, 256), np.uint8)
    for plane in range(planes):
        x, y = image[plane], out[plane]
        _count(x, counts)
        for c in range(channels):
            _fill(counts[c], table[c], pixels)
        _look_up(x, y, table)


@kernel
def _count(x, counts):
    """Two runs of counters in turn: a number that follows itself does not wait for its counter."""
    pixels, channels = x.shape
    odd = np.zeros((channels, 256), np.int32)
    counts[:] = 0
    if channels == 3:
        for i in range(0, pixels - 1, 2):
            for c in range(3):
                counts[c, x[i, c]] += 1
                odd[c, x[i + 1, c]] += 1
    else:
        for i in range(0, pixels - 1, 2):
            for c in range(channels):
                counts[c, x[i, c]] += 1
                odd[c, x[i + 1, c]] += 1
    if pixels % 2:
        for c in range(channels):
            counts[c, x[pixels - 1, c]] += 1
    counts += odd


@kernel
def _fill(counts, table, pixels):
    first = 0
    while counts[first] == 0:
        first += 1
    least = counts[first]
    if least == pixels:
        table[first] = first
        return
    scale = np.float32(255) / np.float32(pixels - least)
    total = np.int32(-least)
    for v in range(first, 256):
        total += counts[v]
        table[v] = np.uint8(np.rint(np.float32(total) * scale))


@kernel
def _look_up(x, y, table):
    pixels, channels = x.shape
    if channels == 3:
        for i in range(pixels):
            for c in range(3):
                y[i, c] = table[c, x[i, c]]
    else:
        for i in range(pixels):
            for c in range(channels):
                y[i, c] = table[c, x[i, c]]


@equalize.cuda("equalize.cu")
def _(launch, image, out):
    places: Any = launch.remember("places", lambda: _places(launch.plan.per_sample))
    memory = launch.empty(places[1], np.int32)
    memory.zero_()
    addresses = {"counts": memory.data_ptr() + places[0]}
    for kernel_name in ("count", "equalize"):
        launch(kernel_name, places[2], kept=kernel_name, addresses=addresses)


def _places(sizes: dict[str, Any]) -> tuple[np.ndarray, int, np.ndarray]:
    """Where the counts of each sample begin, in bytes; how many there are; threads for each sample."""
    counts = sizes["planes"] * sizes["channels"] * 256
    threads = -(-(sizes["pixels"] * sizes["channels"]) // _PER_THREAD)
    return 4 * (np.cumsum(counts) - counts), int(counts.sum()), threads
