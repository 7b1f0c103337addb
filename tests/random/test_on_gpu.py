"""Random operators on a GPU give what they give on the CPU (here: the kernels built as C++)."""

from __future__ import annotations

import numpy as np
import pytest

import ndd
from ndd import random
from ndd.random import RNG

CALLS = [
    ("uniform", (), {}),
    ("uniform", (), {"shape": [3, 700], "range": (-3.0, 11.0)}),
    ("uniform", (), {"range": (2.5, 9.0), "dtype": ndd.uint8, "shape": [50]}),
    ("uniform", (), {"range": (2.5, 9.0), "dtype": ndd.int64, "shape": [50]}),
    ("uniform", (), {"range": (2.5, 9.0), "dtype": ndd.float64, "shape": [50]}),
    ("uniform", (), {"values": [1.5, 2.5, 300.0], "dtype": ndd.uint8, "shape": [50]}),
    ("uniform", (), {"values": ndd.batch([[1.0], [2.0, 3.0], [4.0, 5.0, 6.0]]), "shape": [50]}),
    ("uniform", (), {"range": ndd.batch([[0.0, 1.0], [5.0, 6.0], [1.0, 9.0]]), "shape": [50]}),
    ("uniform", (), {"shape": ndd.batch([[4, 5], [1, 2], [3, 0]])}),
    ("normal", (), {"shape": [5, 300]}),
    ("normal", (), {"mean": 100.0, "stddev": 30.0, "dtype": ndd.uint8, "shape": [500]}),
    ("normal", (), {"mean": 100.0, "stddev": 30.0, "dtype": ndd.int32, "shape": [500]}),
    ("normal", (), {"stddev": ndd.batch([0.0, 1.0, 2.0]), "dtype": ndd.float64, "shape": [500]}),
    ("coin_flip", (), {"probability": 0.3, "shape": [500]}),
    ("coin_flip", (), {"probability": ndd.batch([0.0, 0.5, 1.0]), "dtype": ndd.bool, "shape": [50]}),
    ("beta", (), {"alpha": 0.4, "beta": 0.7, "shape": [50]}),
    ("beta", (), {"alpha": ndd.batch([0.1, 2.0, 1.0]), "dtype": ndd.float64, "shape": [50]}),
    ("choice", (10,), {"shape": [500]}),
    ("choice", (3 * 10**8,), {"shape": [500]}),
    ("choice", (np.int64(2**40),), {"shape": [500]}),
    ("choice", (4,), {"p": [0.1, 0.2, 0.3, 0.4], "shape": [500]}),
    ("choice", (2,), {"p": ndd.batch([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]), "shape": [50]}),
    ("choice", (np.arange(12, dtype=np.float16),), {"shape": [4, 5]}),
    ("choice", (np.arange(24).reshape(4, 3, 2),), {"shape": [9]}),
    ("choice", (np.arange(24).reshape(4, 3, 2),), {"p": [0.1, 0.2, 0.3, 0.4], "shape": [9]}),
    ("choice", (ndd.batch([np.arange(e * 6).reshape(2, 3, e) for e in (2, 5, 1)]),), {"shape": [9]}),
    ("choice", (ndd.batch([[1, 2], [3, 4, 5], [6]]),), {"shape": ndd.batch([[3], [0], [50]])}),
]


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("name", "inputs", "arguments"), CALLS)
def test_the_same_numbers_on_cpu_and_gpu(name, inputs, arguments, emulated_gpu):
    actual = []
    for device in ("cpu", "gpu"):
        result = getattr(random, name)(*inputs, batch_size=3, device=device, rng=RNG(12), **arguments)
        assert result.device == ndd.Device(device)
        actual.append([np.array(t.cpu()) for t in result.tensors])
    for cpu, gpu in zip(*actual, strict=True):
        assert cpu.shape == gpu.shape
        if name in ("beta", "normal") and cpu.dtype.kind == "f":
            # Logarithms and cosines of a real GPU may differ in the last bit.
            small = cpu.dtype == np.float32
            np.testing.assert_allclose(cpu, gpu, rtol=1e-6 if small else 1e-13, atol=1e-6 if small else 1e-13)
        else:
            np.testing.assert_array_equal(cpu, gpu)
    assert len(emulated_gpu.launches) == 1


def test_one_number_and_shapes_of_gpu_values(emulated_gpu):
    like = ndd.tensor(np.zeros((3, 4), np.uint8)).gpu()
    result = random.normal(like, rng=RNG(3))
    assert result.device == ndd.Device("gpu")
    expected = np.array(random.normal(shape=[3, 4], rng=RNG(3)))
    np.testing.assert_allclose(np.array(result.cpu()), expected, rtol=1e-6, atol=1e-6)
    assert random.uniform(device="gpu", rng=RNG(3)).item() == random.uniform(rng=RNG(3)).item()
