"""`ndd.preemphasis_filter` and `ndd.nonsilent_region` against DALI."""

# ruff: noqa: B023  (every closure runs before the loop goes on)
from __future__ import annotations

import numpy as np
import pytest
from cases import DTYPES, I16, EachSample, each_of
from compare import check_same
from selection import drawn, drawn_types

import ndd

REGISTRY_INPUTS = {
    "steps": (lambda rng, i, dtype: rng.integers(0, 2 if dtype == "bool" else 100, 300 + 40 * i).astype(dtype), None),
    "burst": (
        lambda rng, i, dtype: (np.concatenate([np.zeros(200 * i), rng.random(400) * 100, np.zeros(333)])).astype(dtype),
        None,
    ),
}
REGISTRY_CASES = {
    "preemphasis_filter": each_of(
        {},
        {"preemph_coeff": EachSample([0.5, 0.0, 0.9]), "border": "zero", "dtype": I16},
        {"border": "reflect"},
        inputs=("steps",),
        dtypes=("float32", *DTYPES),
    ),
    "nonsilent_region": each_of(
        {"window_length": 16, "reset_interval": 64},
        {},
        {"window_length": 5, "reset_interval": -1, "reference_power": 400.0, "cutoff_db": -6.0},
        inputs=("burst",),
        dtypes=("float32", *DTYPES),
    ),
}


@pytest.mark.parametrize("border", ["zero", "clamp", "reflect"])
def test_borders_and_types(dali, border):
    x = np.array([1.7, -300, 70000.5, -3e10, 3e10, 1e20, 0.9, -5], np.float32)
    short = () if border == "reflect" else (x[:1], x[0])  # DALI reflects one sample to what lies behind it in memory
    for signal in (x, *short, x.reshape(4, 2)):
        check_same(dali, lambda m: m.preemphasis_filter(m.tensor(signal), border=border), 1e-6, signal.shape)
    for kind in drawn_types(DTYPES, 3, "preemphasis_filter"):
        check_same(dali, lambda m: m.preemphasis_filter(m.tensor(x), border=border, dtype=getattr(m, kind)), 1e-6, kind)


def test_what_an_empty_signal_gives():
    empty = ndd.tensor(np.zeros(0, np.float32))
    assert ndd.preemphasis_filter(empty).shape == (0,)
    begin, length = ndd.nonsilent_region(empty)
    assert (begin.item(), length.item()) == (0, 0)
    with pytest.raises(RuntimeError, match=r"preemphasis_filter: `border`"):
        ndd.preemphasis_filter(empty, border="mirror")


@pytest.mark.parametrize("reset", [-1, 1, 4])
def test_regions_are_the_same_sample_for_sample(dali, reset):
    rng = np.random.default_rng(reset + 1)
    for window in (1, 7, 64, 512):
        for n in (100, 6000, 20011):
            envelope = np.abs(np.sin(np.linspace(0, 9, n))) ** 8 * np.linspace(0, 1, n)
            x = (rng.standard_normal(n) * envelope).astype(np.float32)
            for cutoff in (-80.0, -40.0, -20.0, -3.0):
                arguments = {
                    "window_length": window, "cutoff_db": cutoff, "reset_interval": reset * window if reset > 0 else -1,
                }  # fmt: skip
                check_same(dali, lambda m: m.nonsilent_region(m.tensor(x), **arguments), note=(n, arguments))


def test_samples_wherever_they_lie():
    """Behind each other, apart, strided, not aligned, empty: a compiled call takes several of them."""
    rng = np.random.default_rng(0)
    long, short, none = (rng.standard_normal(n).astype(np.float32) for n in (70000, 5, 0))
    odd = np.frombuffer(b"." + long.tobytes(), np.uint8)[1:].view(np.float32)
    for arrays in ([none, short, long, short], [none, none], [long, odd], [long[::2], short]):
        for b in (ndd.batch(arrays), ndd.batch([np.array(a) for a in arrays])):
            filtered, regions = ndd.preemphasis_filter(b, border="zero"), ndd.nonsilent_region(b)
            for i, x in enumerate(arrays):
                before = np.concatenate([np.zeros(1, np.float32), x])[:-1]
                np.testing.assert_array_equal(np.asarray(filtered.select(i)), x - np.float32(0.97) * before)
                alone = ndd.nonsilent_region(ndd.tensor(x))
                assert [r.select(i).item() for r in regions] == [r.item() for r in alone]


@pytest.mark.parametrize(("window", "reset"), [(9, 27), (400, 2000), (400, -1), (1000, 1000)])
def test_regions_of_a_batch_whose_intervals_lie_side_by_side(dali, window, reset):
    """Also with numbers that are none: a sum stays none until the next interval."""
    rng = np.random.default_rng(window)
    signals = [(rng.standard_normal(n) * np.sin(np.linspace(0, 3, n)) ** 40).astype(np.float32) for n in (1, 8, 900)]
    for n in rng.integers(1000, 9000, 20).tolist():
        signals.append((rng.standard_normal(n) * np.sin(np.linspace(0, 3, n)) ** 40).astype(np.float32))
    for signal, bad in zip(signals[5:], (np.nan, np.inf, 1e30, 0), strict=False):
        signal[len(signal) // 2] = bad
    for arguments in ({}, {"cutoff_db": -9.0}, {"reference_power": 1e-3, "cutoff_db": -3.0}):
        check_same(
            dali,
            lambda m: m.nonsilent_region(m.batch(signals), window_length=window, reset_interval=reset, **arguments),
            note=arguments,
        )


def test_regions_of_integers_and_of_signals_that_are_shorter_than_a_window(dali, emulated_gpu):
    """Sums of short integers are exact, those of long ones never formed anew; a short signal is a window."""
    for kind in drawn(("int16", "float32", "uint16", "int32"), 2, "regions"):
        for signal in ([30000, 1, 0, 0, 0, 0], [3, 20001, 7, 0, 0, 0, 0], [20000, 3, 30001, 0, 0, 0, 0], [2, 2, 2, 2]):
            x = np.array(signal, kind)
            for window, reset in ((2, -1), (3, 3), (20, 20)):
                arguments = {
                    "window_length": window,
                    "reset_interval": reset,
                    "reference_power": 3.0,
                    "cutoff_db": -1.0,
                }
                check_same(dali, lambda m: m.nonsilent_region(m.tensor(x), **arguments), note=(kind, signal, window))
                here = ndd.nonsilent_region(ndd.tensor(x), **arguments)
                there = ndd.nonsilent_region(ndd.tensor(x).gpu(), **arguments)
                assert [t.item() for t in there] == [t.item() for t in here]


def test_region_errors(dali):
    x = np.random.default_rng(0).random(100).astype(np.float32)
    for arguments in (
        {"reset_interval": 1000}, {"reference_power": -1.0}, {"reference_power": 0.0}, {"reference_power": 1e9},
        {"cutoff_db": 10.0}, {"window_length": 5000, "reset_interval": -1},
    ):  # fmt: skip
        check_same(dali, lambda m: m.nonsilent_region(m.tensor(x), **arguments), note=arguments)
    for signal in (x * 0, np.array([0, np.nan, 1, 0], np.float32), x.reshape(50, 2), x[0]):
        check_same(dali, lambda m: m.nonsilent_region(m.tensor(signal), window_length=2, reset_interval=-1))
    for arguments in ({"window_length": 0}, {"reset_interval": 0}, {"reset_interval": -2}):  # DALI dies of these
        with pytest.raises(RuntimeError, match=r"nonsilent_region: `"):
            ndd.nonsilent_region(ndd.tensor(x), **arguments)


def test_regions_on_a_gpu(emulated_gpu):
    rng = np.random.default_rng(0)
    signals = [
        np.zeros(0),
        np.zeros(5),
        rng.random(700),
        np.concatenate([np.zeros(900), rng.random(100), np.zeros(99)]),
    ]
    for kind in (np.float32, np.int16):
        b = ndd.batch([(s * 100).astype(kind) for s in signals])
        for arguments in ({"window_length": 32, "reset_interval": 64}, {"window_length": 3, "reset_interval": -1}):
            for reference in (None, 100.0):
                there = ndd.nonsilent_region(b.gpu(), reference_power=reference, **arguments)
                here = ndd.nonsilent_region(b, reference_power=reference, **arguments)
                for result, expected in zip(there, here, strict=True):
                    assert result.torch().tolist() == expected.torch().tolist()
