"""`ndd.noise.gaussian`: normal noise added to every number."""

from __future__ import annotations

import numpy as np

from ndd._cpu.draws import fill_normal_wide, normal_row, store_rounded
from ndd._cpu.jit import kernel
from ndd._cpu.philox import CHUNK
from ndd._operator import PerSample, Plan, like, operator
from ndd._tensor.convert import convert_array
from ndd.noise.elements import check_input
from ndd.random.elements import column, drawn_type

_HALF = np.float32(0.49999997)
_ZERO = np.float32(0)


@operator(random=True)
def gaussian(input, /, *, mean: PerSample[float] = 0.0, stddev: PerSample[float] = 1.0):
    """Adds a number of a normal distribution to each number of the input.

    Args:
        input: any shape and layout; an integer type or f32. Type, shape and layout stay.
        mean, stddev: of the noise, in units of the input.
        rng: an `RNG`; without it the thread's default one. A call moves it on by seven words.

    `out = in + noise`, where the noise is what `random.normal(mean, stddev, shape=in.shape)` draws; integers are
    rounded half away from zero and saturated. 32- and 64-bit integers draw and add in float64. CPU and GPU add the
    same noise, equal to DALI's on the CPU but for the last bit of one float32 in 70.

    `skimage.util.random_noise(mode="gaussian")` takes the variance, of an image scaled to 0..1, and gives floats:
    `stddev = 255 * sqrt(var)` here.

    Raises RuntimeError for other element types.

    >>> import ndd, numpy as np
    >>> gray = ndd.tensor(np.full((1, 4), 128, np.uint8), layout="HW")
    >>> ndd.noise.gaussian(gray, stddev=10, rng=ndd.random.RNG(5)).torch()
    tensor([[132, 120, 145, 129]], dtype=torch.uint8)
    """
    return like(input)


@gaussian.old_plan
def _(input, *, mean, stddev, words):
    check_input(input)
    real = drawn_type(input.dtype)
    noise = {
        "stream": words.streams(input.n),
        "mean": column(mean, input.n, real),
        "stddev": column(stddev, input.n, real),
    }
    return Plan(input.shapes, noise, {"dtype": input.dtype})


@gaussian.cpu
def _(array, out, stream, mean, stddev, dtype):
    array, target = array.reshape(-1), out.reshape(-1)
    if mean.dtype == np.float64:
        draws = np.empty((1, array.size))
        fill_normal_wide(draws, stream[None], mean, stddev)
        convert_array(array + draws[0], "f64", dtype.name, target)
    elif out.dtype == np.float32:
        _add(array, target, stream, mean[0], stddev[0])
    else:
        limits = np.iinfo(out.dtype)
        _add_rounded(array, target, stream, mean[0], stddev[0], np.float32(limits.min), np.float32(limits.max))


@kernel
def _add(array, out, stream, mean, stddev):
    centre, spread = np.float64(mean), np.float64(stddev)
    for first in range(0, out.size, CHUNK):
        row, source = out[first : first + CHUNK], array[first : first + CHUNK]
        normal_row(row, stream, first)
        for i in range(row.size):
            row[i] = np.float32(source[i]) + np.float32(np.float64(row[i]) * spread + centre)


@kernel
def _add_rounded(array, out, stream, mean, stddev, low, high):
    centre, spread = np.float64(mean), np.float64(stddev)
    noise = np.empty(min(CHUNK, out.size), np.float32)
    for first in range(0, out.size, CHUNK):
        source = array[first : first + CHUNK]
        row = noise[: source.size]
        normal_row(row, stream, first)
        for i in range(row.size):
            row[i] = np.float32(source[i]) + np.float32(np.float64(row[i]) * spread + centre)
        store_rounded(row, out[first : first + CHUNK], _HALF, low, high, _ZERO)


gaussian.cuda("gaussian.cu")
