"""`ndd.jitter`: every pixel moves a little, at random."""

from __future__ import annotations

import numpy as np

from ndd._cpu.inlined import empty
from ndd._cpu.jit import kernel
from ndd._cpu.philox import CHUNK, element_words
from ndd._operator import PerSample, Plan, Rows, Seen, each_sample, like, operator
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
        mask: samples where it is 0 stay as they are.
        fill_value: what comes from outside the image; rounded and saturated for integers.
        interp_type: has no effect, as pixels move by whole numbers.
        rng: an `RNG`; without it the thread's default one. A call moves it on by seven words.

    `out[y, x] = in[y + dy, x + dx]`, dx and dy from the two words of each pixel. Type, shape and layout stay. Runs on
    the CPU and the GPU with the same result; DALI has it on the GPU only, and draws other numbers. PIL's
    `Image.effect_spread` moves pixels by random steps too, but takes none from outside the image.

    Raises ValueError for other layouts and ranks, RuntimeError for a negative `nDegree` and for a `mask` that is not
    one number for each sample.

    >>> import ndd, numpy as np
    >>> grid = ndd.tensor(np.arange(1, 17).reshape(4, 4, 1), layout="HWC")
    >>> ndd.jitter(grid, rng=ndd.random.RNG(2)).torch()[..., 0]
    tensor([[ 0,  2,  4,  4],
            [ 5,  3,  2, 11],
            [ 5, 10,  7, 16],
            [14, 15, 16,  0]])
    """
    if nDegree < 0:
        raise RuntimeError(f"argument 'nDegree': expected at least 0, got {nDegree}")
    return like(input)


@jitter.plan
def _(call, input, *, fill_value, interp_type, mask, nDegree):
    fill = convert_array(np.full(1, fill_value, np.float32), "f32", input.dtype.name)
    reach = np.where(mask.each() != 0, nDegree // 2, 0)
    per_sample = {"stream": call.draws.streams(input.n), "reach": reach}
    return Plan(input.shapes, per_sample, {"fill": fill, "fill_value": fill_value})


@jitter.cpu_turns
def _(call, plan, stores, results):
    image, out, fill = Seen(stores[0]), Seen(results[0]), plan.shared["fill"][0]
    if fill.dtype == np.float16:
        image, out, fill = image._replace(dtype=np.uint16), out._replace(dtype=np.uint16), fill.view(np.uint16)
    return each_sample(
        call, _scatter, image, out, Rows(plan.per_sample["stream"]), Rows(plan.per_sample["reach"]), fill
    )


@kernel
def _scatter(image, out, stream, reach, fill):
    height, width, channels = image.shape
    pixels = height * width
    words = empty((2, min(CHUNK, pixels)), np.uint32)
    span = np.uint64(2 * reach + 1)
    half = np.uint64(32)
    y, x = 0, 0
    for first in range(0, pixels, CHUNK):
        size = min(CHUNK, pixels - first)
        element_words(words[:, :size], stream, first)
        for i in range(size):
            sx = x - reach + np.int64((np.uint64(words[0, i]) * span) >> half)
            sy = y - reach + np.int64((np.uint64(words[1, i]) * span) >> half)
            if 0 <= sx < width and 0 <= sy < height:
                for c in range(channels):
                    out[y, x, c] = image[sy, sx, c]
            else:
                for c in range(channels):
                    out[y, x, c] = fill
            x += 1
            if x == width:
                y, x = y + 1, 0


@_scatter.meanwhile
def _(image, out, stream, reach, fill):
    height, width = image.shape[:2]
    words = np.empty((2, height * width), np.uint32)
    element_words.in_python()(words, stream, 0)
    moves = (words * np.uint64(2 * reach + 1) >> np.uint64(32)).astype(np.int64).reshape(2, height, width) - reach
    x, y = moves[0] + np.arange(width), moves[1] + np.arange(height)[:, None]
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    out[...] = np.where(inside[..., None], image[np.where(inside, y, 0), np.where(inside, x, 0)], fill)


jitter.cuda("jitter.cu")
