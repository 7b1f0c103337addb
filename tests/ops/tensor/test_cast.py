"""`ndd.cast` and `ndd.cast_like` as operators: batches, arguments, the GPU. For the values see test_convert.py."""

from __future__ import annotations

import numpy as np
import pytest
from cases import F16, F32, I16, U8, Case, each_of
from compare import assert_same
from number_samples import NAMES, NUMPY, borders

import ndd
from ndd._tensor.convert import convert_array

REGISTRY_CASES = {
    "cast": each_of({"dtype": F32}, {"dtype": U8}, {"dtype": I16}, {"dtype": F16}, inputs=("matrix",)),
    "cast_like": [Case({}, inputs=("matrix", "wave"))],
}

TYPES = {name: getattr(ndd, "bool" if name == "bool" else NUMPY[name]) for name in NAMES}


def ragged(source):
    values = borders(source)
    return [values[:7], values, values[:0], values[3:200]]


@pytest.mark.parametrize("source", NAMES)
def test_batches(source):
    arrays = ragged(source)
    uniform = np.stack([arrays[1], arrays[1][::-1]])
    for name, dtype in TYPES.items():
        result = ndd.cast(ndd.batch(arrays, layout="X"), dtype=dtype)
        assert (result.dtype, result.layout, result.shape) == (dtype, "X", [a.shape for a in arrays])
        for i, a in enumerate(arrays):
            assert_same(np.asarray(result.select(i)), convert_array(a, source, name), 0)
        whole = ndd.cast(ndd.batch(uniform), dtype=dtype)
        assert_same(np.asarray(whole.select(1)), convert_array(uniform[1], source, name), 0)


def test_cast_like_takes_the_type_of_the_second_input():
    x = ndd.batch([[1.5, 300.0], [-1.0]])
    for other in (ndd.tensor(np.uint8(3)), ndd.batch([np.zeros((2, 2), np.uint8), np.zeros((1, 1), np.uint8)])):
        result = ndd.cast_like(x, other)
        assert [np.asarray(t).tolist() for t in result.tensors] == [[2, 255], [0]]
    with pytest.raises(ValueError, match=r"(?i)inconsistent batch size"):
        ndd.cast_like(x, ndd.batch([1, 2, 3]))


def test_large_tensor_uses_all_threads_and_is_right():
    x = np.random.default_rng(0).integers(0, 256, (7, 300, 301, 3), dtype=np.uint8)
    np.testing.assert_array_equal(np.asarray(ndd.cast(ndd.tensor(x), dtype=ndd.float32)), x.astype(np.float32))
    np.testing.assert_array_equal(np.asarray(ndd.cast(ndd.batch(x), dtype=ndd.float64).select(6)), x[6].astype(float))


def test_type_argument():
    x = ndd.tensor([1.5])
    assert ndd.cast(x, dtype=ndd.uint8.type_id).dtype is ndd.uint8
    assert ndd.cast(x, dtype=0).dtype is ndd.uint8
    for kind in ("u8", "uint8", np.uint8, np.dtype("u1")):  # DALI refuses these
        assert ndd.cast(x, dtype=kind).dtype is ndd.uint8
    for wrong in ("u9", np.complex64, object()):
        with pytest.raises((TypeError, ValueError), match="dtype"):
            ndd.cast(x, dtype=wrong)
    with pytest.raises(TypeError, match="dtype"):
        ndd.cast(x)
    assert np.asarray(ndd.cast(ndd.tensor(ndd.types.INTERP_CUBIC), dtype=ndd.int32)) == 2


def test_bfloat16():
    x = ndd.tensor([1.0, 1.00390625, -2.5, 1e39])
    narrow = ndd.cast(x, dtype=ndd.bfloat16)
    assert narrow.dtype is ndd.bfloat16
    assert np.asarray(ndd.cast(narrow, dtype=ndd.float32)).tolist() == [1.0, 1.0, -2.5, np.inf]
    assert np.asarray(ndd.cast(narrow, dtype=ndd.int8)).tolist() == [1, 1, -3, 127]


@pytest.mark.parametrize("source", [*NAMES, "bfloat16"])
@pytest.mark.parametrize("target", ["u8", "i64", "f16", "f32", "bool", "bfloat16"])
@pytest.mark.drawn(1)
def test_gpu_equals_cpu(emulated_gpu, source, target):
    dtype = ndd.bfloat16 if target == "bfloat16" else TYPES[target]
    x = ndd.batch(ragged("f32" if source == "bfloat16" else source))
    x = ndd.cast(x, dtype=ndd.bfloat16) if source == "bfloat16" else x
    emulated_gpu.launches.clear()
    result, wanted = ndd.cast(x.gpu(), dtype=dtype), ndd.cast(x, dtype=dtype)
    widened = [ndd.cast(v.cpu(), dtype=ndd.float64) if target == "bfloat16" else v.cpu() for v in (result, wanted)]
    for i in range(4):
        assert_same(*(np.asarray(w.select(i)) for w in widened), 0)
    assert emulated_gpu.launches == ["cast"]
    assert ndd.cast_like(x.gpu(), ndd.cast(x, dtype=dtype).gpu()).dtype is dtype
