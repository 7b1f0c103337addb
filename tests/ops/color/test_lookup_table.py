"""`ndd.lookup_table` against DALI, and the GPU against the CPU."""

from __future__ import annotations

import numpy as np
import pytest
from cases import U8, each_of
from compare import assert_same
from number_samples import NAMES, NUMPY, samples
from selection import drawn, drawn_types

import ndd

REGISTRY_INPUTS = {"keys": (lambda rng, i, dtype: rng.integers(0, 6, (4 + i, 3)).astype(np.uint8), None)}
REGISTRY_CASES = {
    "lookup_table": each_of(
        {"keys": [1, 3], "values": [10.0, 30.5]},
        {"keys": [1, 3], "values": [10.0, 30.5], "dtype": U8, "default_value": 7.0},
        inputs=("keys",),
        dtypes=("uint8",),
    ),
}

INTEGERS = ("u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64")
KEYS, VALUES = [1, 3, 200, 65535, 3], [10.5, -2.5, 300.0, 1e6, 7.25]


@pytest.mark.parametrize("source", NAMES)
def test_every_type_equals_dali(dali, source):
    x = np.concatenate([samples(source), np.arange(0, 120).astype(NUMPY[source])])
    with dali.EvalMode.sync_cpu:
        for target in drawn_types(NAMES, 3, "lookup_table"):

            def call(m, dtype):
                return np.asarray(
                    m.lookup_table(m.tensor(x), keys=KEYS, values=VALUES, dtype=dtype, default_value=-1.5).evaluate()
                )

            dtype = getattr(ndd, NUMPY[target])
            if source not in INTEGERS:
                with pytest.raises(RuntimeError, match="Unsupported input type"):
                    call(ndd, dtype)
                continue
            assert_same(call(ndd, dtype), call(dali, getattr(dali, NUMPY[target])), 0)


@pytest.mark.parametrize("source", INTEGERS)
def test_large_inputs_take_the_compiled_loop(source):
    x = np.resize(samples(source, 5000), 50001)
    small = np.asarray(ndd.lookup_table(ndd.tensor(x[:4000]), keys=KEYS, values=VALUES))
    for dtype in drawn((ndd.float32, ndd.uint8, ndd.float16), 1, source):
        result = np.asarray(ndd.lookup_table(ndd.batch([x, x[::-1]]), keys=KEYS, values=VALUES, dtype=dtype).select(0))
        assert_same(result[:4000], np.asarray(ndd.cast(ndd.tensor(small), dtype=dtype)), 0)


def test_arguments():
    x = ndd.tensor(np.arange(4, dtype=np.uint8), layout="X")
    assert np.asarray(ndd.lookup_table(x)).tolist() == [0, 0, 0, 0]
    assert ndd.lookup_table(x).layout == "X"
    assert np.asarray(ndd.lookup_table(x, keys=1, values=3)).tolist() == [0, 3, 0, 0]
    with pytest.warns(DeprecationWarning, match="output_dtype"):
        assert ndd.lookup_table(x, output_dtype=ndd.int16).dtype is ndd.int16
    with pytest.raises(TypeError, match="output_dtype"):
        ndd.lookup_table(x, output_dtype=ndd.int16, dtype=ndd.int16)
    for keys in ([-1], [65536]):
        with pytest.raises(RuntimeError, match="range"):
            ndd.lookup_table(x, keys=keys, values=[1.0]).evaluate()
    with pytest.raises(RuntimeError, match="size should match"):
        ndd.lookup_table(x, keys=[1, 2], values=[1.0]).evaluate()


@pytest.mark.parametrize("source", ["u8", "i32", "u64", "i64"])
@pytest.mark.drawn(1)
def test_gpu_equals_cpu(emulated_gpu, source):
    b = ndd.batch([samples(source), samples(source, 9), samples(source, 1)])
    for dtype in (ndd.float32, ndd.uint8, ndd.float16, ndd.bool):
        extra = {"keys": KEYS, "values": VALUES, "default_value": 2.5, "dtype": dtype}
        wanted, result = ndd.lookup_table(b, **extra), ndd.lookup_table(b.gpu(), **extra)
        for i in range(3):
            assert_same(np.asarray(result.select(i).cpu()), np.asarray(wanted.select(i)), 0)
