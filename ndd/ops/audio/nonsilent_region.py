"""`ndd.nonsilent_region`: where a signal is louder than silence."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ndd._compiled.intrinsics import array_at
from ndd._compiled.jit import kernel
from ndd._operator import Plan, operator, output
from ndd._operator.partition import Rows, each_sample
from ndd._tensor.dtype import float32, int32
from ndd._tensor.store import address
from ndd.ops.audio.moving_sums import BLOCK, largest_sums
from ndd.ops.audio.signal_lengths import count_intervals, limit_windows

_NOTHING = np.zeros(1, np.float32)
_RUNS = 2  # for each thread, so that a thread that begins late has less to do
_RUN_BYTES = 1 << 17  # at least
_NEVER = 1 << 60  # samples between sums that are computed from scratch
_EXACT = ("u8", "i8", "u16", "i16")
_TYPES = (*_EXACT, "u32", "i32", "u64", "i64", "f32")


@operator(types=_TYPES, outputs=2)
def nonsilent_region(
    signal,
    /,
    *,
    cutoff_db: float = -60.0,
    reference_power: float | None = None,
    reset_interval: int = 8192,
    window_length: int = 2048,
):
    """Finds the part of a signal that is not silent at its beginning and end.

    The power of a moving window, `mean of x ** 2` over the last `window_length` samples, is compared with a reference. The
    region reaches from the beginning of the first window whose power is not below
    `reference * 10 ** (cutoff_db / 10)` to the end of the last one.

    Takes integers and float32 of shape `(n,)`. Returns two int32 numbers for each sample, the begin and the length of the
    region, for `ndd.slice(x, begin, length, axes=[0])`. A silent signal gives 0 and 0.

    Args:
        cutoff_db: the power that counts as silence, in dB of the reference.
        reference_power: the reference. Default: the largest power of a window of the sample.
        reset_interval: after this many samples the moving sum of floats is computed from scratch, so that its rounding errors
            do not grow; a multiple of `window_length`, or -1 for never. A GPU works on the intervals in parallel. It has no
            effect on integers.
        window_length: samples of a window. For a shorter signal the window is as long as the signal. Zeros precede the signal.
        signal: `(n,)`, integers or float32.

    Similar to `librosa.effects.trim`, which moves its windows in larger steps, and whose `top_db` is `-cutoff_db`. The sums
    equal DALI's to the last bit (float32; exact for integers of 8 and 16 bits), so that the region is exactly the same. An
    empty signal gives 0 and 0; DALI 2.4.0 crashes for it and for `reset_interval=0`, and never returns for `reset_interval=-2`.

    Errors: RuntimeError for other element types and ranks, and for arguments outside these ranges.

    >>> import ndd
    >>> begin, length = ndd.nonsilent_region(ndd.tensor([0, 0, 5, -7, 3, 0, 0, 0]), window_length=2, reset_interval=-1)
    >>> begin.item(), length.item()
    (1, 5)
    >>> begin, length = ndd.nonsilent_region(ndd.demo.sound(), cutoff_db=-20, window_length=256)
    >>> begin.item(), length.item()
    (662, 8280)
    """
    if signal.ndim != 1:
        raise RuntimeError(f"expected a signal (n,), got {signal.ndim} dimensions: take one channel of it")
    if window_length < 1:
        raise RuntimeError(f"`window_length` is at least 1, got {window_length}")
    kept = reset_interval == -1 or signal.dtype is not float32
    if not kept and (reset_interval < 1 or reset_interval % window_length):
        raise RuntimeError(
            f"`reset_interval` is -1 or a multiple of `window_length`={window_length}, got {reset_interval}"
        )
    if reference_power is not None and not reference_power > 0:
        raise RuntimeError(f"`reference_power` is to be positive, got {reference_power}")
    return output(int32, 0), output(int32, 0)


@nonsilent_region.plan
def _(signal, *, cutoff_db, reference_power, reset_interval, window_length):
    none = np.empty((signal.n, 0), np.int64)
    exact = signal.dtype.name in _EXACT
    if signal.dtype is not float32:  # it does not change sums of integers, and more intervals suit a GPU
        reset_interval = window_length * max(1, 8192 // window_length) if exact else -1
    numbers = {
        "exact": exact, "ratio": _ratio(cutoff_db), "reference": np.float32(reference_power or 0), "interval": reset_interval,
        "window_length": window_length,
    }  # fmt: skip
    windows = np.empty(signal.n, np.int64)
    limit_windows(signal.sizes, window_length, windows)
    return Plan([none, none], {"window": windows}, numbers)


@functools.lru_cache(maxsize=64)
def _ratio(cutoff_db: float) -> np.float32:
    return np.float32(10.0 ** (np.float64(cutoff_db) / 10))


# A batch: sums of several signals are computed side by side.
@nonsilent_region.batch
def _(call, plan, signal, begins, lengths):
    exact, interval = plan.shared["exact"], plan.shared["interval"]
    kind, sizes, places = signal.dtype.numpy if exact else np.dtype(np.float32), signal.sizes, signal.pointers()
    held = signal
    if kind != signal.dtype.numpy or (places % kind.itemsize).any():
        held = [np.require(array, kind, ["C", "A"]) for array in signal.arrays()]
        places = np.array([address(array) for array in held])
    nbytes = kind.itemsize * int(sizes.sum())
    parts = min(call.n, _RUNS * call.threads, nbytes // _RUN_BYTES) if nbytes > _RUN_BYTES else 1
    edges = np.unique(np.searchsorted(np.cumsum(sizes) - sizes, np.arange(parts) * (signal.element_count() / parts)))
    edges = np.append(edges, call.n)
    fields: tuple[Any, ...] = places, sizes, np.empty(0, kind), plan.shared["window_length"]
    if not exact:
        interval = interval if interval > 0 else _NEVER
        begin = np.repeat(edges[:-1], np.diff(edges))  # of the run of each signal
        order = np.lexsort((-(sizes % interval), begin)) - begin
        fields = places, sizes, order, plan.shared["window_length"], interval
    numbers = plan.shared["reference"], plan.shared["ratio"], begins.whole, lengths.whole
    each_sample(
        call, _exact_regions if exact else _regions, Rows(edges[:-1]), Rows(edges[1:]), *fields, *numbers, nbytes=nbytes,
        held=held,
    )  # fmt: skip


@kernel
def _exact_regions(start, stop, places, sizes, like, window_length, reference, ratio, begins, lengths):
    """The regions of signals `start` up to `stop`, of short integers at these addresses, of the type of `like`. Sums are exact,
    so that they can be computed from either end."""
    for s in range(start, stop):
        n, total, most = sizes[s], np.int64(0), np.int64(0)
        x, window = array_at(places[s], n, like), max(1, min(n, window_length))
        for i in range(window if n else 0):
            total += np.int64(x[i]) * np.int64(x[i])
        most = total
        later = x[window:]
        for i in range(later.size):
            come, gone = np.int64(later[i]), np.int64(x[i])
            total += (come - gone) * (come + gone)
            most = max(most, total)
        share = np.float32(1) / np.float32(window)
        threshold = (np.float32(most) * share if reference == 0 else reference) * ratio
        begins[s], lengths[s] = 0, 0
        if n == 0 or not np.float32(most) * share >= threshold:
            continue
        last = n - 1
        while not np.float32(total) * share >= threshold:
            gone = np.int64(x[last - window]) if last >= window else np.int64(0)
            total -= np.int64(x[last]) * np.int64(x[last]) - gone * gone
            last -= 1
        first, total = np.int64(-1), np.int64(0)
        while first < 0 or not np.float32(total) * share >= threshold:
            first += 1
            gone = np.int64(x[first - window]) if first >= window else np.int64(0)
            total += np.int64(x[first]) * np.int64(x[first]) - gone * gone
        begins[s] = max(0, first - window + 1)
        lengths[s] = last - begins[s] + 1


@kernel
def _regions(start, stop, places, sizes, order, window_length, interval, reference, ratio, begins, lengths):
    """The regions of signals `start` up to `stop`, in float32 at these addresses. For `order` see `largest_sums`.

    The powers are not stored: the largest of a block shows whether it is loud, and only the first and the last loud block are
    searched again.
    """
    places, sizes, order = places[start:stop], sizes[start:stop], order[start:stop]
    begins, lengths = begins[start:stop], lengths[start:stop]
    blocks = (interval + BLOCK - 1) // BLOCK  # of an interval
    firsts, count = np.empty(len(sizes), np.int64), 0
    for s in range(len(sizes)):
        firsts[s] = count
        count += sizes[s] // interval * blocks + (sizes[s] % interval + BLOCK - 1) // BLOCK
    before, largest = np.empty(count, np.float32), np.empty(count, np.float32)
    largest_sums(places, sizes, order, window_length, interval, firsts, before, largest)
    for s in range(len(sizes)):
        n = sizes[s]
        begins[s], lengths[s] = 0, 0
        if n == 0:
            continue
        own, sums = array_at(places[s], n, before), before[firsts[s] :]
        most = largest[firsts[s] : firsts[s + 1] if s + 1 < len(sizes) else count]
        window = min(n, window_length)
        share, peak = np.float32(1) / np.float32(window), reference
        if reference == 0:
            for b in range(len(most)):
                peak = max(peak, most[b] * share)
        threshold = peak * ratio
        first, last = 0, len(most) - 1
        while first <= last and not most[first] * share >= threshold:
            first += 1
        if first > last:
            continue
        while not most[last] * share >= threshold:
            last -= 1
        begin = max(0, _loud(own, first, sums, window, interval, share, threshold, False) - window + 1)
        begins[s] = begin
        lengths[s] = _loud(own, last, sums, window, interval, share, threshold, True) - begin + 1


@kernel
def _loud(x, block, before, window, interval, share, threshold, last):
    """The first or the last place in a block whose power is not below the threshold."""
    blocks = (interval + BLOCK - 1) // BLOCK
    anew, total, loud = block // blocks * interval, before[block], np.int64(-1)
    begin = anew + block % blocks * BLOCK
    for i in range(begin, min(begin + BLOCK, anew + interval, x.size)):
        if i >= window and i > anew:
            total -= x[i - window] * x[i - window]
        total += x[i] * x[i]
        if total * share >= threshold:
            loud = i
            if not last:
                break
    return loud


@_exact_regions.fallback
def _(start, stop, places, sizes, like, window_length, reference, ratio, begins, lengths):
    for s in range(start, stop):
        place, size = places[s].item(), sizes[s].item()
        window = max(1, min(size, window_length))
        sums = np.cumsum(np.square(array_at(place, size, like), dtype=np.int64))
        sums[window:] -= sums[:-window].copy()
        powers = sums.astype(np.float32) * (np.float32(1) / np.float32(window))
        begins[s], lengths[s] = _region(powers, window, reference, ratio)


@_regions.fallback
def _(start, stop, places, sizes, order, window_length, interval, reference, ratio, begins, lengths):
    for s in range(start, stop):
        place, size = places[s].item(), sizes[s].item()
        window = max(1, min(size, window_length))
        powers = _powers(array_at(place, size, _NOTHING), window, interval)
        begins[s], lengths[s] = _region(powers, window, reference, ratio)


def _region(powers, window, reference, ratio):
    if reference == 0:
        reference = np.fmax.reduce(powers, initial=np.float32(0))
    loud = np.flatnonzero(powers >= reference * ratio)
    if not loud.size:
        return 0, 0
    begin = max(0, loud[0] - window + 1)
    return begin, loud[-1] - begin + 1


def _powers(x, window, interval):
    squares, powers = x * x, np.empty(x.size, np.float32)
    share = np.float32(1) / np.float32(window)
    for start in range(0, x.size, interval):
        own = squares[start : start + interval]
        steps = np.zeros((own.size, 2), np.float32)  # the numbers that leave and enter the window
        past = squares[max(0, start - window) : max(0, start + own.size - window)]
        steps[own.size - past.size :, 0] = -past
        steps[:, 1] = own
        if start:
            steps[0] = 0, np.add.accumulate(squares[max(0, start - window + 1) : start + 1])[-1]
        powers[start : start + own.size] = np.add.accumulate(steps.reshape(-1))[1::2] * share
    return powers


@nonsilent_region.cuda("nonsilent_region.cu")
def _(launch, signal, begin, length, window, exact, ratio, reference, interval):
    intervals, threads = np.empty(signal.n, np.int64), np.empty(signal.n, np.int64)
    count_intervals(signal.sizes, interval, intervals, threads)
    powers = launch.scratch(signal.sizes, np.float32)
    fields = {"powers": powers, "peak": _NOTHING, "intervals": intervals}
    launch(("powers", "region"), threads, per_sample=fields, macros={"EXACT": exact})
