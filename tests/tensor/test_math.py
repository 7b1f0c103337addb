"""`ndd.math` against DALI, on the CPU and on the emulated GPU."""

# ruff: noqa: B023  (every closure runs before the loop goes on)
from __future__ import annotations

import inspect

import numpy as np
import pytest
from compare import assert_same, check_same, same_where
from number_samples import NAMES, samples
from selection import drawn

import ndd

BINARY = ("pow", "fpow", "min", "max", "atan2")
UNARY = tuple(n for n in ndd.math.__all__ if n not in (*BINARY, "clamp"))


def test_all_functions_of_dali_are_there(dali):
    names = {n for n in dir(dali.math) if not n.startswith("_") and inspect.isfunction(getattr(dali.math, n))}
    assert names == set(ndd.math.__all__)
    for name in names:
        assert str(inspect.signature(getattr(dali.math, name))).replace(": Any", "") == str(
            inspect.signature(getattr(ndd.math, name))
        ).replace(": 'Any'", "").replace(" -> 'Any'", "")


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.drawn(3)
def test_unary(dali, name):
    for kind in NAMES:
        x = samples(kind)
        # DALI's rsqrt is NaN at 0 and at infinity: ours is infinite and 0.
        known = (x != 0) & np.isfinite(x) if name == "rsqrt" else ...
        check_same(dali, lambda m: getattr(m.math, name)(m.tensor(x)), close=same_where(known), note=kind)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rsqrt_at_the_ends(kind):
    x = ndd.tensor(np.array([0, -0.0, np.inf, -1, np.nan, 4], kind))
    np.testing.assert_array_equal(np.asarray(ndd.math.rsqrt(x)), [np.inf, -np.inf, 0, np.nan, np.nan, 0.5])


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.drawn(1)
def test_binary(dali, name):
    for a in NAMES:
        for b in NAMES:
            x, y = samples(a), samples(b, seed=1)
            known = same_where(~np.isnan(x.astype(float)) if name == "pow" else ...)
            check_same(dali, lambda m: getattr(m.math, name)(m.tensor(x), m.tensor(y)), close=known, note=(a, b))


def test_clamp(dali):
    for a in NAMES:
        for b in drawn(NAMES, 4, a):
            for c in drawn(("bool", "u8", "i32", "u64", "f16", "f32", "f64"), 3, a, b):
                arguments = samples(a, 50), samples(b, 50, 1), samples(c, 50, 2)
                check_same(dali, lambda m: m.math.clamp(*map(m.tensor, arguments)), close=assert_same, note=(a, b, c))


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.sqrt(4), lambda m: m.sqrt([1.0, 4.0]), lambda m: m.sqrt(np.array([4.0])), lambda m: m.abs(-3),
        lambda m: m.sqrt(True), lambda m: m.min(3, 4.5), lambda m: m.clamp(5, 0, 3), lambda m: m.clamp(5, 0, 3.5),
        lambda m: m.clamp(True, False, True), lambda m: m.pow(2, 3), lambda m: m.fpow(2.0, np.float64(3)),
        lambda m: m.atan2(1, [1, 2]), lambda m: m.clamp([1, 2, 3], 2, np.array([2, 2, 9])), lambda m: m.floor(3),
        lambda m: m.clamp(5, 10, 0), lambda m: m.max(np.uint8(3), np.int8(-1)),
        lambda m: m.sqrt(None), lambda m: m.sin("a"),
    ],
)  # fmt: skip
def test_numbers_and_lists(dali, call):
    check_same(dali, lambda m: call(m.math), close=assert_same)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_gpu_equals_cpu(emulated_gpu, name):
    x, y = samples("f64" if name in ("exp", "atan2") else "f32"), samples("i16", seed=1)
    function = getattr(ndd.math, name)
    operands = (x, y) if name in BINARY else (x,)
    wanted = np.asarray(function(*(ndd.tensor(v) for v in operands)))
    assert_same(np.asarray(function(*(ndd.tensor(v).gpu() for v in operands)).cpu()), wanted)


def test_gpu_clamp(emulated_gpu):
    x = ndd.batch([samples("i16"), samples("i16", 7)])
    low = ndd.batch([np.int16(-5), np.int16(3)])
    for bounds in ((low, 100), (0, 255), (low, low + 1), (-2.5, low)):
        wanted = ndd.math.clamp(x, *bounds)
        result = ndd.math.clamp(x.gpu(), *(b.gpu() if isinstance(b, ndd.Batch) else b for b in bounds))
        for i in range(2):
            assert_same(np.asarray(result.select(i).cpu()), np.asarray(wanted.select(i)))


def test_every_function_keeps_layout_and_batch():
    b = ndd.batch([np.ones((2, 3), np.float32), np.ones((1, 3), np.float32)], layout="HW")
    for name in UNARY:
        result = getattr(ndd.math, name)(b)
        assert (result.layout, result.shape) == ("HW", [(2, 3), (1, 3)])
