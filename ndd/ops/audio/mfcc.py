"""`ndd.mfcc`: cosine transforms of mel spectrograms in decibels."""

from __future__ import annotations

import functools

import numpy as np

from ndd._operator import like, operator
from ndd._tensor.small_arrays import equal_rows
from ndd.ops.audio.mel_filter_bank import along_on_gpu, sums_plan
from ndd.ops.audio.weighted_sums import Weights, without_zeros


@operator(types=("f32",))
def mfcc(
    spectrogram,
    /,
    *,
    axis: int = 0,
    dct_type: int = 2,
    lifter: float = 0.0,
    n_mfcc: int = 20,
    normalize: bool = False,
):
    """Returns mel-frequency cepstral coefficients: the first coefficients of a discrete cosine transform along an axis.

    Takes float32 of any layout, usually `to_decibels(mel_filter_bank(spectrogram(x)))`, and keeps its layout. The axis becomes
    `n_mfcc` long (or keeps its length if it is shorter). For type 2, coefficient `k` of `N` numbers is `sum of x[n] * cos(pi /
    N * (n + 0.5) * k)`.

    Args:
        axis: the axis of the mel bands.
        dct_type: 1 to 4, the type of the transform; type 1 needs two numbers or more.
        lifter: L; unless it is 0, coefficient `k` is multiplied by `1 + L / 2 * sin(pi * (k + 1) / L)`.
        n_mfcc: the number of coefficients.
        normalize: makes the transform orthonormal: a factor `sqrt(2 / N)`, and another `sqrt(1 / 2)` for the constant term in
            types 2 and 3. Not for type 1.
        spectrogram: float32 of any rank: decibels of mel bands.

    `librosa.feature.mfcc` has `normalize=True` (`norm="ortho"`) by default, the same `lifter`, and transforms types 2 and 3
    only. `scipy.fft.dct` has twice these numbers.

    Errors: RuntimeError for another element type, an axis that does not exist, and arguments outside these ranges.

    >>> import ndd
    >>> ndd.mfcc(ndd.tensor([[1.0], [2.0], [3.0]]), n_mfcc=2).torch()
    tensor([[ 6.0000],
            [-1.7321]])
    >>> mels = ndd.mel_filter_bank(ndd.spectrogram(ndd.demo.sound(), nfft=256, window_length=256), sample_rate=8000, nfilter=40)
    >>> ndd.mfcc(ndd.to_decibels(mels), n_mfcc=13).shape
    (13, 38)
    """
    if not 0 <= axis < spectrogram.ndim:
        raise RuntimeError(f"`axis`={axis} does not exist: expected 0 to {spectrogram.ndim - 1}")
    if dct_type not in (1, 2, 3, 4):
        raise RuntimeError(f"`dct_type`: expected 1, 2, 3 or 4, got {dct_type}")
    if dct_type == 1 and normalize:
        raise RuntimeError("`normalize`: there is no orthonormal transform of `dct_type` 1")
    if n_mfcc < 1:
        raise RuntimeError(f"`n_mfcc` is at least 1, got {n_mfcc}")
    return like(spectrogram)


@functools.lru_cache(maxsize=64)
def _cosines(length: int, kind: int, count: int, normalize: bool, lifter: float) -> Weights:
    n, k = np.arange(length), np.arange(count)[:, None]
    if kind == 1:
        matrix = np.cos(np.pi / (length - 1) * n * k)
        matrix[:, [0, -1]] /= 2
    elif kind == 2:
        matrix = np.cos(np.pi / length * (n + 0.5) * k)
    elif kind == 3:
        matrix = np.cos(np.pi / length * n * (k + 0.5))
        matrix[:, :1] *= np.sqrt(0.5) if normalize else 0.5
    else:
        matrix = np.cos(np.pi / length * (n + 0.5) * (k + 0.5))
    if normalize:
        matrix *= np.sqrt(2 / length)
        if kind == 2:
            matrix[0] *= np.sqrt(0.5)
    if lifter:
        matrix *= 1 + lifter / 2 * np.sin(np.pi * (k + 1) / lifter)
    return without_zeros(matrix)


@mfcc.plan
def _(spectrogram, *, axis, dct_type, lifter, n_mfcc, normalize):
    shapes = spectrogram.shapes.copy()
    if dct_type == 1 and (shapes[:, axis] == 1).any():
        raise RuntimeError("`dct_type` 1 needs two numbers or more along the axis, got 1")
    shapes[:, axis] = np.minimum(shapes[:, axis], n_mfcc)
    cosines = functools.partial(_cosines, kind=dct_type, normalize=normalize, lifter=lifter)

    def of_length(length: int) -> Weights:
        return cosines(length, count=min(length, n_mfcc))

    return sums_plan(spectrogram, shapes, axis, of_length, {"axis": axis, "most": n_mfcc, "cosines": cosines})


@mfcc.cuda("weighted_sums.cu")
def _(launch, spectrogram, out, axis, most, cosines):
    lengths = spectrogram.shapes[:, axis]
    if not equal_rows(lengths):  # the weights of an empty sample do not matter: no thread reads them
        lengths = np.where(lengths, lengths, lengths.max())
    if lengths[0]:
        along_on_gpu(launch, spectrogram, axis, lengths, lambda n: cosines(n, count=min(n, most)))
