"""`ndd.equalize`: histogram equalization of each channel."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._cpu.channel_tables import count_pixels, count_plane, look_up
from ndd._operator import Plan, like, operator
from ndd._tensor.store import grouped

_RULES = ("opencv", "pillow")
COUNTED_BY_A_THREAD = 64  # numbers for each GPU thread: enough to outweigh adding a block's counts to the total


@operator(layouts=("HW", "HWC", "CHW", "FHW", "FHWC", "FCHW"), types=("u8",), frames=True)
def equalize(input, /, *, rule: str = "opencv"):
    """Spreads the values of each channel over the whole range, so that all are about equally frequent.

    Each channel of each image (or frame of a video) is equalized separately. With `below(v)` the number of its pixels that are
    at most `v` and `least` that number for its darkest value, a pixel `v` becomes
    `round(255 * (below(v) - least) / (pixels - least))`, halves to even. A channel of a single value stays as it is.

    Args:
        input: uint8, layout HW, HWC or CHW, with a leading F for video; without a layout HW, HWC or FHWC by rank. Any
            number of channels (DALI: 1 to 128 on the CPU); images without pixels stay so (DALI refuses them).
        rule: "opencv", which is DALI's, or "pillow", which is torchvision's too: `step` is the number of pixels darker than the
            brightest value of the channel, divided by 255 and rounded down, and `v` becomes `(below(v - 1) + step // 2) //
            step`, at most 255; where `step` is 0 the channel stays as it is.

    Element type, shape and layout stay. Equal to `cv2.equalizeHist` of each channel.

    Errors: RuntimeError for other element types and rules, ValueError for other layouts.

    >>> import ndd
    >>> ndd.equalize(ndd.tensor([[10, 10, 11], [12, 12, 14]], dtype=ndd.uint8, layout="HW")).torch()
    tensor([[  0,   0,  64],
            [191, 191, 255]], dtype=torch.uint8)
    >>> ndd.equalize(ndd.demo.photo("launch_site")).shape
    (267, 400, 3)
    """
    if rule not in _RULES:
        raise RuntimeError(f"`rule`: expected one of {', '.join(map(repr, _RULES))}, got {rule!r}")
    return like(input)


@equalize.plan
def _(input, *, rule):
    channels_first = (input.layout or "")[:1] == "C"
    # [planes, pixels, channels]
    planes = grouped(input.shapes, 1, input.ndim) if channels_first else grouped(input.shapes, 0, 2)
    shared = {"channels_first": channels_first, "pillow": rule == "pillow"}
    return Plan(input.shapes, shared=shared, view=planes)


# Plain loops compile in half the time of array expressions.


@equalize.cpu
@kernel
def equalize_planes(image, out, pillow):
    """Equalizes each channel of each plane [planes, pixels, channels] separately."""
    planes, pixels, channels = image.shape
    if pixels == 0:
        return
    runs, tables = empty((max(4, 2 * channels), 256), np.int32), empty((channels, 256), np.uint8)
    for plane in range(planes):
        x, y = image[plane], out[plane]
        for row in range(runs.shape[0]):
            for v in range(256):
                runs[row, v] = 0
        if channels == 1:
            count_plane(x.reshape(-1), runs)
        else:
            count_pixels(x, runs)
        for c in range(channels):
            if pillow:
                _fill_as_pillow(runs[c], tables[c], pixels)
            else:
                _fill(runs[c], tables[c], pixels)
        look_up(x, y, tables)


@equalize_planes.fallback
def _(image, out, pillow):
    pixels, fill = image.shape[1], (_fill_as_pillow if pillow else _fill).in_python()
    for plane in range(len(image) if pixels else 0):
        for c in range(image.shape[2]):
            table = np.empty(256, np.uint8)
            fill(np.bincount(image[plane, :, c], minlength=256), table, pixels)
            out[plane, :, c] = table[image[plane, :, c]]


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
def _fill_as_pillow(counts, table, pixels):
    last = 255
    while counts[last] == 0:
        last -= 1
    step = (pixels - counts[last]) // 255
    below = 0
    for v in range(256):
        table[v] = v if step == 0 else min((below + step // 2) // step, 255)
        below += counts[v]


@equalize.cuda("equalize.cu")
def _(launch, image, out, *, channels_first, pillow):
    sizes = image.shapes[:, 1:] if channels_first else image.shapes[:, :2]
    pixels, numbers = sizes.prod(axis=1), image.shapes.prod(axis=1)
    each = image.shapes[:, 0] if channels_first else image.shapes[:, 2:].prod(axis=1)
    one = np.ones_like(each)
    fields = {
        "pixels": pixels, "planes": each if channels_first else one, "channels": one if channels_first else each,
        "counts": launch.scratch(each * 256, np.int32, zeros=True),
    }  # fmt: skip
    for name in ("count", "equalize"):
        launch(
            name, -(-numbers // COUNTED_BY_A_THREAD), per_sample=fields, macros={"PILLOW": 1} if pillow else {}
        )  # fmt: skip
