"""`ndd.audio_resample` against DALI."""

# ruff: noqa: B023  (every closure runs before the loop goes on)
from __future__ import annotations

import numpy as np
import pytest
from cases import I16, EachSample, each_of
from compare import arrays_of, check_same

import ndd

REGISTRY_INPUTS = {
    "signal": (
        lambda rng, i, dtype: (
            (rng.uniform(-0.9, 0.9, 700 + 80 * i) * 100 + 100 * (dtype[0] == "u")).astype(dtype)
            if dtype != "float32"
            else rng.uniform(-1, 1, 700 + 80 * i).astype(np.float32)
        ),
        None,
    ),
    "stereo": (lambda rng, i, dtype: rng.uniform(-1, 1, (300 + 80 * i, 2)).astype(np.float32), None),
}
TYPES = ("float32", "uint8", "int8", "uint16", "int16", "uint32", "int32", "int64", "float16", "float64", "bool")
REGISTRY_CASES = {
    "audio_resample": [
        *each_of(
            {"in_rate": 44100.0, "out_rate": 16000.0},
            {"scale": EachSample([0.5, 1.7, 1.0])},
            {"scale": 0.77, "quality": 0.0, "dtype": I16},
            {"in_rate": EachSample([8000.0, 16000.0, 22050.0]), "out_rate": 16000.0, "quality": 75.0},
            inputs=("signal",),
            dtypes=TYPES,
            relative=4e-6,
        ),
        *each_of({"out_length": EachSample([7, 400, 0])}, inputs=("stereo",), dtypes=("float32",), relative=4e-6),
    ],
}


@pytest.mark.parametrize("source", ["float32", "uint8", "int8", "uint16", "int16", "uint32", "int32"])
def test_between_types(dali, source):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, 500)
    if source != "float32":
        limits = np.iinfo(source)
        x = x * (limits.max / 2 if limits.min == 0 else limits.max) + (limits.max / 2 if limits.min == 0 else 0)
    x = x.astype(source)
    for target in ("float32", "uint8", "int8", "uint16", "int16", "uint32", "int32"):
        wide = 3e-6 if target in ("float32", "uint32", "int32") else 1e-9
        check_same(dali, lambda m: m.audio_resample(m.tensor(x), scale=0.71, dtype=getattr(m, target)), wide, target)


@pytest.mark.parametrize("quality", [0, 50, 75, 100])
def test_long_signals(dali, quality):
    """Positions are accumulated in float32 as DALI does: exact ones differ by 1e-3 after some thousand samples."""
    x = np.random.default_rng(0).uniform(-1, 1, 50000).astype(np.float32)
    for before, after in ((44100.0, 16000.0), (22050.0, 16000.0), (8000.0, 11025.0)):
        ours, theirs = (
            arrays_of(m.audio_resample(m.tensor(x), in_rate=before, out_rate=after, quality=float(quality)))[0]
            for m in (ndd, dali)
        )
        first = 64 if quality >= 75 else 0  # where the table's places are rounded in yet another way
        np.testing.assert_allclose(ours[first:], theirs[first:], rtol=0, atol=1e-6)
        # At 75 one of them is off by 1.01e-6 on processors with AVX-512, by less on others.
        np.testing.assert_allclose(ours[:first], theirs[:first], rtol=0, atol=1.2e-5 if quality == 100 else 2e-6)


def test_errors_and_edges(dali):
    x = np.random.default_rng(0).uniform(-1, 1, 100).astype(np.float32)
    for arguments in (
        {}, {"scale": 0.0}, {"scale": -1.0}, {"scale": 1e-3}, {"in_rate": 8000.0}, {"out_rate": 8000.0},
        {"in_rate": 8000.0, "out_rate": 0.0}, {"in_rate": 0.0, "out_rate": 8000.0}, {"in_rate": -1.0, "out_rate": 1.0},
        {"in_rate": 8000.0, "out_rate": -1.0}, {"out_length": 7}, {"out_length": 0}, {"out_length": -3},
        {"scale": 0.5, "out_length": 3}, {"scale": 0.5, "quality": -1.0}, {"scale": 0.5, "quality": 101.0},
        {"in_rate": 8000.0, "out_rate": 11025.0, "scale": 2.0}, {"in_rate": 8000.0, "scale": 2.0},
        {"out_length": 100}, {"scale": 1.0},
    ):  # fmt: skip
        check_same(dali, lambda m: m.audio_resample(m.tensor(x), **arguments), 3e-6, arguments)
    exact = {"in_rate": 44100.0, "out_rate": 48000.0}  # 48000 samples, though 44100 * (48000 / 44100) is a little more
    for signal, arguments in (
        (np.zeros(44100, np.float32), exact),
        (x[:0], {"scale": 0.5}), (x[:0], {"out_length": 5}), (x[0], {"scale": 0.5}), (x[:1], {"scale": 3.0}),
        (x.reshape(5, 10, 2), {"scale": 0.5}), (x.reshape(50, 2), {"scale": 0.5}),
    ):  # fmt: skip
        check_same(dali, lambda m: m.audio_resample(m.tensor(signal), **arguments), 3e-6, (signal.shape, arguments))
    with pytest.raises(RuntimeError, match=r"sample 1: .*`scale` is to be positive and finite, got -2"):
        ndd.audio_resample(ndd.batch([x, x]), scale=ndd.batch([1.0, -2.0])).evaluate()
