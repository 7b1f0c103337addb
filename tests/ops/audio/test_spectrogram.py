"""`ndd.spectrogram` and `ndd.power_spectrum` against DALI, and the GPU against the CPU."""

# ruff: noqa: B023  (every closure runs before the loop goes on)
from __future__ import annotations

import numpy as np
import pytest
from cases import each_of
from compare import arrays_of, assert_same_values, check_same

import ndd

SHORT = {"window_length": 64, "window_step": 24}
REGISTRY_CASES = {
    "spectrogram": each_of(
        {},
        {**SHORT, "nfft": 100, "layout": "tf", "power": 1},
        {**SHORT, "center_windows": False},
        {**SHORT, "reflect_padding": False, "nfft": 81},
        {"window_length": 5, "window_step": 100, "window_fn": [0.1, 0.5, 1.0, 2.0, 0.0]},
        inputs=("wave",),
        dtypes=("float32",),
    ),
    "power_spectrum": each_of(
        {},
        {"axis": 1, "power": 1, "nfft": 7},
        {"axis": 0, "nfft": 8},
        inputs=("cube",),
        dtypes=("float32",),
    ),
}


def test_edges_and_errors(dali):
    x = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    for signal in (x[:1], x[:3], x[:100], x.reshape(1000, 1), x.reshape(1, 1000), x[0], x[:0], x.reshape(500, 2)):
        check_same(dali, lambda m: m.spectrogram(m.tensor(signal)), 1e-6, signal.shape)
    for arguments in (
        {"layout": "TF"}, {"layout": "x"}, {"window_step": 0}, {"power": 3}, {"nfft": 256}, {"nfft": 0},
        {"window_fn": [1.0] * 5}, {"window_length": 0}, {"center_windows": False, "window_length": 1001},
        {"center_windows": False, "window_length": 1000}, {"window_length": 511, "nfft": 1024},
    ):  # fmt: skip
        check_same(dali, lambda m: m.spectrogram(m.tensor(x), **arguments), 1e-6, arguments)
    m = x.reshape(10, 100)
    for arguments in ({"axis": 2}, {"axis": -3}, {"nfft": 0}, {"nfft": 600}, {"power": 3}):
        check_same(dali, lambda n: n.power_spectrum(n.tensor(m, layout="ab"), **arguments), 1e-6, arguments)
    for parts, arguments in (((x[:0], x[:3]), {"nfft": 4}), ((m[:0], m[:2]), {"nfft": 4, "axis": 0}), ((x[:0],), {})):
        check_same(dali, lambda n: n.power_spectrum(n.batch(list(parts)), **arguments), 1e-6, arguments)


LENGTHS = (*[300] * 20, 60000, 129, 1)


def signals(lengths=LENGTHS):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(n).astype(np.float32) for n in lengths]


@pytest.mark.parametrize("layout", ["ft", "tf"])
def test_windows_of_a_batch_have_the_bits_of_a_signal_alone(layout):
    """Wherever the signals lie, however the windows are shared out, and whatever places they have among others."""
    arguments = {"window_length": 256, "window_step": 100, "layout": layout, "nfft": 270}
    arrays = signals()
    apart = ndd.batch(arrays)
    behind = ndd.batch(arrays) + np.float32(0)
    unaligned = np.zeros(4 * 60000 + 1, np.uint8)[1:].view(np.float32)
    unaligned[:] = arrays[20]
    mixed = ndd.batch([*arrays[:20], unaligned, *arrays[21:]])
    for threads in (1, 2):
        with ndd.EvalContext(num_threads=threads):
            result = [ndd.spectrogram(x, **arguments).evaluate() for x in (apart, behind, mixed)]
        for i in (0, 19, 20, 21, 22):
            alone = np.asarray(ndd.spectrogram(ndd.tensor(arrays[i]), **arguments))
            assert alone.shape == (
                (136, len(arrays[i]) // 100 + 1) if layout == "ft" else (len(arrays[i]) // 100 + 1, 136)
            )
            for batch in result:
                np.testing.assert_array_equal(np.asarray(batch.select(i)), alone)


def without_mkl(monkeypatch):
    import sys

    from ndd.ops.audio import fourier

    for room in (fourier, sys.modules["ndd.ops.audio.spectrogram"]):
        monkeypatch.setattr(room, "transform", lambda n: None)


@pytest.mark.parametrize("scipy", [True, False])
def test_without_mkl_and_scipy(scipy, monkeypatch):
    import sys

    from ndd.ops.audio import fourier

    batch = ndd.batch(signals())
    calls = (
        lambda: ndd.spectrogram(batch, window_length=250, window_step=100, nfft=259),
        lambda: ndd.spectrogram(batch, layout="tf", power=1, reflect_padding=False, window_fn=np.hamming(512).tolist()),
        lambda: ndd.mel_filter_bank(ndd.spectrogram(batch), nfilter=40),
        lambda: ndd.power_spectrum(ndd.tensor(signals([37])[0].reshape(1, 37)), power=1),
    )
    with_mkl = [arrays_of(call()) for call in calls]
    without_mkl(monkeypatch)
    if not scipy:
        monkeypatch.setitem(sys.modules, "scipy.fft", None)
    fourier._library.cache_clear()
    try:
        for call, expected in zip(calls, with_mkl, strict=True):
            assert_same_values(arrays_of(call()), expected, 1e-6)
    finally:
        fourier._library.cache_clear()


@pytest.mark.parametrize("nfft", [1, 2, 3, 4, 5, 7, 16, 33, 509, 4096])
def test_transforms_of_any_length(nfft):
    rows = np.random.default_rng(nfft).standard_normal((37, nfft)).astype(np.float32)
    exact = np.abs(np.fft.rfft(rows.astype(np.float64)))
    for power in (1, 2):
        result = np.asarray(ndd.power_spectrum(ndd.tensor(rows), power=power))
        assert_same_values([result], [(exact**power).astype(np.float32)], 1e-6)
        wide = np.asarray(
            ndd.spectrogram(
                ndd.tensor(rows.reshape(-1)), nfft=nfft, window_length=nfft, window_step=nfft, window_fn=[1.0] * nfft,
                center_windows=False, power=power,
            )
        )  # fmt: skip
        np.testing.assert_array_equal(wide.T, result)


def test_signals_of_different_lengths_on_a_gpu(emulated_gpu):
    rng = np.random.default_rng(1)
    b = ndd.batch([rng.standard_normal((2, n, 2)).astype(np.float32) for n in (9, 16, 9)])
    for call in (lambda x: ndd.power_spectrum(x, axis=1), lambda x: ndd.power_spectrum(x, axis=1, nfft=5, power=1)):
        assert_same_values(arrays_of(call(b.gpu())), arrays_of(call(b)), 1e-5)
    empty = ndd.batch([np.zeros(0, np.float32), np.ones(3, np.float32)])
    assert_same_values(
        arrays_of(ndd.power_spectrum(empty.gpu(), nfft=4)), arrays_of(ndd.power_spectrum(empty, nfft=4)), 1e-5
    )
    same = ndd.batch([rng.standard_normal((3, 8)).astype(np.float32) for _ in range(2)]).gpu()
    for values in (same, same + 1):  # the second call finds the plan of the first
        assert_same_values(arrays_of(ndd.power_spectrum(values)), arrays_of(ndd.power_spectrum(values.cpu())), 1e-5)


def test_a_stereo_signal_and_integers_get_a_sentence():
    with pytest.raises(RuntimeError, match="downmix=True"):
        ndd.spectrogram(ndd.tensor(np.zeros((400, 2), np.float32))).evaluate()
    with pytest.raises(RuntimeError, match=r"spectrogram: .*i16"):
        ndd.spectrogram(ndd.tensor(np.zeros(400, np.int16)))


def test_ragged_batches_of_the_same_shapes_differ_in_their_values_only(emulated_gpu):
    """What is kept of the first one's launches serves the others: nothing of its numbers stays."""

    def features(x):
        spectra = ndd.spectrogram(x, nfft=64, window_length=50, window_step=20)
        decibels = ndd.to_decibels(ndd.mel_filter_bank(spectra, nfilter=10, sample_rate=8000), cutoff_db=-60)
        return (
            spectra,
            decibels,
            ndd.mfcc(decibels, n_mfcc=5),
            *ndd.nonsilent_region(x, window_length=16, reset_interval=32),
        )

    rng, counts = np.random.default_rng(0), []
    for loudness in (1.0, 100.0, 0.01):
        signals = ndd.batch([(loudness * rng.standard_normal(n)).astype(np.float32) for n in (300, 90, 211)])
        before = len(emulated_gpu.launches)
        result = [[np.asarray(sample.cpu()) for sample in value] for value in features(signals.gpu())]
        counts.append(len(emulated_gpu.launches) - before)
        for here, there in zip(features(signals), result, strict=True):
            for a, b in zip(here, there, strict=True):
                np.testing.assert_allclose(b, np.asarray(a), rtol=2e-4, atol=1e-4 * max(1, loudness**2))
    assert counts == counts[:1] * 3
