"""Operators of Tensor and Batch against DALI: element types, values, broadcasting, layouts, errors; CPU and GPU."""

# ruff: noqa: B023  (every closure runs before the loop goes on)
from __future__ import annotations

import operator

import numpy as np
import pytest
from compare import assert_same, check_same, same_where
from number_samples import NAMES, samples
from selection import drawn

import ndd

pytestmark = pytest.mark.read_by_dali  # numbers in a call are constants of DALI's expression then, and not inputs

BINARY = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "fdiv": operator.truediv, "div": operator.floordiv,
    "mod": operator.mod, "pow": operator.pow, "bitand": operator.and_, "bitor": operator.or_, "bitxor": operator.xor,
    "lshift": operator.lshift, "rshift": operator.rshift, "eq": operator.eq, "neq": operator.ne, "lt": operator.lt,
    "leq": operator.le, "gt": operator.gt, "geq": operator.ge,
}  # fmt: skip
COMPARISONS = ("eq", "neq", "lt", "leq", "gt", "geq")
UNARY = {"minus": operator.neg, "plus": operator.pos, "bitnot": operator.invert, "abs": operator.abs}


def operands_for(name, a, b, seed=0):
    """Values that neither library refuses and with which DALI does not crash (minimum // -1)."""
    x, y = samples(a, seed=seed), samples(b, seed=seed + 1)
    if name in ("div", "mod") and not {a, b} & {"f32", "f64"}:
        y[y == 0] = 1
        if y.dtype.kind in "iu":
            y[y == np.array(-1).astype(y.dtype)] = 3
    return x, y


def below_all_floats(x, y):
    """Negative integers: DALI takes them for less than every float, also than -1e20. We do not."""
    return np.full(x.shape, x.dtype.kind == "i" and y.dtype.kind == "f") & (x < 0)


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64])
def test_negative_integers_are_compared_as_numbers(name, kind):
    x, y = np.meshgrid(np.array([-128, -100, -1, 0, 1], kind), np.float32([-1e20, -128, -1.5, -1, -0.0, 1, np.nan]))
    function = BINARY[name]
    np.testing.assert_array_equal(np.asarray(function(ndd.tensor(x), ndd.tensor(y))), function(x, y))
    np.testing.assert_array_equal(np.asarray(function(ndd.tensor(y), ndd.tensor(x))), function(y, x))
    np.testing.assert_array_equal(np.asarray(function(ndd.tensor(x), -1.0)), function(x, -1.0))


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.drawn(1)
def test_comparisons_at_the_ends_of_types_equal_dali(dali, name):
    numbers = [
        0,
        1,
        -1,
        127,
        -128,
        255,
        65535,
        2**24,
        2**24 + 1,
        2**31 - 1,
        -(2**31),
        2**53,
        2**53 + 1,
        2**63,
        2**64 - 1,
    ]
    kinds = [np.int8, np.uint8, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64]
    for i, a in enumerate(kinds):
        for b in kinds[: i + 1]:
            lists = [
                np.array(
                    [v for v in numbers if not np.issubdtype(t, np.integer) or np.array_equal(fitting(v, t), v)], t
                )
                for t in (a, b)
            ]
            x, y = (v.ravel() for v in np.meshgrid(*lists))
            known = same_where(~(below_all_floats(x, y) | below_all_floats(y, x)))
            check_same(dali, lambda m: BINARY[name](m.tensor(x), m.tensor(y)), close=known, note=(a, b))


def fitting(number, kind):
    """The nearest number of an integer type."""
    limits = np.iinfo(kind)
    return min(max(number, limits.min), limits.max)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.drawn(1)
def test_every_pair_of_types_equals_dali(dali, name):
    function = BINARY[name]
    for a in NAMES:
        for b in drawn(NAMES, 3, name, a):
            x, y = operands_for(name, a, b)
            known = same_where(~np.isnan(x.astype(float)) if name == "pow" else ...)
            if name in COMPARISONS:
                known = same_where(~(below_all_floats(x, y) | below_all_floats(y, x)))
            check_same(dali, lambda m: function(m.tensor(x), m.tensor(y)), close=known, note=(a, b))


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("kind", NAMES)
def test_unary_operators_equal_dali(dali, name, kind):
    x = samples(kind)
    check_same(dali, lambda m: UNARY[name](m.tensor(x)), close=assert_same)


@pytest.mark.parametrize("scalar", [1, -3, 2.5, True, np.uint8(7), np.int64(-2), np.float64(0.1), np.float32(3)])
@pytest.mark.parametrize("kind", ["u8", "u32", "i64", "f32", "f64"])
@pytest.mark.drawn(4)
def test_scalars_count_as_in_dali(dali, kind, scalar):
    x = np.array([1, 2, 7], samples(kind).dtype)
    with dali.EvalMode.sync_cpu:
        for name in ("add", "fdiv", "div", "lt", "mul"):
            wanted = np.asarray(BINARY[name](dali.tensor(x), scalar).evaluate())
            assert_same(np.asarray(BINARY[name](ndd.tensor(x), scalar)), wanted)
            reversed_wanted = np.asarray(BINARY[name](dali.tensor(scalar), dali.tensor(x)).evaluate())
            if not (isinstance(scalar, float) and not isinstance(scalar, np.float64) and kind == "f64"):
                assert_same(np.asarray(BINARY[name](scalar, ndd.tensor(x))), reversed_wanted)


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_zeros_of_both_signs_are_different_constants(zero):
    assert np.signbit(np.asarray(ndd.tensor([1.0]) * zero)[0]) == np.signbit(zero)


def test_numbers_of_one_value_and_different_type_are_different_constants():
    x = ndd.tensor(np.array([1], np.uint8))
    assert [str((x + c).dtype) for c in (1, True, 1.0, np.uint8(1), np.float64(1))] == ["i32", "u8", "f32", "u8", "f64"]


def test_an_integer_beyond_32_bits_is_refused():
    for value in (2**31, -(2**31) - 1, 2**40):
        with pytest.raises(OverflowError, match="int32"):
            ndd.tensor([1]) + value
    assert np.asarray(ndd.tensor(np.array([1])) + np.int64(2**40))[0] == 2**40 + 1


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.drawn(9)
def test_lists_arrays_and_torch_tensors_stand_on_either_side(name):
    torch = pytest.importorskip("torch")
    function = BINARY[name]
    values = [4, 5, 6]
    batch = ndd.batch([np.array([1, 2, 3], np.int32), np.array([3, 2, 1], np.int32)])
    for other in (values, tuple(values), np.array(values, np.int32), torch.tensor(values, dtype=torch.int32)):
        whole = ndd.tensor(np.array(values, np.int32))
        for result, wanted in (
            (function(batch, other), function(batch, whole)),
            (function(other, batch), function(whole, batch)),
        ):
            assert isinstance(result, ndd.Batch)
            assert result.dtype is wanted.dtype
            for i in range(2):
                assert_same(np.asarray(result.select(i)), np.asarray(wanted.select(i)))


def test_batch_of_different_shapes_and_broadcasting():
    ragged = ndd.batch([np.ones((2, 3), np.float32), np.ones((4, 3), np.float32)])
    row = ndd.tensor(np.array([1.0, 2.0, 3.0], np.float32))
    result = ragged * row + ndd.batch([10.0, 20.0])
    assert result.shape == [(2, 3), (4, 3)]
    np.testing.assert_array_equal(np.asarray(result.select(1)), np.broadcast_to([21.0, 22.0, 23.0], (4, 3)))
    column = ndd.batch([np.ones((5, 1, 1), np.float32), np.ones((2, 1, 3), np.float32)])
    assert (ragged + column).shape == [(5, 2, 3), (2, 4, 3)]


def test_stretching_many_ways_equals_numpy():
    rng = np.random.default_rng(0)
    for shapes in (
        ((5, 1, 7), (1, 6, 1)),
        ((64, 65, 3), (3,)),
        ((3, 1, 1), (3, 40, 500)),
        ((0, 3), (1, 3)),
        ((4, 5), ()),
    ):
        x, y = (rng.integers(0, 255, s).astype(np.int32) for s in shapes)
        for n in (1, 3):
            a = ndd.batch([x + i for i in range(n)])
            for b in (ndd.tensor(y), ndd.batch([y * (i + 1) for i in range(n)])):
                result = a - b
                for i in range(n):
                    other = y if isinstance(b, ndd.Tensor) else y * (i + 1)
                    np.testing.assert_array_equal(np.asarray(result.select(i)), (x + i) - other)


def test_large_values_take_the_compiled_loops():
    rng = np.random.default_rng(0)
    x = rng.integers(-(2**31), 2**31, 40001).astype(np.int32)
    y = rng.integers(-9, 9, 40001).astype(np.int32)
    y[y == 0] = 1
    for kind in drawn((np.int32, np.int8, np.int64, np.uint16), 1, "whole quotients"):
        a, b = x.astype(kind), y.astype(kind)
        b[b == 0] = 1
        result = np.asarray(ndd.tensor(a) // ndd.tensor(b))
        with np.errstate(all="ignore"):
            wanted = ((a - np.fmod(a, b)) // b).astype(kind)
        np.testing.assert_array_equal(result, wanted)
        np.testing.assert_array_equal(np.asarray(ndd.tensor(a) // kind(3)), ((a - np.fmod(a, kind(3))) // kind(3)))
    f = np.where(rng.random(40001) < 0.1, np.nan, x).astype(np.float32)
    g = np.where(rng.random(40001) < 0.1, np.nan, y).astype(np.float32)
    np.testing.assert_array_equal(np.asarray(ndd.math.min(f, g)), np.where(f < g, f, g))
    np.testing.assert_array_equal(np.asarray(ndd.math.max(f, 3.0)), np.where(f > 3, f, np.float32(3)))
    np.testing.assert_array_equal(
        np.asarray(ndd.math.clamp(f, -5.0, g)), np.where((t := np.where(f < -5, np.float32(-5), f)) > g, g, t)
    )
    np.testing.assert_array_equal(np.asarray(ndd.math.clamp(x, -5, 7)), np.clip(x, -5, 7))


def test_dividing_integers_by_zero_is_refused_as_by_dali(dali):
    for function in (operator.floordiv, operator.mod):
        check_same(dali, lambda m: function(m.tensor([1, 2]), m.tensor([0, 1])))


def test_dividing_integers_by_zero_names_the_sample():
    a = ndd.batch([[1, 2], [3, 4]])
    for function in (operator.floordiv, operator.mod):
        with pytest.raises(ValueError) as result:
            function(a, ndd.batch([[1, 1], [1, 0]])).evaluate()
        assert "sample 1: Integer division by zero" in str(result.value.__cause__)
    assert np.asarray(ndd.tensor(np.array([-(2**31)], np.int32)) // -1)[0] == -(2**31)
    assert np.asarray(ndd.tensor(np.array([-(2**31)], np.int32)) % -1)[0] == 0
    assert np.isinf(np.asarray(ndd.tensor([1.0]) // 0)[0])


def test_integer_powers_wrap_as_in_numpy():
    rng = np.random.default_rng(0)
    x, y = rng.integers(-(2**62), 2**62, 100), rng.integers(0, 90, 100)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.asarray(ndd.tensor(x) ** ndd.tensor(y)), x**y)


def test_layouts():
    x, row = np.zeros((2, 3), np.float32), np.zeros(3, np.float32)
    assert (ndd.tensor(x, layout="HW") + ndd.tensor(row, layout="W")).layout == "HW"
    assert (ndd.tensor(row, layout="W") + ndd.tensor(x, layout="HW")).layout == "HW"
    assert (ndd.tensor(x, layout="HW") + ndd.tensor(x)).layout == "HW"
    assert (ndd.tensor(x) + 1).layout is None
    assert (ndd.tensor(x) + ndd.tensor(row, layout="W")).layout is None
    assert (ndd.tensor(row, layout="W") * ndd.tensor(x)).layout is None
    for other in (ndd.tensor(row, layout="H"), ndd.tensor(x, layout="WH")):
        with pytest.raises(RuntimeError, match="suffix"):
            ndd.tensor(x, layout="HW") + other


def test_wrong_operands():
    b = ndd.batch([[1, 2], [3, 4]])
    with pytest.raises(ValueError, match=r"(?i)inconsistent batch size: 3 != 2"):
        b + ndd.batch([1, 2, 3])
    with pytest.raises(RuntimeError, match="broadcast") as result:
        (b + [1, 2, 3]).evaluate()
    assert "sample 0" in str(result.value.__cause__)
    with pytest.raises(ValueError, match="None"):
        b + None
    with pytest.raises(RuntimeError, match="str"):
        b * "a"
    with pytest.raises(RuntimeError, match="float16"):
        b + np.float16(1)
    with pytest.raises(RuntimeError, match="float16"):
        ndd.tensor(1, dtype=ndd.bfloat16) + 1
    with pytest.raises(RuntimeError, match="booleans"):
        ndd.tensor(True) + True
    with pytest.raises(RuntimeError, match="integral"):
        ndd.tensor(1.5) & 1


def test_element_type_rank_and_layout_are_known_before_it_runs():
    with ndd.EvalMode.deferred:
        x = ndd.batch([np.zeros((2, 3), np.uint8)] * 2, layout="HW")
        y = (x * 0.5 + np.float64(1)) > 3
        assert (str(y.dtype), y.ndim, y.layout) == ("bool", 2, "HW")


# ---- GPU

_PAIRS = {
    "add": ["u8 i8", "u64 i64", "f32 i64"], "mul": ["bool bool", "i32 i32"], "sub": ["u16 i16"],
    "fdiv": ["u64 i8", "f64 u8"], "div": ["i64 i64", "i8 u8", "f32 i32"], "mod": ["u32 f32", "i32 i16", "f64 f64"],
    "pow": ["i64 i64", "u8 i8", "f32 i32"], "bitand": ["bool u8"], "bitor": ["i16 u16"], "bitxor": ["u64 u64"],
    "lshift": ["i32 i32", "u8 u8", "bool bool"], "rshift": ["i8 i8", "i64 u64"], "eq": ["u64 i8", "f32 f64"],
    "neq": ["u8 bool"], "lt": ["u64 i64", "u8 i64", "i64 u64"], "leq": ["i32 f32"], "gt": ["f64 i64"],
    "geq": ["u32 i32"],
}  # fmt: skip


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("name", "pair"), [(n, p) for n, pairs in _PAIRS.items() for p in pairs])
def test_gpu_equals_cpu(emulated_gpu, name, pair):
    a, b = pair.split()
    x, y = operands_for(name, a, b)
    function = BINARY[name]
    wanted = np.asarray(function(ndd.tensor(x), ndd.tensor(y)))
    assert_same(np.asarray(function(ndd.tensor(x).gpu(), ndd.tensor(y).gpu()).cpu()), wanted)
    assert emulated_gpu.launches.count("elementwise") == 1


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.drawn(1)
def test_gpu_unary_equals_cpu(emulated_gpu, name):
    for kind in ("i8", "bool" if name == "bitnot" else "u32" if name == "abs" else "f32" if name == "minus" else "i64"):
        x = samples(kind)
        assert_same(np.asarray(UNARY[name](ndd.tensor(x).gpu()).cpu()), np.asarray(UNARY[name](ndd.tensor(x))))


def test_gpu_broadcasting_and_constants_take_one_launch(emulated_gpu):
    images = ndd.batch([np.arange(h * 5 * 3, dtype=np.uint8).reshape(h, 5, 3) for h in (1, 4, 30)])
    row = ndd.tensor([1.0, 2.0, 3.0])
    expressions = (
        lambda b, r: b * r, lambda b, r: r - b, lambda b, r: 2.5 * b, lambda b, r: b // 3, lambda b, r: 200 // (b + 1),
        lambda b, r: [1, 2, 3] * b, lambda b, r: b + np.array([[[1.5]]]),
    )  # fmt: skip
    for expression in drawn(expressions, 4, "broadcasting"):
        wanted = expression(images, row)
        result = expression(images.gpu(), row.gpu())
        assert result.device == ndd.Device("gpu")
        for i in range(3):
            assert_same(np.asarray(result.select(i).cpu()), np.asarray(wanted.select(i)))
    emulated_gpu.launches.clear()
    (images.gpu() * 2 + 1).evaluate()
    assert emulated_gpu.launches == ["elementwise"] * 2


def test_mixing_cpu_and_gpu_is_refused_at_the_call(emulated_gpu):
    torch = pytest.importorskip("torch")
    gpu = ndd.tensor([1, 2]).gpu()
    for other in (ndd.tensor([1, 2]), ndd.batch([[1, 2]]), torch.tensor([1, 2])):
        for function in (operator.add, ndd.math.atan2):
            with pytest.raises(ValueError, match="GPU and CPU"):
                function(gpu, other)
            with pytest.raises(ValueError, match="GPU and CPU"):
                function(other, gpu)
