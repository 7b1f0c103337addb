"""`ndd.color_jitter`: brightness, contrast, saturation and hue changed at random, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._cpu.draws import uniform_numbers
from ndd._operator import Operand, PerSample, Plan, Values, View, bad_sample, like, operator
from ndd._tensor.convert import convert_array
from ndd._tensor.store import grouped

BRIGHTNESS, CONTRAST, SATURATION, HUE, NONE = range(5)
_NAMES = ("brightness", "contrast", "saturation", "hue")
_RUN = 1024  # pixels whose channels stay in the L1 cache
_BY_A_THREAD = 16  # pixels that a GPU thread adds up
_F = np.float32
_LAYOUTS, _TYPES = ("HWC", "CHW", "FHWC", "FCHW"), ("u8", "f16", "f32")


@operator(layouts=_LAYOUTS, masks=True, types=_TYPES, random=True)
def color_jitter(
    input,
    /,
    *,
    brightness: PerSample[list[float]] = None,
    contrast: PerSample[list[float]] = None,
    hue: PerSample[list[float]] = None,
    order: PerSample[list[int]] = None,
    saturation: PerSample[list[float]] = None,
):
    """Changes brightness, contrast, saturation and hue by random factors, one after the other in a random order.

    The rule is that of torchvision's `v2.ColorJitter`; the numbers are drawn for each sample, and the frames of a video
    share them.

    Args:
        input: RGB images or images of one channel, HWC or CHW, with a leading F for video; without a layout HWC or FHWC by
            rank. A mask, HW, counts as one channel and comes out as HW. uint8, or float16 or float32 from 0 to 1.
        brightness, contrast, saturation: one number `v`: the factor is uniform from `max(0, 1 - v)` to `1 + v`; or two, the
            least and the largest factor. Not negative. None: no change.
        hue: one number `v`: the shift is uniform from `-v` to `v`, in turns of the circle of hues; or two. Within -0.5 to 0.5.
        order: a permutation of 0 (brightness), 1 (contrast), 2 (saturation) and 3 (hue). Default: a random one for each sample.
        rng: an `RNG`; without it the thread's default one. A call advances it by seven words.

    Brightness is `factor * in`. Contrast and saturation are `factor * in + (1 - factor) * grey`, where `grey` is `0.2989 R +
    0.587 G + 0.114 B` of the pixel or, for contrast, its mean over the image (over each frame of a video). Hue is shifted in
    HSV. Each step is clipped to the range of the type and truncated for uint8, as in torchvision: results differ from
    torchvision's by at most 1 of 255, floats by 1e-5. One channel has neither saturation nor hue. Element type, shape and
    layout stay.

    `color_twist` is one matrix for all four, with a fixed grey, and faster.

    Raises RuntimeError for other types, other numbers of channels, ranges that are not increasing or out of bounds, and an
    `order` that is not a permutation; ValueError for other layouts.

    >>> import ndd
    >>> image = ndd.tensor([[[200, 100, 50]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.color_jitter(image, brightness=[0.5, 0.5]).torch().flatten().tolist()
    [100, 50, 25]
    >>> ndd.color_jitter(image, saturation=[0, 0]).torch().flatten().tolist()
    [124, 124, 124]
    """
    return like(input)


@color_jitter.plan
def _(call, input, *, brightness, contrast, hue, order, saturation):
    uniform = uniform_numbers(call.draws.streams(input.n), 8)
    steps = np.argsort(uniform[:, 4:], axis=1).astype(np.int32) if order is None else _permutations(order)
    factors = np.zeros((input.n, 4, 2), _F)  # for the pixel, and for grey
    for k, values in enumerate((brightness, contrast, saturation, hue)):
        if values is None:
            steps[steps == k] = NONE
            continue
        low, high = _ranges(_NAMES[k], values, 0.0 if k == HUE else 1.0).T
        factor = low + (high - low) * uniform[:, k]
        factors[:, k, 0], factors[:, k, 1] = factor, 1 - factor
    return _planned(input, steps, factors)


def _planned(input: Operand, steps: np.ndarray, factors: np.ndarray) -> Plan:
    layout = input.layout or ""
    first = int(layout.startswith("F"))
    channels_first = layout.endswith("CHW")
    channels = input.shapes[:, first if channels_first else -1]
    for i in np.flatnonzero((channels != 1) & (channels != 3))[:1]:
        text = f"expected 1 or 3 channels, got {channels[i]}: shape {tuple(input.shapes[i].tolist())}"
        raise bad_sample(int(i), text)
    if not first:
        inner = grouped(input.shapes, 0, 1) if channels_first else grouped(input.shapes, 0, 2)
    else:
        inner = grouped(input.shapes, 1, 2) if channels_first else grouped(input.shapes, 1, 3)
    bound = _F(255) if input.dtype.name == "u8" else _F(1)
    shared = {"planar": channels_first, "bound": bound}
    return Plan(input.shapes, {"steps": steps, "factors": factors}, shared, view=View(inner), work=8 * input.sizes)


@operator(layouts=_LAYOUTS, masks=True, types=_TYPES, register=False)
def color_step(input, /, *, step: int, factors: PerSample[list[float]]):
    """One change of `color_jitter` by its number, with the factors of the pixel and of grey; of a hue its shift, and any number.
    1 less a factor that is rounded to float32 is another number than what is 1 less the factor."""
    return like(input)


@color_step.plan
def _(input, *, step, factors):
    steps, both = np.full((input.n, 4), NONE, np.int32), np.zeros((input.n, 4, 2), _F)
    steps[:, 0], both[:, step] = step, factors.rows(2)
    return _planned(input, steps, both)


def _ranges(name: str, values: Values, center: float) -> np.ndarray:
    """The least and the largest factor of each sample, float64 [N, 2] or [1, 2]."""
    rows: list[Sequence[float]] = []
    least, most = (-0.5, 0.5) if name == "hue" else (0.0, np.inf)
    for i, row in enumerate(values.distinct()):
        numbers: list[Any] = row.reshape(-1).tolist()
        if len(numbers) == 1:
            reach = numbers[0]
            numbers = [max(center - reach, least) if name != "hue" else -reach, center + reach]
            if not reach >= 0:
                raise values.error(i, f"argument {name!r}: expected one number from 0 or a range, got {reach:g}")
        if len(numbers) != 2 or not least <= numbers[0] <= numbers[1] <= most:
            bounds = "within -0.5 to 0.5" if name == "hue" else "not negative"
            raise values.error(
                i, f"argument {name!r}: expected one number or a range (least, largest), {bounds}, got {numbers}"
            )
        rows.append(numbers)
    return np.array(rows, np.float64)


def _permutations(order: Values) -> np.ndarray:
    steps = order.rows(4, meaning="a permutation of 0 to 3").astype(np.int32)
    for i in np.flatnonzero((np.sort(steps, axis=1) != np.arange(4)).any(axis=1))[:1]:
        raise order.error(int(i), f"argument 'order': expected a permutation of 0 to 3, got {steps[i].tolist()}")
    return steps


@color_step.cpu
@color_jitter.cpu
def _jittered(image, out, steps, factors, planar, bound):
    if not image.size:
        return
    if image.dtype == np.float16:
        wide = convert_array(image, "f16", "f32")
        changed = np.empty_like(wide)
        jitter_frames(wide, changed, steps, factors, planar, bound)
        convert_array(changed, "f32", "f16", out)
    else:
        jitter_frames(image, out, steps, factors, planar, bound)


@kernel
def jitter_frames(image, out, steps, factors, planar, bound):
    """Frames [F, C, pixels] if `planar`, else [F, pixels, C]."""
    frames = image.shape[0]
    channels, pixels = (image.shape[1], image.shape[2]) if planar else (image.shape[2], image.shape[1])
    run = empty((3, min(_RUN, pixels)), np.float32)
    place = 4  # the step that changes contrast, which needs the mean of the result before it
    for k in range(4):
        if steps[k] == CONTRAST:
            place = k
    for f in range(frames):
        mean = np.float32(0)
        if place < 4:
            total = np.float64(0)
            for first in range(0, pixels, _RUN):
                size = min(_RUN, pixels - first)
                _load(run, image[f], first, size, channels, planar)
                for k in range(place):
                    _change(run, size, steps[k], factors, mean, channels, bound)
                total += _sum_of_grey(run, size, channels, bound)
            mean = np.float32(total / pixels)
        for first in range(0, pixels, _RUN):
            size = min(_RUN, pixels - first)
            _load(run, image[f], first, size, channels, planar)
            for k in range(4):
                _change(run, size, steps[k], factors, mean, channels, bound)
            _store(run, out[f], first, size, channels, planar)


@kernel
def _load(run, image, first, size, channels, planar):
    for c in range(channels):
        if planar:
            for i in range(size):
                run[c, i] = np.float32(image[c, first + i])
        else:
            for i in range(size):
                run[c, i] = np.float32(image[first + i, c])


@kernel
def _store(run, out, first, size, channels, planar):
    for c in range(channels):
        if planar:
            for i in range(size):
                out[c, first + i] = run[c, i]
        else:
            for i in range(size):
                out[first + i, c] = run[c, i]


@kernel(inline="always")
def _cut(value, bound):
    value = min(max(value, np.float32(0)), bound)
    return np.floor(value) if bound > np.float32(1) else value


@kernel(inline="always")
def _fused(a, b, c):
    """a * b + c with one rounding, as in torch's `add` with a factor. The product is exact in float64."""
    return np.float32(np.float64(a) * np.float64(b) + np.float64(c))


@kernel(inline="always")
def _grey(run, i, bound):
    grey = _fused(np.float32(0.587), run[1, i], np.float32(0.2989) * run[0, i])
    grey = _fused(np.float32(0.114), run[2, i], grey)
    return np.floor(grey) if bound > np.float32(1) else grey


@kernel
def _sum_of_grey(run, size, channels, bound):
    total = np.float64(0)
    if channels == 3:
        for i in range(size):
            total += np.float64(_grey(run, i, bound))
    else:
        for i in range(size):
            total += np.float64(run[0, i])
    return total


@kernel
def _change(run, size, step, factors, mean, channels, bound):
    """One step for some pixels."""
    if step == NONE:
        return
    factor, rest = factors[step, 0], factors[step, 1]
    if step == BRIGHTNESS:
        for c in range(channels):
            for i in range(size):
                run[c, i] = _cut(run[c, i] * factor, bound)
    elif step == CONTRAST:
        for c in range(channels):
            for i in range(size):
                run[c, i] = _cut(_fused(rest, mean, run[c, i] * factor), bound)
    elif channels == 3 and step == SATURATION:
        for i in range(size):
            grey = _grey(run, i, bound)
            for c in range(3):
                run[c, i] = _cut(_fused(rest, grey, run[c, i] * factor), bound)
    elif channels == 3 and step == HUE:
        _shift_hue(run, size, factor, bound)


@kernel
def _shift_hue(run, size, shift, bound):
    zero, one, six = np.float32(0), np.float32(1), np.float32(6)
    scale = one / bound
    back = bound + np.float32(0.999) if bound > one else one
    for i in range(size):
        r, g, b = run[0, i] * scale, run[1, i] * scale, run[2, i] * scale
        high, low = max(r, max(g, b)), min(r, min(g, b))
        span = high - low
        s = span / (high if span != zero else one)
        divisor = span if span != zero else one
        rc, gc, bc = (high - r) / divisor, (high - g) / divisor, (high - b) / divisor
        if high == r:
            h = bc - gc
        elif high == g:
            h = np.float32(2) + rc - bc
        else:
            h = np.float32(4) + gc - rc
        h = h * (one / six) + one
        h = h - np.floor(h) + shift
        h = (h - np.floor(h)) * six
        sector = np.floor(h)
        f = h - sector
        q = min(max((one - s * f) * high, zero), one)
        t = min(max((one - s + s * f) * high, zero), one)
        p = min(max((one - s) * high, zero), one)
        if sector == 0 or sector == 6:
            r, g, b = high, t, p
        elif sector == 1:
            r, g, b = q, high, p
        elif sector == 2:
            r, g, b = p, high, t
        elif sector == 3:
            r, g, b = p, q, high
        elif sector == 4:
            r, g, b = t, p, high
        else:
            r, g, b = high, p, q
        run[0, i], run[1, i], run[2, i] = _cut(r * back, bound), _cut(g * back, bound), _cut(b * back, bound)


@color_step.cuda("color_jitter.cu")
@color_jitter.cuda("color_jitter.cu")
def _launched(launch, input, out, *, steps, planar):
    frames = input.shapes[:, 0] if input.ndim == 4 else np.ones(input.n, np.int64)
    channels = input.shapes[:, -3 if planar else -1]
    pixels = input.sizes // np.maximum(frames * channels, 1)
    changed = (steps == CONTRAST).any(axis=1)
    fields = {
        "frames": frames, "channels": channels, "pixels": pixels,
        "sums": launch.scratch(np.where(changed, frames, 0), np.float64, zeros=True),
    }  # fmt: skip
    each = {"EACH": _BY_A_THREAD}
    if changed.any():
        launch("sum_of_grey", -(-pixels // _BY_A_THREAD) * frames * changed, per_sample=fields, macros=each)
    launch("color_jitter", frames * pixels, per_sample=fields, macros=each)
