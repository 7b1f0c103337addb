"""Samples of several element types become one batch in which every number is what it was, or none: generated mixtures of arrays,
NumPy's and Python's numbers, lists and tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ndd

_INTEGERS = [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64]
_FLOATS = [np.float16, np.float32, np.float64]


def _number(rng):
    """A number of some type, at times near the end of what it holds."""
    kind = rng.choice([*_INTEGERS, *_FLOATS, np.bool_, int, float, bool])
    if kind in (bool, np.bool_):
        return kind(rng.integers(2))
    if kind in (float, *_FLOATS):
        return kind(rng.integers(-200, 200) / 2)
    limits = np.iinfo(np.int32 if kind is int else kind)
    way = int(rng.integers(3))
    return kind(rng.integers(0, 100) if way == 0 else limits.max - way if way == 1 else limits.min + way)


def _sample(rng):
    value = _number(rng)
    if type(value) in (int, float, bool):
        return [value, _number_like(value)]
    pair = np.array([value, value])
    return torch.from_numpy(pair) if rng.integers(3) == 0 else ndd.tensor(pair) if rng.integers(2) else pair


def _number_like(value):
    return type(value)(value / 2 if isinstance(value, float) else value > 0)


def _listed(value):
    return value if isinstance(value, list) else np.asarray(value).tolist()


@pytest.mark.parametrize("make", [ndd.batch, ndd.as_batch])
@pytest.mark.drawn(1)
def test_no_number_changes(make):
    rng = np.random.default_rng(11)
    output, refused = 0, []
    for _ in range(1500):
        samples = [_sample(rng) for _ in range(rng.integers(2, 4))]
        try:
            result = make(samples)
        except (OverflowError, RuntimeError) as error:
            refused.append(str(error))
            continue
        output += 1
        only_python = all(isinstance(s, list) for s in samples)
        for before, after in zip(samples, result.tensors, strict=True):
            expected = _listed(before)
            if only_python and result.dtype is ndd.float32:
                expected = np.float32(expected).tolist()  # as in one list of them
            assert np.asarray(after).tolist() == expected, (samples, result.dtype)
    assert output > 500
    assert refused
    assert all("of sample" in text or "out of" in text for text in refused)


@pytest.mark.parametrize(
    ("samples", "kind"),
    [
        ([1, 0.5], ndd.float32),
        ([0.5, 1], ndd.float32),
        ([True, 2], ndd.int32),
        ([True, 0.5], ndd.float32),
        ([1, 2**31], ndd.uint32),
        ([[1, 2], [0.5, 0.5]], ndd.float32),
        ([np.uint8(1), 2], ndd.uint8),
        ([2, np.uint8(1)], ndd.uint8),
        ([np.uint8(1), 0.5], ndd.float32),
        ([np.float16(1), 0.5], ndd.float16),
        ([np.float64(1), 1], ndd.float64),
        ([np.uint8(1), np.int64(2**40)], ndd.int64),
        ([np.uint8(200), np.int8(-1)], ndd.int16),
        ([np.int32(5), np.float32(0.5)], ndd.float32),
        ([np.bool_(True), 7], ndd.int32),
        ([np.int64(1), 2**40], ndd.int64),
        ([torch.ones((), dtype=torch.bfloat16), np.float16(7)], ndd.float32),
        ([torch.ones((), dtype=torch.bfloat16), 3], ndd.bfloat16),
        ([ndd.types.INTERP_NN, ndd.types.INTERP_LINEAR], ndd.dtype("InterpType")),
    ],
)
def test_the_type_of_all(samples, kind):
    result = ndd.batch(samples)
    assert result.dtype is kind
    if kind is not ndd.bfloat16:
        assert [np.asarray(v).tolist() for v in result.tensors] == [
            s if isinstance(s, list) else float(s) for s in samples
        ]


@pytest.mark.parametrize(
    ("samples", "error", "text"),
    [
        ([1, 2**40], OverflowError, "1099511627776 out of range .* `dtype=ndd.int64` holds it"),
        ([np.uint8(1), 300], OverflowError, "300 out of bounds for uint8"),
        (
            [np.float32(0.5), np.int64(2**40)],
            RuntimeError,
            "f32, which may not represent 1099511627776 of sample 1, i64",
        ),
        (
            [np.uint64(2**63), np.int8(1)],
            RuntimeError,
            "i64, which may not represent 9223372036854775808 of sample 0, u64",
        ),
        ([np.float16(1), np.int16(-4097)], RuntimeError, "f16, which may not represent -4097 of sample 1, i16"),
    ],
)
def test_what_no_type_holds_is_refused(samples, error, text):
    with pytest.raises(error, match=text):
        ndd.batch(samples)
    if error is RuntimeError:
        assert ndd.batch(samples, dtype=ndd.float64).dtype is ndd.float64


@pytest.mark.parametrize("numbers", [[2**63, -1], [np.uint64(2**63 + 1), np.int64(-1)]])
def test_integers_do_not_become_floats(numbers):
    with pytest.raises(OverflowError, match="No type holds integers from"):
        ndd.tensor(numbers)
    assert ndd.tensor([2.0**63, -1.0]).dtype is ndd.float32


def test_numbers_of_samples_for_an_operator():
    images = ndd.batch([np.full((1, 1, 3), 100, np.uint8)] * 2, layout="HWC")
    brighter = ndd.brightness(images, brightness=ndd.batch([1, 0.5]))
    assert [np.asarray(v).max() for v in brighter.tensors] == [100, 50]


def test_on_a_gpu(emulated_gpu):
    there = [ndd.tensor(np.array(7, np.int64)).gpu(), ndd.tensor(np.array(0.5, np.float32)).gpu()]
    result = ndd.batch(there)
    assert (result.dtype, result.device.device_type) == (ndd.float32, "gpu")
    assert [float(np.asarray(v.cpu())) for v in result.tensors] == [7.0, 0.5]
