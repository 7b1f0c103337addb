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


@equalize.old_plan
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
    if channels_first:
        planes = (image.shape[0], -1, 1)
    else:
        planes = (1, image.shape[0] * image.shape[1], -1)
    _equalized(image, out, planes)


@equalize.cpu_batch
def _(input, out, channels_first):
    n = len(input)
    if channels_first:
        planes = (n * input.shape[1], -1, 1)
    else:
        planes = (n, input.shape[1] * input.shape[2], -1)
    _equalized(input, out, planes)


def _equalized(image: np.ndarray, out: np.ndarray, planes: tuple[int, int, int]) -> None:
    """Each of the planes [planes, pixels, channels] of `image` by itself."""
    if not image.size:
        return
    image, out = image.reshape(planes), out.reshape(planes)
    channels = image.shape[2]
    runs, tables = np.empty((max(4, 2 * channels), 256), np.int32), np.empty((channels, 256), np.uint8)
    _equalize(image, out, runs, tables)


# Plain loops: they compile in half the time of array expressions.


@kernel
def _equalize(image, out, runs, tables):
    planes, pixels, channels = image.shape
    for plane in range(planes):
        x, y = image[plane], out[plane]
        for row in range(runs.shape[0]):
            for v in range(256):
                runs[row, v] = 0
        if channels == 1:
            _count_plane(x.reshape(-1), runs)
        else:
            _count_pixels(x, runs)
        for c in range(channels):
            _fill(runs[c], tables[c], pixels)
        _look_up(x, y, tables)


@kernel
def _count_plane(x, runs):
    """Reads 8 numbers at once; four runs of counters in turn: a number that follows itself does not wait for its own."""
    a, b, c, d = runs[0], runs[1], runs[2], runs[3]
    head = min(-x.ctypes.data % 8, x.size)
    words = x[head : head + (x.size - head) // 8 * 8].view(np.uint64)
    byte = np.uint64(255)
    for i in range(words.size):
        word = words[i]
        a[word & byte] += 1
        b[word >> np.uint64(8) & byte] += 1
        c[word >> np.uint64(16) & byte] += 1
        d[word >> np.uint64(24) & byte] += 1
        a[word >> np.uint64(32) & byte] += 1
        b[word >> np.uint64(40) & byte] += 1
        c[word >> np.uint64(48) & byte] += 1
        d[word >> np.uint64(56)] += 1
    for i in range(head):
        a[x[i]] += 1
    for i in range(head + 8 * words.size, x.size):
        a[x[i]] += 1
    for v in range(256):
        a[v] += b[v] + c[v] + d[v]


@kernel
def _count_pixels(x, runs):
    """Two runs of counters for each channel in turn."""
    pixels, channels = x.shape
    start = 0
    if channels == 3:
        for i in range(0, pixels - 1, 2):
            for c in range(3):
                runs[c, x[i, c]] += 1
                runs[3 + c, x[i + 1, c]] += 1
        start = pixels // 2 * 2
    for i in range(start, pixels):
        for c in range(channels):
            runs[c, x[i, c]] += 1
    for c in range(channels):
        for v in range(256):
            runs[c, v] += runs[channels + c, v]


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
def _look_up(x, y, tables):
    pixels, channels = x.shape
    if channels == 3:
        for i in range(pixels):
            for c in range(3):
                y[i, c] = tables[c, x[i, c]]
    else:
        for c in range(channels):
            table = tables[c]
            for i in range(pixels):
                y[i, c] = table[x[i, c]]


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
