"""Samples of different shapes, wherever they lie: as many in one call of a compiled loop as a thread takes."""

import functools

import numpy as np
import pytest

import ndd
from ndd._compiled.sample_loops import _by_fallback
from ndd._operator import partition

OPERATORS = {
    "to_decibels": lambda x: ndd.to_decibels(x, cutoff_db=-80),
    "to_decibels, reference": lambda x: ndd.to_decibels(x, reference=0.5, multiplier=20),
    "normalize, rows": lambda x: ndd.normalize(x, axes=[1], ddof=1, shift=0.5),
    "normalize, whole": lambda x: ndd.normalize(x, epsilon=0.1, scale=3.0),
    "preemphasis_filter": lambda x: ndd.preemphasis_filter(x, border="reflect"),
}


def ragged():
    """47 samples, among them empty ones, a single number, some of more and some of fewer than 4096 elements."""
    rng = np.random.default_rng(5)
    shapes = [(0, 3), (1, 1), (7, 0), *rng.integers(1, 120, (44, 2)).tolist()]
    arrays = [rng.standard_normal(s).astype(np.float32) * np.float32(10.0 ** rng.integers(-9, 9)) for s in shapes]
    for i, special in ((5, np.nan), (6, np.inf), (7, -np.inf), (8, 1e-42), (9, -0.0)):
        arrays[i].flat[:: 1 + arrays[i].size // 3] = special
    arrays[10][...] = np.nan
    arrays[11][...] = -np.abs(arrays[11])
    return arrays


@pytest.mark.parametrize(("name", "compiled"), [*((name, True) for name in OPERATORS), ("preemphasis_filter", False)])
@pytest.mark.drawn(2)
def test_the_same_bits_as_one_by_one(name, compiled, tasks, monkeypatch):
    if not compiled:
        monkeypatch.setattr(partition, "loop_over_samples", lambda item: functools.partial(_by_fallback, item))
    arrays = ragged()
    behind = ndd.copy(ndd.batch(arrays)) + np.float32(0)  # in one buffer
    behind.evaluate()
    tasks.clear()
    with ndd.EvalContext(num_threads=2):
        result = OPERATORS[name](behind).evaluate()
        apart = OPERATORS[name](ndd.batch(arrays)).evaluate()
        strided = ndd.as_batch([ndd.as_tensor(np.repeat(a, 2, 1)[:, ::2]) for a in arrays])
        between = OPERATORS[name](strided).evaluate()
    assert tasks == [2, 2, 2]
    for own, other, third, array in zip(result, apart, between, behind, strict=True):
        alone = np.asarray(OPERATORS[name](ndd.tensor(np.asarray(array))))
        np.testing.assert_array_equal(np.asarray(own), alone)
        np.testing.assert_array_equal(np.asarray(other), alone)
        np.testing.assert_array_equal(np.asarray(third), alone)


def test_small_samples_that_lie_apart_are_one_task(tasks):
    arrays = [np.full((n, 2), n, np.float32) for n in (1, 4, 3)]
    result = ndd.to_decibels(ndd.batch(arrays), reference=1.0).evaluate().tensors
    assert tasks == []
    for own, n in zip(result, (1, 4, 3), strict=True):
        np.testing.assert_allclose(own, np.full((n, 2), 10 * np.log10(n)), atol=1e-6)


def test_mel_bands_and_coefficients_are_several_samples_in_a_task(tasks):
    rng = np.random.default_rng(2)
    arrays = [rng.random((33, n), np.float32) for n in (900, 1, 0, 700, 15, *[400] * 9)]
    for call in (
        lambda x: ndd.mel_filter_bank(x, nfilter=12, sample_rate=8000.0),
        lambda x: ndd.mfcc(x, n_mfcc=13),
        lambda x: ndd.mfcc(x, n_mfcc=50, lifter=3.0),
    ):
        tasks.clear()
        with ndd.EvalContext(num_threads=2):
            result = call(ndd.batch(arrays)).evaluate()
        assert tasks == [2]
        for own, array in zip(result, arrays, strict=True):
            np.testing.assert_array_equal(np.asarray(own), np.asarray(call(ndd.tensor(array))))
        single = call(ndd.batch([arrays[2], arrays[1]])).evaluate()  # no column, and one
        assert single.shape[0][1] == 0
        np.testing.assert_array_equal(np.asarray(single.select(1)), np.asarray(result.select(1)))


def test_a_coefficient_for_each_sample():
    arrays = [np.full(n, np.inf if n == 2 else n, np.float32) for n in (3, 0, 2, 5)]
    behind = ndd.batch(arrays) + np.float32(0)
    result = ndd.preemphasis_filter(behind, preemph_coeff=ndd.batch([0.5, 1.0, 0.0, 1.0])).tensors
    np.testing.assert_array_equal(result[0], [1.5] * 3)
    np.testing.assert_array_equal(result[2], [np.inf] * 2)  # 0 copies
    np.testing.assert_array_equal(result[3], [0] * 5)


def test_what_has_no_runs_goes_sample_by_sample():
    arrays = [np.arange(n * 2, dtype=np.float32).reshape(n, 2) for n in (1, 4, 3)]
    behind = ndd.batch(arrays) + np.float32(0)
    for result in (
        ndd.normalize(behind, axes=[0]),
        ndd.normalize(behind, axes=[1], mean=ndd.batch([np.full((n, 1), 0.5, np.float32) for n in (1, 4, 3)])),
        ndd.normalize(ndd.cast(behind, dtype=ndd.uint8), axes=[1]),
        ndd.preemphasis_filter(behind, dtype=ndd.int16),
        ndd.to_decibels(behind.select([2, 0])),
    ):
        assert [np.isfinite(np.asarray(x)).all() for x in result] == [True] * result.batch_size


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("kind", [np.float32, np.int16])
def test_runs_of_signals_are_taken_in_turn(kind, compiled, tasks, monkeypatch):
    if not compiled:
        monkeypatch.setattr(partition, "loop_over_samples", lambda item: functools.partial(_by_fallback, item))
    rng = np.random.default_rng(4)
    loud = [rng.integers(-2, 3, n) for n in (0, 1, 7, *range(20000, 60000, 2000))]
    for k, signal in enumerate(loud[3:]):
        signal[1000 * (k + 1) : 1000 * (k + 1) + 900] *= 1000
    arrays = [signal.astype(kind) for signal in loud]
    strided = ndd.as_batch([ndd.as_tensor(np.repeat(a, 2)[::2]) for a in arrays]).evaluate()
    apart = ndd.batch(arrays).evaluate()
    tasks.clear()
    with ndd.EvalContext(num_threads=3):
        for batch in (apart, strided):
            begins, lengths = ndd.nonsilent_region(batch, cutoff_db=-30.0, window_length=256)
            begins.evaluate()
            for array, begin, length in zip(arrays, begins, lengths, strict=True):
                alone = ndd.nonsilent_region(ndd.tensor(array), cutoff_db=-30.0, window_length=256)
                assert (begin.item(), length.item()) == tuple(item.item() for item in alone)
    assert tasks == [3, 3]
