"""`ndd.spectrogram`: short-time Fourier transforms of signals."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ndd._cpu.fourier import powers
from ndd._cpu.jit import kernel
from ndd._cpu.opencv import single_threaded
from ndd._cpu.signal_lengths import count_frames
from ndd._operator import Plan, bad_sample, operator, output
from ndd._operator.continued import continuation, hand_over
from ndd._tensor import Store
from ndd._tensor.dtype import float32
from ndd._tensor.memory import host_empty
from ndd._tensor.sound import Scale
from ndd.ops.audio.signal import lengths_of

# Numbers of the frames that are transformed together on the CPU: with fewer Python takes as long as they.
_CHUNK = 1 << 17


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
    """Gives the power (or magnitude) of each frequency in windows that move over a signal.

    Window `k` begins at sample `k * window_step`, or has its middle there with `center_windows`; its samples are
    multiplied with `window_fn` and transformed: `|rfft(window, nfft)| ** power`. Takes float32 of shape `(n,)`, or with
    further extents of 1, and gives float32 `(nfft // 2 + 1, windows)`. Row `f` is the frequency
    `f * rate / nfft` in Hz, column `t` the time `t * window_step / rate` in s.

    Args:
        center_windows: windows around their sample, `n // window_step + 1` of them; else only those that lie inside the
            signal, `(n - window_length) // window_step + 1` (a signal that is too short by less than a step gets one, which
            goes on with zeros).
        layout: "ft", or "tf" for the transposed result, `(windows, nfft // 2 + 1)`.
        nfft: the length of the transform, at least `window_length`, which is the default; of windows shorter than it the
            rest is zeros.
        power: 2 for the power (energy), 1 for the magnitude.
        reflect_padding: what lies outside of the signal is its mirror image (the first sample is not repeated); else
            zeros.
        window_fn: `window_length` numbers. Default: a Hann window, `sin(pi * (i + 0.5) / window_length) ** 2`.
        window_length: the length of a window in samples; 25 ms at 16 kHz are 400.
        window_step: how far a window is from the one before, in samples.

    Unlike `librosa.stft`: its Hann window is `sin(pi * i / window_length) ** 2` (give it as `window_fn` for the same
    numbers), a short window lies in the middle of `nfft`, what is outside counts as zeros by default, and it gives complex
    numbers.

    Errors: RuntimeError for another element type, a signal of several channels, an empty one, one shorter than a window
    that is not centred, and for arguments outside of what is said here.

    >>> import ndd
    >>> wave = ndd.tensor([1.0, 0.0, -1.0, 0.0] * 4)
    >>> ndd.spectrogram(wave, window_length=4, window_step=8, window_fn=[1] * 4, center_windows=False).torch()
    tensor([[0., 0.],
            [4., 4.],
            [0., 0.]])
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
    """Which windows the signals of a batch have, and what each is multiplied with."""

    def __init__(
        self, signal: Any, layout: str, centred: bool, reflect: bool, window: Any, nfft: int | None, length: int, step: int
    ):  # fmt: skip
        n = signal.n
        self.bins = (nfft or length) // 2 + 1
        self.lengths, self.counts = np.empty(n, np.int64), np.empty(n, np.int64)
        self.shapes = np.empty((n, 2), np.int64)
        """Of the spectrograms."""
        along_t = int(layout == "ft")
        made = self.lengths, self.counts, self.shapes
        if count_frames(signal.shapes, centred, length, step, self.bins, along_t, *made) >= 0:
            _refuse(signal, centred, length, step)
        self.reflect = reflect and centred
        self.first = -(length // 2) if centred else 0
        self.step, self.length, self.nfft = step, length, nfft or length
        self.window = _hann(length) if window is None else _kept(np.asarray(window, np.float32).tobytes())


def _refuse(signal: Any, centred: bool, length: int, step: int) -> None:
    """Says which signal has no window, or several channels."""
    lengths = lengths_of(signal)
    i = int((lengths < (1 if centred else max(1, length - step + 1))).argmax())
    n = int(lengths[i])
    text = f"the signal is shorter ({n}) than a window ({length}): `center_windows=True` would take it"
    raise bad_sample(i, text if n else "the signal is empty")


@functools.lru_cache(maxsize=16)
def _hann(length: int) -> np.ndarray:
    return (0.5 - 0.5 * np.cos((np.arange(length) + 0.5) * (2 * np.pi / length))).astype(np.float32)


@functools.lru_cache(maxsize=16)
def _kept(window: bytes) -> np.ndarray:
    """The same array for the same numbers."""
    return np.frombuffer(window, np.float32)


@spectrogram.batch
def _(
    call, signal, *, center_windows, layout, nfft, power, reflect_padding, window_fn, window_length, window_step
) -> Store:
    frames = _Frames(signal, layout, center_windows, reflect_padding, window_fn, nfft, window_length, window_step)
    shapes = frames.shapes
    after = continuation(call, shapes) if layout == "ft" else None
    if after is None:
        flat = host_empty(int(frames.counts.sum()) * frames.bins, np.float32)
        store = Store(float32, layout, call.device, shapes, flat=flat)
    else:
        store = after.store
    signals, results = [x.reshape(-1) for x in signal.arrays], store.arrays()
    chunks = _chunks(frames.counts.tolist(), max(1, _CHUNK // frames.nfft))

    def transform(k: int) -> None:
        parts = chunks[k]
        rows = np.empty((sum([last - first for _, first, last in parts]), frames.nfft), np.float32)
        row = 0
        for i, first, last in parts:
            start = frames.first + first * frames.step
            cut_windows(signals[i], frames.window, start, frames.step, frames.reflect, rows[row : row + last - first])
            row += last - first
        values = np.empty((len(rows), frames.bins), np.float32)
        powers(rows, power, values, rows)
        if after is not None:
            columns = np.empty(values.shape[::-1], np.float32)
            single_threaded().transpose(values, columns)
            values = np.empty((len(results[0]), len(rows)), np.float32)
            after.work(columns, values)
            values = values.T
        row = 0
        for i, first, last in parts:
            own = values[row : row + last - first]
            if layout == "tf":
                results[i][first:last] = own
            elif after is not None:
                results[i][:, first:last] = own.T
            else:
                single_threaded().transpose(own, results[i][:, first:last])
            row += last - first

    errors = call.spread(transform, len(chunks), store.nbytes())
    for error in errors.values():
        raise error
    return store if after is None else hand_over(call, after, shapes)


@spectrogram.scale
def _(scale: Scale, *, nfft, window_length, window_step, **_):
    return Scale(scale.seconds * window_step, 1 / (scale.seconds * (nfft or window_length)))


def _chunks(counts: list[int], most: int) -> list[list[tuple[int, int, int]]]:
    """All windows of the batch in runs of at most `most`: (sample, its first window, behind its last one)."""
    chunks: list[list[tuple[int, int, int]]] = [[]]
    room = most
    for i, count in enumerate(counts):
        first = 0
        while first < count:
            if not room:
                chunks.append([])
                room = most
            last = min(count, first + room)
            chunks[-1].append((i, first, last))
            room -= last - first
            first = last
    return chunks


@kernel
def cut_windows(signal, window, first, step, reflect, out):
    """`out[t]` = the samples from `first + t * step` times `window`, then zeros."""
    n, length = signal.size, window.size
    period = max(1, 2 * (n - 1))
    for t in range(len(out)):
        start, row = first + t * step, out[t]
        if start >= 0 and start + length <= n:
            part = signal[start : start + length]
            for j in range(length):
                row[j] = part[j] * window[j]
        else:
            for j in range(length):
                i = start + j
                if reflect:
                    i %= period
                    i = i if i < n else period - i
                row[j] = signal[i] * window[j] if 0 <= i < n else np.float32(0)
        row[length:] = 0


@cut_windows.meanwhile
def _(signal, window, first, step, reflect, out):
    n, length = signal.size, window.size
    at = first + step * np.arange(len(out))[:, None] + np.arange(length)
    if reflect:
        at %= max(1, 2 * (n - 1))
        at = np.where(at < n, at, 2 * (n - 1) - at)
    outside = (at < 0) | (at >= n)
    out[:, :length] = signal[np.where(outside, 0, at)] * window if n else 0
    out[:, :length][outside] = 0
    out[:, length:] = 0


@spectrogram.plan
def _(signal, *, center_windows, layout, nfft, power, reflect_padding, window_fn, window_length, window_step):
    frames = _Frames(signal, layout, center_windows, reflect_padding, window_fn, nfft, window_length, window_step)
    return Plan(frames.shapes, {}, {"frames": frames, "layout": layout, "power": power})


@spectrogram.cuda("spectrogram.cu")
def _(launch, signal, out, frames, layout, power):
    from ndd._cuda import fourier

    rows = fourier.memory(launch, frames.counts, frames.nfft)
    window = launch.table(frames.window, kept=True)
    fields = {"n": frames.lengths, "windows": frames.counts, "window": window, "rows": rows}
    numbers = {
        "first": frames.first, "step": frames.step, "length": frames.length, "nfft": frames.nfft, "bins": frames.bins,
    }  # fmt: skip
    macros = {"REFLECT": frames.reflect, "ROOT": power == 1, "TRANSPOSED": layout == "ft"}
    launch("cut_windows", frames.counts * frames.nfft, per_sample=fields, shared=numbers, macros=macros)
    fields["rows"] = fourier.rfft(launch, rows)
    launch("power", per_sample=fields, shared=numbers, macros=macros)
