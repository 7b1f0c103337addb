"""A recipe for speech."""

from __future__ import annotations

import math
from typing import Any

import ndd
from ndd.recipes.recipe import recipe


@recipe
def speech(
    sounds: Any,
    /,
    sample_rate: int = 16000,
    *,
    mels: int = 64,
    dither: float = 1e-5,
    preemphasis: float = 0.97,
    device: str = "cpu",
    rng: Any = None,
) -> Any:
    """Encoded sounds to float32 (mels, frames): the logarithms of mel bands, normalized band by band.

    Equals the features of Jasper and QuartzNet (https://arxiv.org/abs/1904.03288 and https://arxiv.org/abs/1910.10261) as NVIDIA's
    DeepLearningExamples make them with DALI: one channel, white noise and preemphasis, windows of 20 ms every 10 ms, 64 bands.

    Args:
        sounds: the bytes of files, as from `readers.File` or `readers.NemoAsr`.
        sample_rate: the rate of the decoded sound in Hz.
        mels: the number of bands.
        dither: the standard deviation of the noise; 0 for evaluation.
        preemphasis: the coefficient of the filter.
        device: "cpu" or "gpu"; sounds are decoded on the CPU.
        rng: an `ndd.random.RNG`; without it the generator of the thread.

    The sounds of a batch differ in length: `features.torch(pad=True)` returns one tensor, and `features.shape` has the numbers
    of frames.

    >>> import ndd
    >>> ndd.recipes.speech(dither=0.0).settings["mels"]
    64
    """
    waves, _ = ndd.decoders.audio(sounds, downmix=True, sample_rate=sample_rate)
    waves = waves.gpu() if device == "gpu" else waves
    if dither:
        waves = ndd.noise.gaussian(waves, stddev=dither, rng=rng)
    waves = ndd.preemphasis_filter(waves, preemph_coeff=preemphasis)
    nfft = 2 ** math.ceil(math.log2(sample_rate * 0.02))
    power = ndd.spectrogram(waves, nfft=nfft, window_length=sample_rate // 50, window_step=sample_rate // 100)
    bands = ndd.mel_filter_bank(power, sample_rate=sample_rate, nfilter=mels)
    logs = ndd.to_decibels(bands, multiplier=math.log(10), reference=1.0, cutoff_db=math.log(1e-20))
    return ndd.normalize(logs, axes=[1])
