"""Element type conversion on the CPU: both ways of computing it, against DALI and against each other."""

from __future__ import annotations

import numpy as np
import pytest
from compare import assert_same
from number_samples import NAMES, NUMPY, borders
from selection import drawn_types

from ndd._tensor.convert import COMPILED_FROM, convert_array, converter

LARGE = COMPILED_FROM + 3


@pytest.mark.parametrize("source", NAMES)
def test_cast_equals_dali(dali, source):
    values = borders(source)
    tensor = dali.tensor(values)
    for target in NAMES:
        wanted = np.asarray(dali.cast(tensor, dtype=getattr(dali, NUMPY[target])).evaluate())
        # DALI's CPU operator rounds u16 and i16 half away from zero to float16; everything else to even.
        tolerance = 1e-3 if (source, target) in (("u16", "f16"), ("i16", "f16")) else 0
        assert_same(convert_array(values, source, target), wanted, tolerance)


@pytest.mark.parametrize("rule", ["cast", "truncate"])
@pytest.mark.parametrize("source", [*NAMES, "bfloat16"])
def test_large_arrays_convert_as_small_ones(source, rule):
    values = convert_array(borders("f32"), "f32", "bfloat16") if source == "bfloat16" else borders(source)
    large = np.resize(values, LARGE)
    for target in drawn_types((*NAMES, "bfloat16"), 3, "convert"):
        small = convert_array(values, source, target, rule=rule)
        np.testing.assert_array_equal(convert_array(large, source, target, rule=rule), np.resize(small, LARGE))


def test_truncate_drops_the_fraction_and_saturates():
    values = np.array([1.9, 2.51, -1.0, -0.9, 300.0, np.nan], np.float32)
    assert convert_array(values, "f32", "u8", rule="truncate").tolist() == [1, 2, 0, 0, 255, 0]
    assert convert_array(values, "f32", "bool", rule="truncate").tolist() == [True, True, True, False, True, True]


def test_bfloat16_rounds_to_even():
    values = np.array([1.0, 1.00390625, 1.01171875, -0.0, 3.4e38, np.inf, np.nan], np.float32)
    bits = convert_array(values, "f32", "bfloat16")
    assert bits.tolist() == [0x3F80, 0x3F80, 0x3F82, 0x8000, 0x7F80, 0x7F80, 0x7FFF]
    torch = pytest.importorskip("torch")
    wanted = torch.from_numpy(values[:-1]).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
    np.testing.assert_array_equal(bits[:-1], wanted)


def test_strided_arrays_and_scalars():
    values = np.arange(40, dtype=np.float32).reshape(5, 8)[:, ::3] * 20.5
    assert convert_array(values, "f32", "u8").tolist() == np.minimum(np.floor(values + 0.5), 255).tolist()
    for target in NAMES:
        assert convert_array(np.array(1.5), "f64", target).shape == ()
        assert convert_array(np.array(300, np.int64), "i64", target).shape == ()


def test_the_same_step_is_reused():
    assert converter("u8", "f32") is converter("u8", "f32")
