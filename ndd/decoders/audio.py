"""`ndd.decoders.audio`: sound files to samples."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ndd._operator import Call, Operand, PerSample, Samples, Values, operator, output
from ndd._tensor import DType, Store
from ndd._tensor.dtype import float32, uint8
from ndd._tensor.sound import Scale
from ndd.decoders.on_error import resolve
from ndd.decoders.sound.decode import Files, Wanted, decode, decode_batch

_TYPES = ("f32", "i16", "i32")


@operator(reads="cpu", dtypes=_TYPES, outputs=2)
def audio(
    input,
    /,
    *,
    downmix: bool = False,
    dtype: DType = float32,
    duration: PerSample[float] = None,
    on_error: Literal["raise", "skip", "fill"] = "raise",
    quality: float = 50.0,
    sample_rate: PerSample[float] = 0.0,
    start: PerSample[float] = 0.0,
):
    """Decodes sound: WAV, FLAC, OGG (Vorbis, Opus), MP3, AIFF, AU, W64, CAF; with PyAV also AAC (m4a, mp4), WMA, WebM.

    Gives two outputs: the samples, `(n, channels)`, or `(n,)` with `downmix`; and their sampling rate in Hz, float32 of shape
    `()`. With `sample_rate` that is the new rate.

    A float32 sample is between -1 and 1: an integer of b bits is divided by 2**(b - 1). An integer sample keeps its upper bits.
    Floats (of files such as MP3 and Vorbis, or after resampling or downmixing) become integers by rounding `x * 32767`, or
    `x * 2147483647`, and saturate.

    Args:
        input: the bytes of files, 1-D u8 on the CPU, as `readers.File` and `io.file.read` give them. Only the needed part of a
            mapped file (`np.memmap(path, np.uint8)`) is read: a few pages with `start` and `duration`.
        downmix: give the mean of the channels.
        dtype: float32, int16 or int32.
        duration: how many seconds to decode. Default: to the end. (Not in DALI.)
        on_error: "raise" raises a RuntimeError that names every bad sample of the batch and its file; "skip" leaves bad
            samples out, so the batch is smaller; "fill" gives no samples, of one channel. `samples.dropped` lists the bad
            samples: (index, source, error). (Not in DALI.)
        quality: of resampling, 0 to 100, see `ndd.audio_resample`.
        sample_rate: the new rate in Hz; gives `ceil((n * sample_rate) / rate)` samples. 0 keeps the rate of the file.
        start: where to begin, in seconds: at sample `floor(start * rate)`. The samples equal those of the whole file to the
            last bit; in MP3, after the first million, to 2e-7. Opus, GSM and similar formats, and all files that FFmpeg
            decodes, are decoded from their beginning. (Not in DALI.)

    Differences from DALI: it also reads MP3 and the formats of FFmpeg. Floats that become integers are scaled and saturated
    (DALI gives 1 for 1.0, and Vorbis samples above 1 wrap). A negative `sample_rate` counts as 0, and with 0 the second output
    is the rate of the file (DALI gives 0). Unlike librosa's `load`, this neither downmixes nor resamples by default.

    Ogg files of Vorbis equal DALI's samples to the last bit, and soundfile's to 4e-7: its libvorbis adds in another order.
    libvorbis decodes unusual files: damaged or chained ones, and those of more than 4 MB, more than 16 channels or with floors
    of type 0. On a new machine it decodes all of them for the 12 s until the kernels are compiled.

    A file that is cut off after its header, or has damaged packets, gives the samples of the packets that can be decoded,
    one after the other. FLAC gives an error instead, as in DALI. MP3 may have other data between its frames.

    Raises RuntimeError for data that is not sound or is cut off in its header, for a `start` beyond the end, a `quality`
    outside its range, other element types, and for resampling a file of less than 256 Hz to more than 1024 times its rate.
    Raises ImportError if soundfile is not installed. The error names sample and file.

    A notebook shows the samples as a player with their waveform.

    >>> import ndd, io, soundfile
    >>> file = io.BytesIO()
    >>> soundfile.write(file, [[0.5, 0.0], [0.25, -0.25]], 8000, format="WAV")
    >>> samples, rate = ndd.decoders.audio(ndd.tensor(file.getvalue()), downmix=True)
    >>> samples.torch(), rate.item()
    (tensor([0.2500, 0.0000]), 8000.0)
    """
    if input.dtype is not uint8 or input.ndim != 1:
        raise RuntimeError(f"expected the bytes of sound files, 1-D uint8, got {input.ndim}-D {input.dtype}")
    if not 0 <= quality <= 100:
        raise RuntimeError(f"`quality` is from 0 to 100, got {quality}")
    return Samples((output(dtype, 1 if downmix else 2), output(float32, 0)), fewer=on_error == "skip")


audio.operator.empty_ndim = 1


# A batch: libraries decode, and the shapes follow from the data.
@audio.batch
def _(
    call: Call, input: Operand, *, downmix: bool, dtype: DType, duration: Values | None, on_error: str, quality: float,
    sample_rate: Values, start: Values,
) -> list[Any]:  # fmt: skip
    count = input.n
    rates, starts = sample_rate.each().astype(np.float64), start.each().astype(np.float64)
    durations = np.full(count, np.nan) if duration is None else duration.each().astype(np.float64)
    for values, numbers in ((sample_rate, rates), (start, starts), (duration, durations)):
        for i in np.flatnonzero(~np.isfinite(numbers))[:1].tolist() if values is not None else []:
            raise values.error(i, f"`{values.name}` is a finite number, got {numbers[i]}")
    for i in np.flatnonzero(durations < 0)[:1].tolist():
        raise duration.error(i, f"`duration` is 0 s or more, got {durations[i]}")  # type: ignore[union-attr]
    files = Files(np.stack([input.pointers(), input.sizes], axis=1), lambda i: input.arrays[i])
    wanted = Wanted(np.dtype(dtype.numpy), downmix, 0.0, quality)
    decoded = decode_batch(files, wanted, rates, starts, durations, call)
    out_rates = np.where(rates > 0, rates, decoded.rates).astype(np.float32)
    info = input.source_info
    if decoded.whole:
        samples = Store(call.outs[0].dtype, None, call.outs[0].device, decoded.shapes, flat=decoded.flat)
        return _labelled(call, samples, out_rates, None, info)
    parts = decoded.parts()
    rest = np.flatnonzero(~decoded.done).tolist()

    def decode_next(k: int) -> None:
        i = rest[k]
        own = wanted._replace(
            sample_rate=float(rates[i]), start=float(starts[i]),
            duration=None if np.isnan(durations[i]) else float(durations[i]),
        )  # fmt: skip
        parts[i], rate = decode(files.array(i), own)
        out_rates[i] = rates[i] if rates[i] > 0 else rate

    def silence(i: int, error: BaseException) -> None:
        parts[i] = np.zeros(0 if downmix else (0, 1), wanted.dtype)
        out_rates[i] = max(rates[i], 0)

    errors = {rest[k]: error for k, error in call.spread(decode_next, len(rest)).items()}
    policy = "raise" if on_error == "skip" and not call.batched else on_error
    kept, dropped = resolve(errors, count, info, policy, silence)
    if len(kept) < count:
        parts, out_rates, info = [parts[i] for i in kept], out_rates[kept], info and [info[i] for i in kept]
    samples = Store(call.outs[0].dtype, None, call.outs[0].device, [p.shape for p in parts], parts=parts)
    return _labelled(call, samples, out_rates, dropped, info)


def _labelled(call: Call, samples: Store, rates: np.ndarray, dropped: Any, info: Any) -> list[Any]:
    """The two outputs, with their scales, sources and dropped samples."""
    rate = Store(float32, None, call.outs[1].device, [()] * len(rates), whole=rates)
    listed = rates.tolist()
    known = {r: Scale(1 / (r or 1)) for r in set(listed)}  # recordings have few rates
    samples.scales = [known[r] for r in listed]
    for store in (samples, rate):
        store.dropped = dropped
        if dropped and info:
            store.source_info = info
    return [samples, rate]
