"""`ndd.noise.shot`: the noise of counting photons."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._cpu.philox import CHUNK
from ndd._operator import PerSample, Plan, like, operator
from ndd._tensor import DType
from ndd._tensor.convert import convert_array
from ndd.noise.poisson import CONSTANTS, LOG_FACTORIALS, Counted, poisson_row
from ndd.random.element_types import INTEGERS

_AT_ONCE = 1 << 15  # elements that NumPy works on together
_FACTOR = np.float32(12)
_TILE, _THREADS = 8192, 256  # of a block of shot.cu: bytes, threads


@operator(random=True, types=(*INTEGERS, "f32"))
def shot(input, /, *, factor: PerSample[float] = None):
    """Replaces each number with one from a Poisson distribution around it, as an image sensor counts photons.

    Args:
        input: any shape and layout; an integer type or f32. Type, shape and layout stay.
        factor: the value of one event; results are its multiples, and a larger factor means more noise. Default 12 (DALI's
            documentation says 20, but it computes with 12). 0 gives zeros.
        rng: an `RNG`; without it the thread's default one. A call advances it by seven words.

    `out = poisson(max(0, in * (1 / factor))) * factor` in 32 bits, rounded half away from zero and saturated for
    integers. CPU and GPU count the same events, those that DALI counts on the CPU. The standard deviation is
    `sqrt(in * factor)`. For a mean below 12 the count is the number of products of the element's 64-bit uniform numbers above
    `exp(-mean)`; for larger means it comes from Devroye's rejection method; above 2**31 it is the mean.

    `skimage.util.random_noise(mode="poisson")` returns floats and derives the factor from the number of distinct values of an
    image.

    Raises RuntimeError for other element types.

    >>> import ndd, numpy as np
    >>> gray = ndd.tensor(np.full((1, 6), 60, np.uint8), layout="HW")
    >>> ndd.noise.shot(gray, factor=12, rng=ndd.random.RNG(5)).torch()
    tensor([[84, 84, 24, 48, 36, 12]], dtype=torch.uint8)
    >>> ndd.noise.shot(ndd.demo.photo("cat"), factor=25, rng=ndd.random.RNG(1)).shape
    (266, 400, 3)
    """
    return like(input)


@shot.plan
def _(call, input, *, factor):
    each = np.full(call.n, _FACTOR) if factor is None else factor.each()
    return Plan(input.shapes, {"stream": call.draws.streams(call.n), "factor": each})


@shot.cpu
def _(array, out, stream, factor):
    if factor == 0:
        out[...] = 0
        return
    counts = out.reshape(-1) if out.dtype == np.float32 else np.empty(out.size, np.float32)
    # Numbers that depend only on the mean are cached if the mean recurs often, as for 8-bit inputs.
    rows = 256 if out.dtype.itemsize == 1 else 0
    constants = np.zeros((rows + 1, CONSTANTS))
    _count(array.reshape(-1), counts, stream, np.float32(factor), constants, LOG_FACTORIALS)
    if out.dtype != np.float32:
        convert_array(counts, "f32", DType.from_fw_type(out.dtype).name, out.reshape(-1))


@kernel
def _count(array, out, stream, factor, constants, log_factorials):
    mean, slots, inverse = empty(CHUNK, np.float64), np.full(CHUNK, -1), np.float32(1) / factor
    for first in range(0, out.size, CHUNK):
        row, source = out[first : first + CHUNK], array[first : first + CHUNK]
        for i in range(row.size):
            mean[i] = max(np.float32(source[i]) * inverse, np.float32(0))
        if len(constants) > 1:
            for i in range(row.size):
                slots[i] = np.int64(source[i]) & 255
        poisson_row(row, mean[: row.size], stream, first, slots, constants, log_factorials)
        for i in range(row.size):
            row[i] *= factor


@_count.fallback
def _(array, out, stream, factor, constants, log_factorials):
    with np.errstate(all="ignore"):
        for first in range(0, out.size, _AT_ONCE):
            # Not divided by the factor: close to an integer the last bit changes the count.
            mean = array[first : first + _AT_ONCE].astype(np.float32) * (np.float32(1) / factor)
            mean = np.where(mean < 0, np.float32(0), mean).astype(np.float64)
            out[first : first + _AT_ONCE] = Counted(mean, stream, first).counts * factor


@shot.cuda("shot.cu")
def _(launch, input, out):
    tile = _TILE // input.dtype.bytes
    work = -(-out.volumes.largest * _THREADS // tile)
    launch("shot", work, per_sample={"size": out.sizes}, macros={"TILE": tile})
