"""`ndd.random_erasing`: fills a random rectangle of an image with a value or with noise."""

from __future__ import annotations

import functools
from typing import Literal

import numpy as np

from ndd._compiled.jit import kernel
from ndd._cpu.draws import normal_row, uniform_numbers
from ndd._cpu.philox import CHUNK
from ndd._operator import PerSample, Plan, Values, like, operator
from ndd.ops.image.erase import region_plan
from ndd.ops.image.window import elements_of, numbers_of

_ATTEMPTS = 10
_OTHER_KEY = np.array([0x9F3C81D25B7A640E, 0, 0, 0], np.uint64)  # of the noise, so that rectangles use other words


@operator(layouts=("HWC", "CHW", "HW", "FHWC", "FCHW"), random=True)
def random_erasing(
    input,
    /,
    *,
    p: PerSample[float] = 0.5,
    ratio: PerSample[list[float]] = (0.3, 3.3),
    scale: PerSample[list[float]] = (0.02, 0.33),
    value: PerSample[list[float] | Literal["random"]] = (0.0,),
):
    """Fills a random rectangle of some images ("Random Erasing Data Augmentation", https://arxiv.org/abs/1708.04896).

    The rule and the defaults are those of torchvision's `v2.RandomErasing`. Numbers are drawn for each sample; the frames of
    a video share them.

    Args:
        input: HWC, CHW or HW, with a leading F for video, of any element type; without a layout HWC, HW or FHWC by rank.
        p: the probability that an image is changed, from 0 to 1.
        scale: the smallest and the largest area of the rectangle, as fractions of the image's.
        ratio: the smallest and the largest height / width of the rectangle; its logarithm is uniform.
        value: the fill: one number, or one for each channel, converted as in C (the fraction is dropped,
            integers wrap); or "random": numbers of a standard normal distribution, which suit normalized images.
        rng: an `RNG`; without it the thread's default one. A call advances it by seven words.

    With `share` and `ratio` drawn, the rectangle has `round(sqrt(share * H * W * ratio))` rows and
    `round(sqrt(share * H * W / ratio))` columns, and all places are equally likely. If no rectangle in ten attempts has fewer
    rows and columns than the image, the image stays unchanged. Element type, shape and layout stay. CPU and GPU erase the same.

    Raises RuntimeError for a `p` or `scale` outside of 0 to 1, for ranges that are not increasing, for ratios not above 0 and
    for another number of values than 1 or the channels; ValueError for other layouts.

    >>> import ndd
    >>> image = ndd.ones(shape=[4, 6], dtype=ndd.uint8)
    >>> ndd.random_erasing(image, p=1, scale=[0.25, 0.25], rng=ndd.random.RNG(4)).torch()
    tensor([[1, 1, 1, 1, 1, 1],
            [1, 1, 0, 0, 1, 1],
            [1, 1, 0, 0, 1, 1],
            [1, 1, 0, 0, 1, 1]], dtype=torch.uint8)
    """
    return like(input)


@random_erasing.plan
def _(call, input, *, p, ratio, scale, value):
    layout, n = input.layout or "", input.n
    rows = layout.index("H")
    streams = call.draws.streams(n)
    start, size = _rectangles(input.shapes[:, rows : rows + 2], streams, p, scale, ratio)
    bounds = np.zeros((n, 1, 2, input.ndim), np.int64)
    bounds[:, 0, 1] = input.shapes
    bounds[:, 0, 0, rows : rows + 2], bounds[:, 0, 1, rows : rows + 2] = start, start + size
    if isinstance(value.constant, str):
        numbers = {"bounds": bounds, "stream": streams ^ _OTHER_KEY}
        fill_one = functools.partial(_with_noise, dtype=input.dtype)
        return Plan(input.shapes, numbers, {"frames": int(layout.startswith("F"))}, kernel=fill_one)
    return region_plan(input, bounds, value, layout)


def _rectangles(
    extents: np.ndarray, streams: np.ndarray, p: Values, scale: Values, ratio: Values
) -> tuple[np.ndarray, np.ndarray]:
    """Begin and size of each rectangle, (y, x) and (h, w), int64 [N, 2]; sizes are 0 if nothing is erased."""
    n = len(extents)
    chance, shares, ratios = p.each(), _range(scale), _range(ratio)
    for values, wrong, bounds in (
        (p, ~((chance >= 0) & (chance <= 1)), "a probability from 0 to 1"),
        (scale, ~((shares[:, 0] >= 0) & (shares[:, 1] <= 1)), "parts of the area from 0 to 1"),
        (ratio, ~((ratios[:, 0] > 0) & (ratios[:, 1] < np.inf)), "ratios above 0"),
    ):
        for i in np.flatnonzero(wrong)[:1].tolist():
            came = values.arrays()[i].tolist() if n else None
            raise values.error(i, f"argument {values.name!r}: expected {bounds}, got {came}")
    drawn = uniform_numbers(streams, 3 + 2 * _ATTEMPTS).astype(np.float64)
    area = extents.prod(axis=1, keepdims=True) * (shares[:, :1] + (shares[:, 1:] - shares[:, :1]) * drawn[:, 3::2])
    logs = np.log(ratios)
    aspect = np.exp(logs[:, :1] + (logs[:, 1:] - logs[:, :1]) * drawn[:, 4::2])
    sizes = np.rint(np.sqrt(np.stack([area * aspect, area / aspect], axis=-1)))
    fitting = np.asarray((sizes < extents[:, None]).all(axis=2))
    chosen = sizes[np.arange(n), fitting.argmax(axis=1)]
    size = np.where((fitting.any(axis=1) & (drawn[:, 0] < chance))[:, None], chosen, 0).astype(np.int64)
    return (drawn[:, 1:3] * (extents - size + 1)).astype(np.int64), size


def _range(values: Values) -> np.ndarray:
    ranges = values.rows(2, meaning="the least and the largest").astype(np.float64)
    for i in np.flatnonzero(~(ranges[:, 0] <= ranges[:, 1]))[:1]:
        raise values.error(
            int(i), f"argument {values.name!r}: expected the least and the largest, got {ranges[i].tolist()}"
        )
    return ranges


def _with_noise(image, out, bounds, stream, frames, dtype):
    out[...] = image
    low, high = bounds[0]
    noise = np.empty((high - low)[frames:], np.float32)
    if noise.size:
        shape = np.array(image.shape[frames:])
        start, size = low[frames:], np.array(noise.shape)
        if len(shape) == 2:
            shape, start, size = np.append(shape, 1), np.append(start, 0), np.append(size, 1)
        _draw(noise.reshape(size), stream, shape, start)
        place = tuple([slice(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)])
        out[place] = elements_of(noise, dtype)


@kernel
def _draw(out, stream, extents, start):
    """Draws normal numbers for the elements of a region [a, b, c] of an array of these extents. Each element has its own
    words."""
    for a in range(out.shape[0]):
        for b in range(out.shape[1]):
            first = ((start[0] + a) * extents[1] + start[1] + b) * extents[2] + start[2]
            for c in range(0, out.shape[2], CHUNK):
                normal_row(out[a, b, c : c + CHUNK], stream, first + c)


_draw.fallback()


@random_erasing.cuda("random_erasing.cu")
def _(launch, input, out, *, fill=None):
    if fill is not None:
        launch("erase", per_sample={"fill": numbers_of(fill, input.dtype)}, file="erase.cu")
    else:
        launch("random_erasing")
