"""`ndd.audio_resample`: signals at another sampling rate."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ndd._cpu.windowed_sinc import BLOCK, PHASES, lobes_of, resample, rounded_places, taps_across
from ndd._operator import PerSample, Plan, Values, bad_sample, like, operator
from ndd._operator.limits import RISE
from ndd._tensor import DType
from ndd.ops.audio.signal_lengths import resampled, whole_blocks

_ONE = np.ones(1, np.int64)
_TYPES = ("u8", "i8", "u16", "i16", "u32", "i32", "f32")


@operator(types=_TYPES, dtypes=_TYPES)
def audio_resample(
    signal,
    /,
    *,
    dtype: DType | None = None,
    in_rate: PerSample[float] = None,
    out_length: PerSample[int] = None,
    out_rate: PerSample[float] = None,
    quality: float = 50.0,
    scale: PerSample[float] = None,
):
    """Resamples signals with a windowed sinc.

    Output `o` is the signal at position `o * n / out_n`: `sum of x[i] * h(i - position)`, with a sinc under a Hann window
    of 3 to 64 lobes as `h`. Takes `(n,)` or `(n, channels)`, integers of up to 32 bits and float32, and gives `(out_n,)` or
    `(out_n, channels)`.

    Define the length of the result in exactly one way: `in_rate` and `out_rate`, or `scale`, or `out_length`.

    Args:
        dtype: the element type of the result. Default: that of the input. In conversions the full range of an integer type
            corresponds to -1..1: an int16 is divided by 32767.
        in_rate, out_rate: sampling rates, in the same unit: `out_n = ceil((n * out_rate) / in_rate)`.
        out_length: `out_n` itself.
        quality: 0 (3 lobes) to 100 (64 lobes); 50 means 16 lobes.
        scale: `out_n = ceil(n * scale)`.
        signal: `(n,)` or `(n, channels)`, integers of up to 32 bits or float32.

    The result is within 1e-6 of DALI's for signals within -1..1, because the table of the sinc is indexed with the same
    rounding. For a quality above 90 the first outputs, as many as there are lobes, may differ by 1e-5. Both differ from the
    exact sum by up to 2e-6 for a quality of 50, and 1.2e-5 for 100.

    As in DALI the signal counts as 0 beyond its ends, and downsampling does not widen the sinc: frequencies above half of the
    new rate fold back. `librosa.resample` and `soxr` filter them out.

    Errors: RuntimeError for other element types and ranks, for no or several definitions of the length, for one rate without
        the other, for rates that are not positive, negative scales and lengths, a `quality` outside its range, and for an empty
        signal with a positive `out_length`.

    >>> import ndd
    >>> ndd.audio_resample(ndd.tensor([0.0, 1.0, 0.0, -1.0] * 8), in_rate=8000, out_rate=4000).shape
    (16,)
    >>> ndd.audio_resample(ndd.demo.sound(), in_rate=8000, out_rate=2000).shape
    (2400,)
    """
    if signal.ndim not in (1, 2):
        raise RuntimeError(f"expected a signal (n,) or (n, channels), got {signal.ndim} dimensions")
    if not 0 <= quality <= 100:
        raise RuntimeError(f"`quality` is from 0 to 100, got {quality}")
    if (in_rate is None) != (out_rate is None):
        raise RuntimeError("`in_rate` and `out_rate` belong together: give both")
    ways = [name for name, v in (("in_rate", in_rate), ("scale", scale), ("out_length", out_length)) if v is not None]
    if len(ways) != 1:
        listed = " and ".join(ways) or "nothing"
        raise RuntimeError(
            f"expected exactly one of `in_rate` and `out_rate`, or `scale`, or `out_length`; got {listed}"
        )
    return like(signal, dtype=dtype)


@audio_resample.plan
def _(signal, *, dtype, in_rate, out_length, out_rate, quality, scale):
    shapes, each = np.empty(signal.shapes.shape, np.int64), np.empty(signal.n, np.float64)
    n = signal.shapes[:, 0]
    if scale is not None:
        factors = _from_zero(scale)
        lengths, steps = np.ceil(n * factors), 1 / (factors + (factors == 0))
    elif in_rate is not None:
        before, after = _from_zero(in_rate), _from_zero(out_rate)
        if not (before if before.__class__ is float else before.all()):
            raise in_rate.error(int(np.argmin(before)), "`in_rate` is to be positive, got 0")
        if before.__class__ is after.__class__ is float:
            resampled(signal.shapes, before, after, shapes, each)
            _check_rise(each, signal.n)
            return Plan(shapes, {"step": each}, {"quality": quality})
        lengths, steps = np.ceil(n * after / before), before / (after + (after == 0))
    else:
        lengths = _from_zero(out_length)
        for i in np.flatnonzero((n == 0) & (lengths > 0))[:1].tolist():
            wanted = int(np.broadcast_to(lengths, n.shape)[i])
            raise bad_sample(i, f"an empty signal cannot be made {wanted} samples long")
        steps = n / np.maximum(lengths, 1)
    shapes[...] = signal.shapes
    shapes[:, 0] = lengths
    each[:] = steps
    _check_rise(each, signal.n)
    return Plan(shapes, {"step": each}, {"quality": quality})


def _check_rise(steps: np.ndarray, n: int) -> None:
    """RuntimeError for a result that is far longer than the signal: that is a mistake, and would take minutes."""
    if n and 0 < steps.min() < 1 / RISE:
        raise bad_sample(
            int(steps.argmin()), f"expected up to {RISE:,} times as many samples as before, got {1 / steps.min():,.0f}"
        )


def _from_zero(values: Values) -> Any:
    """float64 `[N]`, or one number for all samples."""
    number = values.numbers
    if not values.varies:
        number = float(values.kind.type(number))
        if not 0 <= number < np.inf:
            raise values.error(0, f"`{values.name}` is to be positive and finite, got {values.kind.type(number)}")
        return number
    possible = (number >= 0) & (number < np.inf)
    if not possible.all():
        i = int(np.flatnonzero(~possible)[0])
        raise values.error(i, f"`{values.name}` is to be positive and finite, got {number.reshape(-1)[i]}")
    return number.astype(np.float64)


@audio_resample.cpu
def _(signal, out, step, quality):
    if signal.dtype == out.dtype == np.float32:
        resample(signal, out, step, quality)
        return
    samples = np.empty(out.shape, np.float32)
    resample(to_units_of(signal, out.dtype), samples, step, quality)
    rounded(samples, out)


def to_units_of(signal: np.ndarray, kind: np.dtype) -> np.ndarray:
    """The signal in float32, in units of another element type, so that samples beyond its ends are 0 in these units."""
    levels = signal.astype(np.float32)
    if signal.dtype == kind:
        return levels
    (before, one), (after, full) = full_range(signal.dtype), full_range(kind)
    return (levels - before) * np.float32(full / one) + after


def full_range(kind: np.dtype) -> tuple[np.float32, np.float32]:
    """The level of 0 in an element type, and the distance of 1 from it."""
    if kind.kind == "f":
        return np.float32(0), np.float32(1)
    half = float(np.iinfo(kind).max)
    return (np.float32(0), np.float32(half)) if kind.kind == "i" else (np.float32(half / 2), np.float32(half / 2))


def rounded(values: np.ndarray, out: np.ndarray) -> None:
    """Converts float32 to an element type, saturated, with halves rounded to even."""
    if out.dtype.kind == "f":
        out[...] = values
        return
    limits = np.iinfo(out.dtype)
    np.copyto(out, np.clip(np.rint(values.astype(np.float64)), limits.min, limits.max), casting="unsafe")


@functools.lru_cache(maxsize=64)
def _numbers(quality: float, source: DType, target: DType) -> dict[str, Any]:
    """The numbers of the kernel for all samples."""
    split, coarse = rounded_places(lobes_of(quality))
    (before, one), (after, full) = full_range(source.numpy), full_range(target.numpy)
    if source is target:
        before, one, after, full = (np.float32(v) for v in (0, 1, 0, 1))
    return {
        "lobes": lobes_of(quality), "split": split, "coarse": coarse, "before": before, "after": after,
        "times": np.float32(full / one),
    }  # fmt: skip


@audio_resample.cuda("audio_resample.cu")
def _(launch, signal, out, step, quality):
    numbers = _numbers(quality, signal.dtype, out.dtype)
    taps = launch.table(taps_across(numbers["lobes"]), cached=True)
    channels = signal.shapes[:, 1] if signal.ndim == 2 else _ONE
    threads = np.empty(out.n, np.int64)
    whole_blocks(out.shapes, BLOCK, threads)
    fields = {"taps": taps, "channels": channels}
    launch("audio_resample", threads, per_sample=fields, shared=numbers, macros={"BLOCK": BLOCK, "PHASES": PHASES})
