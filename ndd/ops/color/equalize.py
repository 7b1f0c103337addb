"""`ndd.equalize`: histogram equalization of each channel."""

from __future__ import annotations

import numpy as np

from ndd._cpu.jit import kernel
from ndd._operator import Plan, like, operator

_PER_THREAD = 64  # numbers that a GPU thread counts: enough to make up for adding a block's counts to the others'


@operator(layouts=("HW", "HWC", "CHW", "FHW", "FHWC", "FCHW"), types=("u8",), frames=True)
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
    return like(input)


@equalize.plan
def _(input):
    return Plan(input.shapes, shared={"channels_first": (input.layout or "")[:1] == "C"})


@equalize.cpu_batch
def _(input, out, channels_first):
    """Each of the planes [planes, pixels, channels] by itself."""
    if not input.size:
        return
    n = len(input)
    planes = (n * input.shape[1], -1, 1) if channels_first else (n, input.shape[1] * input.shape[2], -1)
    image, out = input.reshape(planes), out.reshape(planes)
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
def _(launch, image, out, *, channels_first):
    sizes = image.shapes[:, 1:] if channels_first else image.shapes[:, :2]
    pixels, numbers = sizes.prod(axis=1), image.shapes.prod(axis=1)
    each = image.shapes[:, 0] if channels_first else image.shapes[:, 2:].prod(axis=1)
    one = np.ones_like(each)
    fields = {
        "pixels": pixels, "planes": each if channels_first else one, "channels": one if channels_first else each,
        "counts": launch.scratch(each * 256, np.int32, zeros=True),
    }  # fmt: skip
    for name in ("count", "equalize"):
        launch(name, -(-numbers // _PER_THREAD), per_sample=fields)
