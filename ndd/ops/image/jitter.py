"""`ndd.jitter`: moves every pixel by a small random distance."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._cpu.philox import CHUNK, element_words
from ndd._operator import PerSample, Plan, View, like, operator
from ndd._tensor.convert import convert_array
from ndd.types import DALIInterpType


@operator(layouts=("HWC", "FHWC"), masks=True, frames=True, random=True)
def jitter(
    input,
    /,
    *,
    fill_value: float = 0.0,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
    mask: PerSample[int] = 1,
    nDegree: int = 2,
):
    """Moves every pixel by a random number of pixels: the picture looks as if seen through rough glass.

    Args:
        input: any element type; layout HWC or FHWC (DALI: HWC). Without a layout: HWC or FHWC by rank. A mask, HW,
            counts as one channel and comes out as HW.
        nDegree: pixels move by whole numbers from -(nDegree // 2) to nDegree // 2, all equally likely.
        mask: samples with a 0 stay unchanged.
        fill_value: the value of pixels from outside the image; rounded and saturated for integers.
        interp_type: has no effect, as pixels move by whole numbers.
        rng: an `RNG`; without it the thread's default one. A call advances it by seven words.

    `out[y, x] = in[y + dy, x + dx]`, dx and dy from the two words of each pixel. Type, shape and layout stay. Runs on the CPU
    and the GPU with the same result; DALI's runs on the GPU only, and draws other numbers. PIL's `Image.effect_spread` moves
    pixels by random steps too, but takes none from outside the image.

    Raises ValueError for other layouts and ranks, RuntimeError for a negative `nDegree` and for a `mask` that is not
    one number for each sample.

    >>> import ndd, numpy as np
    >>> grid = ndd.tensor(np.arange(1, 17).reshape(4, 4, 1), layout="HWC")
    >>> ndd.jitter(grid, rng=ndd.random.RNG(2)).torch()[..., 0]
    tensor([[ 0,  2,  4,  4],
            [ 5,  3,  2, 11],
            [ 5, 10,  7, 16],
            [14, 15, 16,  0]])
    >>> ndd.jitter(ndd.demo.photo("cat"), nDegree=12, rng=ndd.random.RNG(1)).shape
    (266, 400, 3)
    """
    if nDegree < 0:
        raise RuntimeError(f"argument 'nDegree': expected at least 0, got {nDegree}")
    return like(input)


@jitter.plan
def _(call, input, *, fill_value, interp_type, mask, nDegree):
    fill = convert_array(np.full(1, fill_value, np.float32), "f32", input.dtype.name)
    reach = np.where(mask.each() != 0, nDegree // 2, 0)
    per_sample = {"extents": input.shapes, "stream": call.draws.streams(input.n), "reach": reach}
    view = View("flat", "bits") if fill.dtype == np.float16 else "flat"
    return Plan(input.shapes, per_sample, {"fill": fill[0], "fill_value": fill_value}, view=view)


@jitter.cpu
@kernel
def _scatter(image, out, extents, stream, reach, fill):
    """Moves the pixels of flat arrays."""
    height, width, channels = extents[0], extents[1], extents[2]
    pixels = height * width
    chunk = min(CHUNK, pixels)
    words, places = empty((2, chunk), np.uint32), empty(chunk, np.int64)
    y, x = 0, 0
    for first in range(0, pixels, CHUNK):
        size = min(CHUNK, pixels - first)
        element_words(words[:, :size], stream, first)
        start = 0
        while start < size:
            end = min(size, start + width - x)
            _find(places[start:end], words[0, start:end], words[1, start:end], y, x, height, width, reach)
            start, x = end, x + end - start
            if x == width:
                y, x = y + 1, 0
        _move(image, out[first * channels : (first + size) * channels], places, channels, fill)


@kernel
def _find(places, right, down, y, x, height, width, reach):
    """Computes the source pixels of a row's pixels from `x` on, from their two words; -1 for places outside the image."""
    span, half = np.uint64(np.uint32(2 * reach + 1)), np.uint64(32)
    for i in range(places.size):
        sx = x + i - reach + np.int64((np.uint64(right[i]) * span) >> half)
        sy = y - reach + np.int64((np.uint64(down[i]) * span) >> half)
        inside = (sx >= 0) & (sx < width) & (sy >= 0) & (sy < height)
        places[i] = sy * width + sx if inside else -1


@kernel
def _move(image, out, places, channels, fill):
    """Copies pixels from their places. The number of channels is known to the compiler, so that pixels need no loop."""
    for i in range(out.size // max(channels, 1)):
        place = places[i] * channels
        if place < 0:
            for c in range(channels):
                out[i * channels + c] = fill
        elif channels == 3:
            a, b, c = image[place], image[place + 1], image[place + 2]
            out[3 * i], out[3 * i + 1], out[3 * i + 2] = a, b, c
        else:
            for c in range(channels):
                out[i * channels + c] = image[place + c]


@_scatter.fallback
def _(image, out, extents, stream, reach, fill):
    height, width = extents[:2].tolist()
    words = np.empty((2, height * width), np.uint32)
    element_words.in_python()(words, stream, 0)
    moves = (words * np.uint64(2 * reach + 1) >> np.uint64(32)).astype(np.int64).reshape(2, height, width) - reach
    x, y = moves[0] + np.arange(width), moves[1] + np.arange(height)[:, None]
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    pixels = image.reshape(extents)[np.where(inside, y, 0), np.where(inside, x, 0)]
    out.reshape(extents)[...] = np.where(inside[..., None], pixels, fill)


jitter.cuda("jitter.cu")
