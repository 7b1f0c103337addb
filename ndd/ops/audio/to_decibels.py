"""`ndd.to_decibels`: magnitudes or powers on a logarithmic scale."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import array_at, empty
from ndd._compiled.jit import kernel
from ndd._operator import Plan, like, operator

_CHUNK = 512
_NOTHING = np.zeros(1, np.float32)
_LEAST = np.nextafter(np.float32(0), np.float32(1))


@operator(types=("f32",))
def to_decibels(
    magnitude,
    /,
    *,
    cutoff_db: float = -200.0,
    multiplier: float = 10.0,
    reference: float | None = None,
):
    """Converts to decibels: `multiplier * log10(x / reference)`, at least `cutoff_db`.

    Takes float32 of any rank and layout. Negative numbers, 0 and NaN become `cutoff_db`.

    Args:
        cutoff_db: the least result: silence is `-inf` dB.
        multiplier: 10 for powers (and energies), 20 for magnitudes.
        reference: the value at 0 dB. Default: the largest value of the sample, or 1 if that is not positive.
        magnitude: float32 of any rank: powers or magnitudes.

    Equivalent to `librosa.power_to_db(x, ref=np.max, top_db=200)`. To keep 80 dB below the peak, pass `cutoff_db=-80`.

    Errors: RuntimeError for another element type (integer samples: `ndd.cast(x, dtype=ndd.float32)`) and for
    `reference=0`.

    >>> import ndd
    >>> ndd.to_decibels(ndd.tensor([1.0, 0.1, 0.001, 0.0]), cutoff_db=-20).torch()
    tensor([  0., -10., -20., -20.])
    >>> power = ndd.spectrogram(ndd.demo.sound(), nfft=256, window_length=256, window_step=64)
    >>> ndd.to_decibels(power, cutoff_db=-60).shape
    (129, 151)
    """
    if reference == 0:
        raise RuntimeError("`reference` cannot be 0: leave it out to take the largest value of each sample")
    return like(magnitude)


@to_decibels.plan
def _(magnitude, *, cutoff_db, multiplier, reference):
    with np.errstate(all="ignore"):  # a reference below 3e-39 is too small to divide by
        least = np.float32(10.0 ** np.float64(np.float64(cutoff_db) / multiplier))
        inverse = np.float32(1) / np.float32(1 if reference is None else reference)
    shared = {"least": np.maximum(least, _LEAST), "factor": np.float32(multiplier * np.log10(2)), "inverse": inverse}
    return Plan(magnitude.shapes, {}, {**shared, "relative": reference is None}, view="flat")


@to_decibels.cpu
@kernel(fastmath={"contract"})
def _decibels(x, out, relative, inverse, least, factor):
    """factor * log2(max(x * inverse, least)); `relative` to the largest value, or to 1 where that is not positive. The
    logarithm is that of Cephes' `logf`, in loops that compile to vectors."""
    words = empty((2, _CHUNK), np.int32)
    # A view of another type takes 0.3 s to compile.
    values, bits = array_at(words.ctypes.data, (2, _CHUNK), x), array_at(x.ctypes.data, x.size, words)
    if relative:
        # The bits of positive floats, as integers, have the same order; those of negative floats are negative, and NaN is above
        # infinity. So the loop compiles to vectors.
        peak = np.int32(0)
        for j in range(bits.size):
            peak = max(peak, bits[j] if bits[j] <= 0x7F800000 else np.int32(0))
        words[0, 0] = peak
        inverse = np.float32(1) / (values[0, 0] if peak else np.float32(1))
    smallest, huge = np.float32(1.1754944e-38), np.float32(np.inf)
    for start in range(0, x.size, _CHUNK):
        part, target = x[start : start + _CHUNK], out[start : start + _CHUNK]
        for j in range(part.size):
            value = part[j] * inverse
            target[j] = value = value if value > least else least
            values[0, j] = value if value >= smallest else value * np.float32(8388608)
        for j in range(part.size):
            word = words[0, j]
            words[0, j], words[1, j] = (word >> 23) - 126, (word & 0x7FFFFF) | 0x3F000000
        for j in range(part.size):
            m, e = values[1, j], np.float32(words[0, j])
            low = m < np.float32(0.70710678)
            e = e - np.float32(1) if low else e
            m = m + m - np.float32(1) if low else m - np.float32(1)
            e = e if target[j] >= smallest else e - np.float32(23)
            y = np.float32(7.0376836292e-2) * m - np.float32(1.1514610310e-1)
            y = (y * m + np.float32(1.1676998740e-1)) * m - np.float32(1.2420140846e-1)
            y = (y * m + np.float32(1.4249322787e-1)) * m - np.float32(1.6668057665e-1)
            y = (y * m + np.float32(2.0000714765e-1)) * m - np.float32(2.4999993993e-1)
            y = y * m + np.float32(3.3333331174e-1)
            z = m * m
            y = (y * m - np.float32(0.5)) * z + m
            result = (y * np.float32(1.44269504) + e) * factor
            target[j] = result if target[j] < huge else huge * factor


@to_decibels.cuda("to_decibels.cu")
def _(launch, magnitude, out, relative):
    if relative:
        launch(("peaks", "to_decibels"), per_sample={"peak": _NOTHING}, macros={"PEAK": True})
    else:
        launch("to_decibels", macros={"PEAK": False})
