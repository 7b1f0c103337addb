"""Results that are worked on piece by piece for the one call that takes them."""

from __future__ import annotations

import numpy as np
import pytest

import ndd

LENGTHS = (16_000, 777, 160 * 300 + 3, 401, 160 * 511)
SIZES = {"nfft": 512, "window_length": 400, "window_step": 160}


@pytest.fixture
def continued(monkeypatch):
    """The spectrograms that were never made, as many as there are."""
    import sys

    found = []
    room = sys.modules["ndd.ops.audio.spectrogram"]
    real = room.hand_over
    monkeypatch.setattr(room, "hand_over", lambda *given: found.append(real(*given)) or found[-1])
    return found


def signals(lengths=LENGTHS):
    rng = np.random.default_rng(3)
    return ndd.batch([rng.standard_normal(n).astype(np.float32) for n in lengths])


def bands(x, hold=None, **given):
    with ndd.EvalMode.deferred:
        between = ndd.spectrogram(x, **SIZES, **given)
        if hold is not None:
            hold.append(between)
        found = ndd.mel_filter_bank(between, nfilter=80, sample_rate=16000.0)
        del between
    return [np.asarray(sample) for sample in found.evaluate()]


def test_mel_bands_are_the_same_to_the_bit(continued):
    held = []
    expected = bands(signals(), held)
    assert not continued
    found = bands(signals())
    assert len(continued) == 1
    assert [a.shape for a in found] == [(80, n // 160 + 1) for n in LENGTHS]
    assert all(map(np.array_equal, found, expected))
    assert all([np.isfinite(np.asarray(sample)).all() for sample in held[0]])


def test_the_mode_does_not_matter(continued):
    expected = bands(signals())
    for _ in range(5):
        x = ndd.spectrogram(ndd.preemphasis_filter(signals(), preemph_coeff=0.0), **SIZES)
        x = ndd.mel_filter_bank(x, nfilter=80, sample_rate=16000.0)
        assert all(map(np.array_equal, [np.asarray(sample) for sample in x], expected))


def test_what_is_asked_for_later_has_its_values(continued):
    held = []
    bands(signals(), held)
    expected = ndd.spectrogram(signals(), **SIZES)
    assert all(map(np.array_equal, map(np.asarray, held[0]), map(np.asarray, expected)))


def test_other_layouts_and_single_columns_go_step_by_step(continued):
    for lengths, given in ((LENGTHS, {"layout": "tf"}), ((5000, 100), {})):
        found = bands(signals(lengths), **given)
        assert all(map(np.array_equal, found, bands(signals(lengths), [], **given)))
    assert not continued


def test_errors_are_those_of_the_operator_that_meets_them(continued):
    with pytest.raises(RuntimeError, match=r"spectrogram.*signal is empty"):
        bands(signals((500, 0)))
    with pytest.raises(RuntimeError, match=r"spectrogram.*shorter"):
        bands(signals((5000, 100)), center_windows=False)
    assert not continued


def test_a_window_of_other_numbers_and_the_magnitude(continued):
    given = {"power": 1, "window_fn": np.hamming(400).tolist(), "reflect_padding": False}
    found = bands(signals(), **given)
    assert all(map(np.array_equal, found, bands(signals(), [], **given)))
    assert len(continued) == 1


def features(x, hold=(), **given):
    """The whole row of operators; the results of those in `hold` are held by somebody."""
    kept = []
    with ndd.EvalMode.deferred:
        row = (
            lambda x: ndd.preemphasis_filter(x),
            lambda x: ndd.spectrogram(x, **{**SIZES, **given}),
            lambda x: ndd.mel_filter_bank(x, nfilter=80, sample_rate=16000.0),
            lambda x: ndd.to_decibels(x, cutoff_db=-80.0),
            lambda x: ndd.normalize(x, axes=[1]),
        )
        for k, operator in enumerate(row):
            x = operator(x)
            if k in hold:
                kept.append(x)
    return [np.asarray(sample) for sample in x.evaluate()], [[np.asarray(sample) for sample in one] for one in kept]


@pytest.fixture
def rows(monkeypatch):
    """For each row of calls that was done sample by sample: the names of those that followed."""
    import sys

    from ndd._operator import continued

    found = []
    real = continued.hand_over

    def watched(call, after, shapes):
        names, one = [call.op.name], after
        while one is not None:
            names.append(one.call.op.name)
            one = one.after
        found.append(names)
        return real(call, after, shapes)

    monkeypatch.setattr(continued, "hand_over", watched)
    monkeypatch.setattr(sys.modules["ndd.ops.audio.spectrogram"], "hand_over", watched)
    ndd.set_num_threads(2)
    yield found
    ndd.set_num_threads(None)


ROW = ["preemphasis_filter", "spectrogram", "mel_filter_bank", "to_decibels", "normalize"]
MANY = (*LENGTHS, 30_000, 25_000, 9_000, 12_345, 70_000, 60_000, 50_000, 4_000)


def test_a_row_of_operators_is_the_same_to_the_bit(rows):
    expected, kept = features(signals(MANY), range(5))
    assert not rows
    found, _ = features(signals(MANY))
    assert rows == [ROW]
    assert all(map(np.array_equal, found, expected))
    for k in range(4):
        rows.clear()
        found, (between,) = features(signals(MANY), [k])
        assert rows == [names for names in (ROW[: k + 1], ROW[k + 1 :]) if len(names) > 1]
        assert all(map(np.array_equal, found, expected))
        assert all(map(np.array_equal, between, kept[k]))


def test_a_long_signal_among_short_ones_is_shared_by_the_threads(rows):
    lengths = (700_000, 4000, 9000)
    expected, _ = features(signals(lengths), range(5))
    found, _ = features(signals(lengths))
    assert rows == [ROW[1:]]
    assert all(map(np.array_equal, found, expected))


@pytest.mark.parametrize("lengths", [(9000,) * 9, (4000,) * 9])
def test_signals_of_one_length_are_the_same_to_the_bit(rows, lengths):
    expected, _ = features(signals(lengths), range(5))
    found, _ = features(signals(lengths))
    assert rows == [ROW if lengths[0] == 9000 else ROW[:4]]  # few numbers are normalized together
    assert all(map(np.array_equal, found, expected))


def test_transforms_of_other_lengths_and_layouts_go_on_too(rows):
    for given in ({"nfft": 400}, {"nfft": 401}, {"power": 1}):
        rows.clear()
        expected, _ = features(signals(MANY), range(5), **given)
        found, _ = features(signals(MANY), **given)
        assert rows == [ROW]
        assert all(map(np.array_equal, found, expected))
    rows.clear()
    expected, _ = features(signals(MANY), range(5), layout="tf")
    found, _ = features(signals(MANY), layout="tf")
    assert rows == [ROW[:2], ROW[2:]]
    assert all(map(np.array_equal, found, expected))


def test_what_goes_wrong_in_a_row_is_said_by_the_operator_that_meets_it(rows, monkeypatch):
    import sys

    room = sys.modules["ndd.ops.audio.to_decibels"]

    def broken(*given):
        raise MemoryError("no room")

    monkeypatch.setattr(room, "_decibels", broken)
    with pytest.raises(MemoryError, match=r"to_decibels.*no room"):
        features(signals(MANY))
    assert not rows
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match=r"spectrogram.*signal is empty"):
        features(signals((*MANY, 0)))
    found, _ = features(signals(MANY))
    assert len(found) == len(MANY)
