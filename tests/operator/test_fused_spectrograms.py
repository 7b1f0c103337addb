"""Fused spectrograms: computed in pieces for the one call that takes them, never as a whole."""

from __future__ import annotations

import numpy as np
import pytest

import ndd

LENGTHS = (16_000, 777, 160 * 300 + 3, 401, 160 * 511)
SIZES = {"nfft": 512, "window_length": 400, "window_step": 160}


@pytest.fixture
def fused(monkeypatch):
    """The results of the spectrograms that were fused."""
    import sys

    result = []
    room = sys.modules["ndd.ops.audio.spectrogram"]
    real = room.hand_over
    monkeypatch.setattr(room, "hand_over", lambda *arguments: result.append(real(*arguments)) or result[-1])
    return result


def signals(lengths=LENGTHS):
    rng = np.random.default_rng(3)
    return ndd.batch([rng.standard_normal(n).astype(np.float32) for n in lengths])


def bands(x, hold=None, **arguments):
    with ndd.EvalMode.deferred:
        between = ndd.spectrogram(x, **SIZES, **arguments)
        if hold is not None:
            hold.append(between)
        result = ndd.mel_filter_bank(between, nfilter=80, sample_rate=16000.0)
        del between
    return [np.asarray(sample) for sample in result.evaluate()]


def test_mel_bands_are_the_same_to_the_bit(fused):
    held = []
    expected = bands(signals(), held)
    assert not fused
    result = bands(signals())
    assert len(fused) == 1
    assert [a.shape for a in result] == [(80, n // 160 + 1) for n in LENGTHS]
    assert all(map(np.array_equal, result, expected))
    assert all([np.isfinite(np.asarray(sample)).all() for sample in held[0]])


def test_the_mode_does_not_matter(fused):
    expected = bands(signals())
    for _ in range(5):
        x = ndd.spectrogram(ndd.preemphasis_filter(signals(), preemph_coeff=0.0), **SIZES)
        x = ndd.mel_filter_bank(x, nfilter=80, sample_rate=16000.0)
        assert all(map(np.array_equal, [np.asarray(sample) for sample in x], expected))


def test_what_is_asked_for_later_has_its_values(fused):
    held = []
    bands(signals(), held)
    expected = ndd.spectrogram(signals(), **SIZES)
    assert all(map(np.array_equal, map(np.asarray, held[0]), map(np.asarray, expected)))


def test_another_layout_goes_step_by_step(fused):
    result = bands(signals(), layout="tf")
    assert all(map(np.array_equal, result, bands(signals(), [], layout="tf")))
    assert not fused


def test_single_columns_are_the_same_to_the_bit(fused):
    result = bands(signals((5000, 100, 5)))
    assert len(fused) == 1
    assert all(map(np.array_equal, result, bands(signals((5000, 100, 5)), [])))
    assert len(fused) == 1


def test_errors_are_those_of_the_operator_that_meets_them(fused):
    with pytest.raises(RuntimeError, match=r"spectrogram.*signal is empty"):
        bands(signals((500, 0)))
    with pytest.raises(RuntimeError, match=r"spectrogram.*shorter"):
        bands(signals((5000, 100)), center_windows=False)
    assert not fused


def test_a_window_of_other_numbers_and_the_magnitude(fused):
    arguments = {"power": 1, "window_fn": np.hamming(400).tolist(), "reflect_padding": False}
    result = bands(signals(), **arguments)
    assert all(map(np.array_equal, result, bands(signals(), [], **arguments)))
    assert len(fused) == 1
