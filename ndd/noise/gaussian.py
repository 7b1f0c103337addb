"""`ndd.noise.gaussian`: adds normal noise to every number."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import each, empty
from ndd._compiled.jit import kernel
from ndd._cpu.draws import fill_normal_wide, normal_row, store_rounded
from ndd._cpu.philox import CHUNK
from ndd._operator import PerSample, Plan, like, operator
from ndd._operator.partition import each_run
from ndd._operator.unit_warnings import warn_of_noise
from ndd._tensor.convert import convert_array
from ndd.random.element_types import INTEGERS, drawn_type

_HALF = np.float32(0.49999997)
_ZERO = np.float32(0)


@operator(random=True, types=(*INTEGERS, "f32"))
def gaussian(input, /, *, mean: PerSample[float] = 0.0, stddev: PerSample[float] = 1.0):
    """Adds a number from a normal distribution to each number of the input.

    Args:
        input: any shape and layout; an integer type or f32. Type, shape and layout stay.
        mean, stddev: those of the noise, in units of the input.
        rng: an `RNG`; without it the thread's default one. A call advances it by seven words.

    `out = in + noise`, where the noise is `random.normal(mean, stddev, shape=in.shape)`; integers are
    rounded half away from zero and saturated. 32- and 64-bit integers draw and add in float64. CPU and GPU add the
    same noise, equal to DALI's on the CPU except for the last bit of one float32 in 70.

    `skimage.util.random_noise(mode="gaussian")` takes the variance for an image scaled to 0..1, and returns floats:
    `stddev = 255 * sqrt(var)` here.

    Raises RuntimeError for other element types.

    >>> import ndd, numpy as np
    >>> gray = ndd.tensor(np.full((1, 4), 128, np.uint8), layout="HW")
    >>> ndd.noise.gaussian(gray, stddev=10, rng=ndd.random.RNG(5)).torch()
    tensor([[132, 120, 145, 129]], dtype=torch.uint8)
    >>> ndd.noise.gaussian(ndd.demo.photo("cat"), stddev=30, rng=ndd.random.RNG(1)).shape
    (266, 400, 3)
    """
    warn_of_noise("gaussian", input, mean, stddev)
    return like(input)


@gaussian.plan
def _(call, input, *, mean, stddev):
    real = drawn_type(input.dtype)
    noise = {
        "stream": call.draws.streams(call.n),
        "mean": mean.each().astype(real, copy=False),
        "stddev": stddev.each().astype(real, copy=False),
    }
    return Plan(input.shapes, noise)


# A batch: one compiled call draws the float64 numbers of all samples.
@gaussian.batch
def _(call, plan, input, out):
    streams, means, deviations = (plan.per_sample[name] for name in ("stream", "mean", "stddev"))

    def work(samples: slice, source: np.ndarray, noisy: np.ndarray) -> None:
        arrays, targets = source.reshape(len(noisy), -1), noisy.reshape(len(noisy), -1)
        own = streams[samples], means[samples], deviations[samples]
        if means.dtype == np.float64:
            draws = np.empty(arrays.shape)
            fill_normal_wide(draws, *own)
            draws += arrays
            convert_array(draws, "f64", input.dtype.name, targets)
        elif noisy.dtype == np.float32:
            _add(arrays, targets, *own)
        else:
            limits = np.iinfo(noisy.dtype)
            _add_rounded(arrays, targets, *own, np.float32(limits.min), np.float32(limits.max))

    each_run(call, [input, out], work)


@kernel
def _add(arrays, out, streams, means, stddevs):
    for n in range(len(out)):
        centre, spread = np.float64(means[n]), np.float64(stddevs[n])
        for first in range(0, out.shape[1], CHUNK):
            row, source = out[n, first : first + CHUNK], arrays[n, first : first + CHUNK]
            normal_row(row, streams[n], first)
            for i in each(row.size):
                row[i] = np.float32(source[i]) + np.float32(np.float64(row[i]) * spread + centre)


_add.fallback()


@kernel
def _add_rounded(arrays, out, streams, means, stddevs, low, high):
    noise = empty(min(CHUNK, out.shape[1]), np.float32)
    for n in range(len(out)):
        centre, spread = np.float64(means[n]), np.float64(stddevs[n])
        for first in range(0, out.shape[1], CHUNK):
            source = arrays[n, first : first + CHUNK]
            row = noise[: source.size]
            normal_row(row, streams[n], first)
            for i in each(row.size):
                row[i] = np.float32(source[i]) + np.float32(np.float64(row[i]) * spread + centre)
            store_rounded(row, out[n, first : first + CHUNK], _HALF, low, high, _ZERO)


_add_rounded.fallback()


gaussian.cuda("gaussian.cu")
