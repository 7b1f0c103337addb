"""`ndd.spectrogram`: short-time Fourier transforms of signals."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._compiled.simd import TILE, prefetch_to_write, transpose_tile
from ndd._cuda import fourier
from ndd._operator import Plan, bad_sample, operator, output
from ndd._operator.fusion import Continuation, continuation, hand_over
from ndd._operator.naming import raise_first
from ndd._tensor import Store
from ndd._tensor.dtype import float32
from ndd._tensor.memory import host_empty
from ndd._tensor.sound import Scale
from ndd.ops.audio.fourier import empty_row, forward, power_of, power_of_row, rfft_of_rows, transform
from ndd.ops.audio.signal import lengths_of
from ndd.ops.audio.signal_lengths import count_frames

# The windows that a fused call takes together on the CPU, in numbers: with fewer, Python takes as long as the computation.
_CHUNK = 1 << 17
_EACH = 3  # runs for each thread, so that a thread that begins late has less to do
_BYTES = 1 << 17  # of a run, at least


@operator(types=("f32",))
def spectrogram(
    signal,
    /,
    *,
    center_windows: bool = True,
    layout: str = "ft",
    nfft: int | None = None,
    power: int = 2,
    reflect_padding: bool = True,
    window_fn: list[float] | None = None,
    window_length: int = 512,
    window_step: int = 256,
):
    """Returns the power (or magnitude) of each frequency in windows that move over a signal.

    Window `k` begins at sample `k * window_step`, or has its middle there with `center_windows`. Its samples are multiplied by
    `window_fn` and transformed: `|rfft(window, nfft)| ** power`. Takes float32 of shape `(n,)`, or with further extents of 1,
    and gives float32 `(nfft // 2 + 1, windows)`. Row `f` is the frequency `f * rate / nfft` in Hz, column `t` the time `t *
    window_step / rate` in s.

    Args:
        center_windows: windows are centred at their sample; there are `n // window_step + 1` of them. Otherwise there are only
            those inside the signal, `(n - window_length) // window_step + 1` (a signal that is too short by less than a step
            gets one window, padded with zeros).
        layout: "ft", or "tf" for the transposed result, `(windows, nfft // 2 + 1)`.
        nfft: the length of the transform, at least `window_length`, which is the default. Shorter windows are padded with
            zeros.
        power: 2 for the power (energy), 1 for the magnitude.
        reflect_padding: the signal continues as its mirror image (the first sample is not repeated); otherwise with zeros.
        window_fn: `window_length` numbers. Default: a Hann window, `sin(pi * (i + 0.5) / window_length) ** 2`.
        window_length: the length of a window in samples; 400 samples are 25 ms at 16 kHz.
        window_step: the distance between the begins of neighbouring windows, in samples.
        signal: float32 `(n,)`, or with further extents of 1.

    `librosa.stft` differs: its Hann window is `sin(pi * i / window_length) ** 2` (pass it as `window_fn` for the same numbers),
    a short window lies in the middle of `nfft`, the signal continues with zeros by default, and the result is complex.

    Errors: RuntimeError for another element type, a signal of several channels, an empty signal, a signal shorter than a window
        that is not centred, and for arguments outside these ranges.

    >>> import ndd
    >>> wave = ndd.tensor([1.0, 0.0, -1.0, 0.0] * 4)
    >>> ndd.spectrogram(wave, window_length=4, window_step=8, window_fn=[1] * 4, center_windows=False).torch()
    tensor([[0., 0.],
            [4., 4.],
            [0., 0.]])
    >>> ndd.spectrogram(ndd.demo.sound(), nfft=256, window_length=256, window_step=64).shape
    (129, 151)
    """
    _checked(layout, nfft, power, window_fn, window_length, window_step)
    return output(float32, 2, layout)


def _checked(layout: str, nfft: Any, power: int, window: Any, length: int, step: int) -> None:
    if layout not in ("ft", "tf"):
        raise RuntimeError(f"`layout`: expected 'ft' or 'tf', got {layout!r}")
    if power not in (1, 2):
        raise RuntimeError(f"`power`: expected 1 (magnitude) or 2 (power), got {power}")
    if length < 1 or step < 1:
        raise RuntimeError(f"`window_length` and `window_step` are at least 1, got {length} and {step}")
    if nfft is not None and nfft < length:
        raise RuntimeError(f"`nfft`={nfft} is shorter than the window, `window_length`={length}")
    if window is not None and len(window) != length:
        raise RuntimeError(f"`window_fn`: expected `window_length`={length} numbers, got {len(window)}")


class _Frames:
    """The windows of the signals of a batch, and the window function."""

    def __init__(
        self, signal: Any, layout: str, centred: bool, reflect: bool, window: Any, nfft: int | None, length: int, step: int
    ):  # fmt: skip
        n = signal.n
        self.bins = (nfft or length) // 2 + 1
        self.lengths, self.counts = np.empty(n, np.int64), np.empty(n, np.int64)
        self.shapes = np.empty((n, 2), np.int64)
        """The shapes of the spectrograms."""
        along_t = int(layout == "ft")
        arrays = self.lengths, self.counts, self.shapes
        if count_frames(signal.shapes, centred, length, step, self.bins, along_t, *arrays) >= 0:
            _refuse(signal, centred, length, step)
        self.reflect = reflect and centred
        self.first = -(length // 2) if centred else 0
        self.step, self.length, self.nfft = step, length, nfft or length
        self.window = _hann(length) if window is None else _cached_window(np.asarray(window, np.float32).tobytes())


def _refuse(signal: Any, centred: bool, length: int, step: int) -> None:
    """Raises the error about a signal that has no window or several channels."""
    lengths = lengths_of(signal)
    i = int((lengths < (1 if centred else max(1, length - step + 1))).argmax())
    n = int(lengths[i])
    text = f"the signal is shorter ({n}) than a window ({length}): `center_windows=True` accepts it"
    raise bad_sample(i, text if n else "the signal is empty")


@functools.lru_cache(maxsize=16)
def _hann(length: int) -> np.ndarray:
    return (0.5 - 0.5 * np.cos((np.arange(length) + 0.5) * (2 * np.pi / length))).astype(np.float32)


@functools.lru_cache(maxsize=16)
def _cached_window(window: bytes) -> np.ndarray:
    """The same array for the same numbers."""
    return np.frombuffer(window, np.float32)


# A batch: the columns of all signals are transformed in pieces of equal work.
@spectrogram.batch
def _(
    call, signal, *, center_windows, layout, nfft, power, reflect_padding, window_fn, window_length, window_step
) -> Store:
    frames = _Frames(signal, layout, center_windows, reflect_padding, window_fn, nfft, window_length, window_step)
    shapes, along_t = frames.shapes, layout == "ft"
    after = continuation(call, shapes) if along_t else None
    if after is None:
        flat = host_empty(int(frames.counts.sum()) * frames.bins, np.float32)
        store = Store(float32, layout, call.device, shapes, flat=flat)
    else:
        store, flat = after.store, None
    x, starts = signal.elements()
    mkl = transform(frames.nfft)
    transformed, handle = (_without_mkl, 0) if mkl is None else (_transformed, mkl.handle)
    total, nbytes = int(frames.counts.sum()), store.nbytes() + 4 * int(frames.lengths.sum())
    if after is None:
        parts = max(1, min(_EACH * call.threads, nbytes // _BYTES, total))
    else:
        parts = -(-total // max(1, _CHUNK // frames.nfft))
    edges = [total * k // parts for k in range(parts + 1)]

    def work(k: int) -> None:
        first, last = edges[k], edges[k + 1]
        wide = 0 if after is None else last - first
        out = flat if after is None else np.empty(frames.bins * wide, np.float32)
        transformed(
            x, starts, frames.lengths, frames.counts, first, last, frames.window, frames.first, frames.step, frames.reflect,
            frames.nfft, handle, power == 1, along_t, wide, empty_row(frames.nfft), out,
        )  # fmt: skip
        if after is not None:
            _continue(after, frames.counts, first, last, out.reshape(frames.bins, wide))

    raise_first(call.spread(work, parts, nbytes))
    return store if after is None else hand_over(call, after, shapes)


def _continue(after: Continuation, counts: np.ndarray, first: int, last: int, columns: np.ndarray) -> None:
    """Passes the windows `first` to `last` of the batch, one in each column, to the call that takes them."""
    results = after.store.arrays()
    values = np.empty((len(results[0]), last - first), np.float32)
    after.work(columns, values)
    for n, begin, end, place in _own(counts, first, last):
        results[n][:, begin:end] = values[:, place : place + end - begin]


def _own(counts: np.ndarray, first: int, last: int) -> Iterator[tuple[int, int, int, int]]:
    """For the windows `first` to `last` of the batch: each sample, the range of its own windows, and their place."""
    ends = np.cumsum(counts)
    begin = int(np.searchsorted(ends, first, "right"))
    before = int(ends[begin] - counts[begin])
    for n, count in enumerate(counts[begin:].tolist(), begin):
        if before >= last:
            return
        start = max(first - before, 0)
        if start < min(count, last - before):
            yield n, start, min(count, last - before), before + start - first
        before += count


def _scale_of(scale: Scale, *, nfft, window_length, window_step, **_):
    return Scale(scale.seconds * window_step, 1 / (scale.seconds * (nfft or window_length)))


spectrogram.operator.scale = _scale_of


@kernel
def _transformed(
    x, starts, lengths, counts, first, last, window, begin, step, reflect, nfft, handle, root, along_t, wide, row, out
):  # fmt: skip
    """Computes the powers of windows `first` to `last` of all windows of a batch, or their roots.

    Args:
        x, starts, lengths, counts: the signals, and for each its begin in `x`, its length and the number of its windows.
        window, begin, step, reflect: the window function, the begin of the first window in its signal, the distance between
            windows, and whether a signal continues as its mirror image.
        nfft, handle, row: the transform, and memory for a window and its transform.
        along_t: whether the windows are columns (of a sample, or of all of `out` if that is `wide`).
        out: all spectrograms one after the other, or only those of these windows if it is `wide`.
    """
    bins = nfft // 2 + 1
    values, piece = empty((TILE, (bins + TILE - 1) // TILE * TILE), np.float32), empty((TILE, TILE), np.float32)
    before = 0
    for n in range(len(starts)):
        count, signal = counts[n], x[starts[n] : starts[n] + lengths[n]]
        columns = count if wide == 0 else wide
        place = before * bins if wide == 0 else 0
        spectra = out[place : place + bins * columns]
        t, end = max(first - before, 0), min(last - before, count)
        while t < end:
            here = min(end - t, TILE)
            column = t if wide == 0 else t + before - first
            for k in range(here):
                lay_window(signal, window, begin + (t + k) * step, reflect, nfft, row)
                forward(handle, row.ctypes.data)
                target = values[k, :bins] if along_t else spectra[(t + k) * bins : (t + k + 1) * bins]
                power_of_row(row, root, target)
                if along_t:  # prefetch: a part of a cache line is read before it is written
                    for i in range(bins * k // here, bins * (k + 1) // here):
                        prefetch_to_write(spectra, i * columns + column + 2 * here - 1)
            if along_t:
                _write_columns(values, here, piece, spectra.reshape(bins, columns), column)
            t += here
        before += count


@kernel
def _write_columns(values, count, piece, out, first):
    """Writes `count` rows of `values`, at most 16, to the columns of `out` from `first` on."""
    bins = len(out)
    for k in range(0, bins, TILE):
        if count == TILE and k + TILE <= bins:
            transpose_tile(values, 0, k, out, k, first)
        else:
            transpose_tile(values, 0, k, piece, 0, 0)
            for i in range(min(TILE, bins - k)):
                for t in range(count):
                    out[k + i, first + t] = piece[i, t]


@kernel
def lay_window(signal, window, start, reflect, nfft, row):
    """`row[:nfft]` = the samples from `start` on times `window`, then zeros."""
    n, length = signal.size, window.size
    left = min(max(-start, 0), length)
    right = max(min(n - start, length), left)
    for j in range(left):
        row[j] = _mirrored(signal, start + j) * window[j] if reflect else np.float32(0)
    part, own, target = signal[start + left : start + right], window[left:right], row[left:right]
    for j in range(target.size):
        target[j] = part[j] * own[j]
    for j in range(right, length):
        row[j] = _mirrored(signal, start + j) * window[j] if reflect else np.float32(0)
    row[length:nfft] = 0


@kernel
def _mirrored(signal, i):
    """Sample `i` outside the signal, by reflection at its ends."""
    n = signal.size
    period = max(1, 2 * (n - 1))
    i = -i if i < 0 else period - i
    if i < 0 or i >= n:  # usually one reflection is enough, without a division
        i %= period
        i = i if i < n else period - i
    return signal[i]


@_transformed.fallback
def _without_mkl(
    x, starts, lengths, counts, first, last, window, begin, step, reflect, nfft, handle, root, along_t, wide, row, out
):  # fmt: skip
    """Does the same as `_transformed` with NumPy and any library's transform."""
    bins = nfft // 2 + 1
    ends = np.cumsum(counts) * bins
    for n, t, end, column in _own(counts, first, last):
        signal = x[starts[n] : starts[n] + lengths[n]]
        values = np.empty((end - t, bins), np.float32)
        power_of(
            rfft_of_rows(_windows(signal, window, begin + step * np.arange(t, end), reflect, nfft)),
            1 if root else 2,
            values,
        )
        if wide:
            out.reshape(bins, wide)[:, column : column + end - t] = values.T
            continue
        own = out[ends[n] - counts[n] * bins : ends[n]]
        if along_t:
            own.reshape(bins, counts[n])[:, t:end] = values.T
        else:
            own.reshape(counts[n], bins)[t:end] = values


def _windows(signal: np.ndarray, window: np.ndarray, starts: np.ndarray, reflect: bool, nfft: int) -> np.ndarray:
    n, length = signal.size, window.size
    rows = np.zeros((len(starts), nfft), np.float32)
    at = starts[:, None] + np.arange(length)
    if reflect:
        at %= max(1, 2 * (n - 1))
        at = np.where(at < n, at, 2 * (n - 1) - at)
    outside = (at < 0) | (at >= n)
    rows[:, :length] = signal[np.where(outside, 0, at)] * window
    rows[:, :length][outside] = 0
    return rows


@spectrogram.plan
def _(signal, *, center_windows, layout, nfft, power, reflect_padding, window_fn, window_length, window_step):
    frames = _Frames(signal, layout, center_windows, reflect_padding, window_fn, nfft, window_length, window_step)
    return Plan(frames.shapes, {}, {"frames": frames, "layout": layout, "power": power})


@spectrogram.cuda("spectrogram.cu")
def _(launch, signal, out, frames, layout, power):
    rows = fourier.memory(launch, frames.counts, frames.nfft)
    window = launch.table(frames.window, cached=True)
    fields = {"n": frames.lengths, "windows": frames.counts, "window": window, "rows": rows}
    numbers = {
        "first": frames.first, "step": frames.step, "length": frames.length, "nfft": frames.nfft, "bins": frames.bins,
    }  # fmt: skip
    macros = {"REFLECT": frames.reflect, "ROOT": power == 1, "TRANSPOSED": layout == "ft"}
    launch("cut_windows", frames.counts * frames.nfft, per_sample=fields, shared=numbers, macros=macros)
    fields["rows"] = fourier.rfft(launch, rows)
    launch("power", per_sample=fields, shared=numbers, macros=macros)
