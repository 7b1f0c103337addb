"""`ndd.mel_filter_bank`, `ndd.mfcc` and `ndd.to_decibels` against DALI."""

# ruff: noqa: B023  (every closure runs before the loop goes on)
from __future__ import annotations

import numpy as np
import pytest
from cases import each_of
from compare import arrays_of, assert_same_values, check_same

import ndd

REGISTRY_INPUTS = {
    "ft": (lambda rng, i, dtype: rng.random((65, 20 + 300 * i), np.float32), "ft"),
    "tf": (lambda rng, i, dtype: rng.random((20 + 7 * i, 65), np.float32), "tf"),
    "decibels": (lambda rng, i, dtype: rng.random((40, 20 + 150 * i), np.float32) * 80 - 80, "ft"),
    "silence": (lambda rng, i, dtype: rng.random((900 * i + 3,), np.float32) * (i != 1) - 0.1 * (i == 2), None),
}
F32 = ("float32",)
REGISTRY_CASES = {
    "mel_filter_bank": [
        *each_of(
            {"nfilter": 20, "sample_rate": 8000.0},
            {"nfilter": 6, "mel_formula": "htk", "normalize": False, "freq_low": 300.0, "freq_high": 7000.0},
            inputs=("ft",),
            dtypes=F32,
        ),
        *each_of({"nfilter": 12, "sample_rate": 16000.0, "freq_high": 7000.0}, inputs=("tf",), dtypes=F32),
    ],
    "mfcc": each_of(
        {},
        {"dct_type": 1, "lifter": 22.0},
        {"dct_type": 2, "normalize": True, "n_mfcc": 300},
        {"dct_type": 3, "n_mfcc": 13, "normalize": True, "lifter": -3.0},
        {"dct_type": 3},
        {"dct_type": 4, "axis": 1, "normalize": True},
        inputs=("decibels",),
        dtypes=F32,
    ),
    "to_decibels": each_of(
        {},
        {"multiplier": 20.0, "reference": 0.3, "cutoff_db": -40.0},
        {"reference": -0.5},
        inputs=("silence",),
        dtypes=F32,
    ),
}


def test_mel_edges_and_errors(dali):
    s = np.random.default_rng(0).random((257, 6)).astype(np.float32)
    for x, layout in (
        (s, None), (s, "ab"), (s, "xf"), (s, "fx"), (s[:, 0].copy(), None), (s[:1], None), (s[:0], None), (s[:, :0], None),
        (s.reshape(3, 2, 257), "xtf"), (s.reshape(2, 257, 3), None),
    ):  # fmt: skip
        check_same(dali, lambda m: m.mel_filter_bank(m.tensor(x, layout=layout)), 6e-6, (x.shape, layout))
    for arguments in (
        {"freq_high": 50000.0}, {"freq_low": -1.0}, {"freq_low": 5000.0, "freq_high": 4000.0}, {"nfilter": 0},
        {"mel_formula": "HTK"}, {"sample_rate": 0.0}, {"freq_high": -5.0}, {"nfilter": 140},
    ):  # fmt: skip
        check_same(dali, lambda m: m.mel_filter_bank(m.tensor(s), **arguments), 6e-6, arguments)


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 33, 63, 64, 65, 200, 1153])
def test_each_column_has_the_bits_that_it_has_alone(count):
    """However many there are, whether the frequencies lie along the first axis or the last, and wherever the samples are."""
    x = np.random.default_rng(count).random((65, count), np.float32)
    weights = np.asarray(ndd.mel_filter_bank(ndd.tensor(np.eye(65, dtype=np.float32)), nfilter=20, sample_rate=8000.0))
    result = np.asarray(ndd.mel_filter_bank(ndd.tensor(x), nfilter=20, sample_rate=8000.0))
    np.testing.assert_allclose(result, weights.astype(np.float64) @ x, rtol=1e-6)
    turned = ndd.batch([x.T.copy(), x[:, :1].T.copy(), x.T.copy()], layout="tf")
    for sample in ndd.mel_filter_bank(turned, nfilter=20, sample_rate=8000.0):
        np.testing.assert_array_equal(np.asarray(sample), result[:, : sample.shape[0]].T)
    alone = ndd.batch([x[:, [i]] for i in range(0, count, 7)])
    for i, sample in enumerate(ndd.mel_filter_bank(alone, nfilter=20, sample_rate=8000.0)):
        np.testing.assert_array_equal(np.asarray(sample)[:, 0], result[:, 7 * i])


def test_mfcc_edges_and_errors(dali):
    s = np.random.default_rng(0).random((7, 6)).astype(np.float32)
    for x, arguments in (
        (s, {"axis": -1}), (s, {"axis": 2}), (s, {"n_mfcc": 0}), (s, {"dct_type": 5}), (s[:0], {}), (s[:1], {}),
        (s, {"dct_type": 1, "normalize": True}), (s[:1], {"dct_type": 1}), (s.reshape(7, 2, 3), {"axis": 1}),
    ):  # fmt: skip
        check_same(dali, lambda m: m.mfcc(m.tensor(x), **arguments), 1e-6, (x.shape, arguments))


def test_decibels_of_odd_numbers(dali):
    odd = np.array([1, np.nan, np.inf, -1, 0, 1e-40, 3e-39, 1e30, 0.999999, 1.0000001], np.float32)
    for arguments in ({"reference": 1.0}, {}, {"cutoff_db": -1000.0, "reference": 1.0}, {"cutoff_db": 5.0}):
        check_same(dali, lambda m: m.to_decibels(m.tensor(odd), **arguments), 1e-6, arguments)
    for x in (odd[:0], odd[0], -odd[:1], odd[3:5]):
        check_same(dali, lambda m: m.to_decibels(m.tensor(x)), 1e-6, x)
    for arguments in ({"reference": 0.0}, {"multiplier": 0.0}, {"multiplier": -10.0}):
        check_same(dali, lambda m: m.to_decibels(m.tensor(odd[6:]), **arguments), 1e-6, arguments)


def test_the_logarithm_is_exact_over_the_whole_range():
    x = np.exp2(np.random.default_rng(0).uniform(-126, 127, 100000)).astype(np.float32)
    result = np.asarray(ndd.to_decibels(ndd.tensor(x), reference=1.0, cutoff_db=-400.0))
    exact = 10 * np.log10(x.astype(np.float64))
    assert np.abs(result - exact).max() < 4e-5  # a unit in the last place of 300 is 3e-5


def test_scalars_and_several_layouts_on_a_gpu(emulated_gpu):
    rng = np.random.default_rng(0)
    item = ndd.batch([np.float32(3), np.float32(-1)])
    assert_same_values(arrays_of(ndd.to_decibels(item.gpu())), arrays_of(ndd.to_decibels(item)))
    b = ndd.batch([rng.random((4, n, 5), np.float32) for n in (33, 17)], layout="xft")  # other frequencies in each
    for call in (lambda x: ndd.mel_filter_bank(x, nfilter=4), lambda x: ndd.mfcc(x, axis=1, n_mfcc=19)):
        assert_same_values(arrays_of(call(b.gpu())), arrays_of(call(b)))


def test_integers_get_a_sentence():
    with pytest.raises(RuntimeError, match="to_decibels: Unsupported input type: i16"):
        ndd.to_decibels(ndd.tensor(np.zeros(3, np.int16)))
