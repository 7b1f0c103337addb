"""`ndd.mel_filter_bank`: spectrograms on the mel scale."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._operator import Operand, Plan, like, operator
from ndd._tensor.small_arrays import equal_rows
from ndd._tensor.store import volumes
from ndd.ops.audio.weighted_sums import Weights, sums_in_rows, sums_of_columns, weighted_columns, without_zeros


@operator(types=("f32",))
def mel_filter_bank(
    spectrogram,
    /,
    *,
    freq_high: float = 0.0,
    freq_low: float = 0.0,
    mel_formula: str = "slaney",
    nfilter: int = 128,
    normalize: bool = True,
    sample_rate: float = 44100.0,
):
    """Sums the frequencies of a spectrogram under triangles that are evenly spaced on the mel scale.

    Takes float32 of any layout. The frequencies lie along axis `f`, or without a layout along the second-to-last axis. With
    `bins` of them, bin `k` has the frequency `k * sample_rate / 2 / (bins - 1)` Hz. That axis becomes `nfilter` long.

    Triangle `m` rises from edge `m` to edge `m + 1` and falls to edge `m + 2`, straight in Hz, where the `nfilter + 2`
    edges are evenly spaced in mel from `freq_low` to `freq_high`.

    Args:
        freq_high: the last edge in Hz. Default (0): half of `sample_rate`.
        freq_low: the first edge in Hz.
        mel_formula: "slaney" (linear up to 1 kHz, then logarithmic) or "htk", `2595 * log10(1 + hz / 700)`.
        nfilter: the number of triangles.
        normalize: triangles have area 1 and the height `2 / (width in Hz)`; otherwise their height is 1.
        sample_rate: the sampling rate of the signal, in Hz. A spectrogram does not contain it, and the default is 44.1 kHz, so
            pass it.
        spectrogram: float32 of any rank, with the frequencies along one axis.

    Equivalent to `librosa.feature.melspectrogram(S=...)`, where `htk=True` selects the second formula and `norm=None` turns off
    normalization. A triangle beyond half of `sample_rate` gives 0 (DALI reads past the end of the data there, for frequencies
    along the last axis). `torchaudio`'s `melscale_fbanks` has "htk" and no normalization by default.

    Errors: RuntimeError for another element type, a layout without `f`, and arguments outside these ranges.

    >>> import ndd
    >>> flat = ndd.ones(shape=[5, 2], dtype=ndd.float32)
    >>> ndd.mel_filter_bank(flat, nfilter=2, sample_rate=8000, normalize=False, mel_formula="htk").torch()
    tensor([[0.6759, 0.6759],
            [1.6824, 1.6824]])
    >>> power = ndd.spectrogram(ndd.demo.sound(), nfft=256, window_length=256, window_step=64)
    >>> ndd.mel_filter_bank(power, sample_rate=8000, nfilter=40).shape
    (40, 151)
    """
    if mel_formula not in ("slaney", "htk"):
        raise RuntimeError(f"`mel_formula`: expected 'slaney' or 'htk', got {mel_formula!r}")
    if nfilter < 1 or not sample_rate > 0 or not freq_low >= 0:
        raise RuntimeError(
            f"expected `nfilter` from 1, `sample_rate` above 0, `freq_low` from 0; got {nfilter}, {sample_rate}, {freq_low}"
        )
    if not freq_low < (freq_high if freq_high > 0 else sample_rate / 2) <= sample_rate:
        raise RuntimeError(
            f"`freq_high` lies above `freq_low` and not above `sample_rate`: got {freq_high}, {freq_low}, {sample_rate}"
        )
    if not spectrogram.ndim:
        raise RuntimeError("expected a spectrogram, got a single number")
    _axis(spectrogram)
    return like(spectrogram)


def _axis(spectrogram) -> int:
    layout = spectrogram.layout
    if not layout:
        return max(0, spectrogram.ndim - 2)
    if "f" not in layout:
        raise RuntimeError(f"expected a layout with the axis of frequencies, 'f', such as 'ft', got {layout!r}")
    return layout.index("f")


@functools.lru_cache(maxsize=64)
def _triangles(bins: int, formula: str, count: int, rate: float, low: float, high: float, normalize: bool) -> Weights:
    least, most = _to_mel(np.array([low, high]), formula).tolist()
    edges = _to_hz(np.linspace(least, most, count + 2), formula)
    with np.errstate(all="ignore"):
        hz = np.arange(bins) * (rate / 2 / (bins - 1)) if bins > 1 else np.full(bins, np.nan)
        widths = np.diff(edges)[:, None]
        rising = (hz - edges[:-2, None]) / widths[:-1]
        falling = (edges[2:, None] - hz) / widths[1:]
        weights = np.nan_to_num(np.maximum(0, np.minimum(rising, falling)))
    if normalize:
        weights *= 2 / (edges[2:] - edges[:-2])[:, None]
    return without_zeros(weights)


def _to_mel(hz: np.ndarray, formula: str) -> np.ndarray:
    if formula == "htk":
        return 2595 * np.log10(1 + hz / 700)
    with np.errstate(divide="ignore"):
        return np.where(hz < 1000, hz * (3 / 200), 15 + 27 * np.log(hz / 1000) / np.log(6.4))


def _to_hz(mel: np.ndarray, formula: str) -> np.ndarray:
    if formula == "htk":
        return 700 * (10 ** (mel / 2595) - 1)
    return np.where(mel < 15, mel * (200 / 3), 1000 * 6.4 ** ((mel - 15) / 27))


@mel_filter_bank.plan
def _(spectrogram, *, freq_high, freq_low, mel_formula, nfilter, normalize, sample_rate):
    axis = _axis(spectrogram)
    high = freq_high if freq_high > 0 else sample_rate / 2
    shapes = spectrogram.shapes.copy()
    shapes[:, axis] = nfilter
    triangles = functools.partial(
        _triangles, formula=mel_formula, count=nfilter, rate=sample_rate, low=freq_low, high=high, normalize=normalize
    )
    return sums_plan(spectrogram, shapes, axis, triangles, {"axis": axis, "triangles": triangles})


@mel_filter_bank.fuses("spectrogram")
def _(spectrogram, plan):
    """A function from some columns of spectrograms `[f, t]` to mel bands."""
    if plan.shared["axis"] != 0:
        return None
    weights = plan.shared["triangles"](spectrogram.shapes[0, 0].item())
    return functools.partial(weighted_columns, weights=weights)


def sums_plan(
    input: Operand, shapes: np.ndarray, axis: int, weights_of: Callable[[int], Weights], shared: dict[str, Any]
) -> Plan:
    """The plan of sums along an axis. `weights_of` returns the weights for a length of the axis."""
    outer, inner = volumes(input.shapes[:, :axis]), volumes(input.shapes[:, axis + 1 :])
    lengths = input.shapes[:, axis]
    if not equal_rows(lengths) or not lengths[0]:
        return Plan(shapes, {}, shared, kernel=functools.partial(_along, axis=axis, weights_of=weights_of))
    names = ("first", "last", "start", "weights")
    numbers = {"length": lengths[0].item(), **dict(zip(names, weights_of(lengths[0].item())[:4], strict=True))}
    if inner.max() == 1:
        kernel = functools.partial(sums_in_rows, **numbers)
        return Plan(shapes, {"lines": outer * inner}, shared, kernel=kernel, view="flat")
    kernel = functools.partial(sums_of_columns, **numbers)
    return Plan(shapes, {"outer": outer, "inner": inner}, shared, kernel=kernel, view="flat")


def _along(x: np.ndarray, out: np.ndarray, axis: int, weights_of: Callable[[int], Weights]) -> None:
    """The sums of one sample, for batches in which the length of the axis varies."""
    if not out.size:
        return
    outer, inner = (math.prod(extents) for extents in (x.shape[:axis], x.shape[axis + 1 :]))
    weights = weights_of(x.shape[axis])
    if inner == 1:
        sums_in_rows(x.reshape(-1), out.reshape(-1), outer, x.shape[axis], *weights[:4])
    else:
        sums_of_columns(x.reshape(-1), out.reshape(-1), outer, inner, x.shape[axis], *weights[:4])


@mel_filter_bank.cuda("weighted_sums.cu")
def _(launch, spectrogram, out, axis, triangles):
    along_on_gpu(launch, spectrogram, axis, spectrogram.shapes[:, axis], triangles)


def along_on_gpu(launch, x, axis: int, kinds: np.ndarray, weights_of: Callable[[int], Weights]) -> None:
    """Does the same as `_along` for a batch, to output 0. `axis` is one of the plan's numbers. `kinds`, `[N]`, has the kind of
    each sample; `weights_of` returns the same weights each time for the same kind."""
    first = kinds[0].item()
    if equal_rows(kinds):
        table = launch.table(weights_of(first).table, cached=True)
    else:
        names = kinds.tolist()
        tables = {kind: weights_of(kind).table for kind in set(names)}
        widest = max([len(t) for t in tables.values()])
        table = launch.table(np.stack([np.resize(tables[kind], widest) for kind in names]), each=True)
    launch("weighted_sums", per_sample={"table": table, "inner": volumes(x.shapes[:, axis + 1 :])})
