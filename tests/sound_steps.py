"""Calls of the operators of sound on a GPU, and a program that counts their steps: `main` prints JSON for `test_new_shapes.py`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import emulated_gpu as emulation
import numpy as np
import pytest

import ndd
from ndd._compiled.background import background

_RNG = np.random.default_rng(5)


def signals(n: int = 16) -> ndd.Batch:
    return ndd.batch([np.zeros(length, np.float32) for length in _RNG.integers(600, 4000, n)], device="gpu")


def spectra(n: int = 16) -> ndd.Batch:
    return ndd.batch([np.zeros((80, w), np.float32) for w in _RNG.integers(6, 40, n)], layout="ft", device="gpu")


SOUND: dict[str, tuple[Callable[[], ndd.Batch], Callable[[ndd.Batch], Any]]] = {
    "audio_resample": (signals, lambda x: ndd.audio_resample(x, in_rate=44100.0, out_rate=16000.0)),
    "preemphasis_filter": (signals, ndd.preemphasis_filter),
    "spectrogram": (signals, lambda x: ndd.spectrogram(x, nfft=512, window_length=400, window_step=160)),
    "nonsilent_region": (signals, ndd.nonsilent_region),
    "mel_filter_bank": (spectra, lambda x: ndd.mel_filter_bank(x, nfilter=40, sample_rate=16000.0)),
    "to_decibels": (spectra, ndd.to_decibels),
    "mfcc": (spectra, ndd.mfcc),
    "normalize": (spectra, lambda x: ndd.normalize(x, axes=[1])),
}


def steps_of(call: Callable[[ndd.Batch], Any], batch: ndd.Batch) -> int:
    """How many functions are called from Python, of Python and of C, from the call to the result."""
    count = 0

    def seen(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    batch.evaluate()
    with ndd.EvalMode.sync_cpu:
        sys.setprofile(seen)
        try:
            call(batch)
        finally:
            sys.setprofile(None)
    return count


def main() -> None:
    """The steps of each call for lengths that came before, and for new ones, after a dozen batches."""
    background.forbid()
    counts = {}
    with pytest.MonkeyPatch.context() as patch:
        emulation.install(patch, emulation.ListedKernels())
        for name, (make, call) in SOUND.items():
            same = make()
            for batch in (same, same, *[make() for _ in range(12)], same):
                call(batch)
            ndd.EvalContext.current().evaluate_all()
            counts[name] = steps_of(call, same), min(steps_of(call, make()) for _ in range(3))
        ndd.EvalContext.current().evaluate_all()
    json.dump(counts, sys.stdout)
