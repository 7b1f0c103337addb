"""coord_transform: against the oracle, against NumPy, arguments for each sample and frame, the GPU, errors."""

from __future__ import annotations

import numpy as np
import pytest
from cases import F32, EachSample, each_of
from compare import check_same
from number_samples import random_array
from selection import drawn_types

import ndd

REGISTRY_CASES = {
    "coord_transform": each_of(
        {},
        {"M": EachSample([[[0.5, 0.1], [0.2, 0.9]]] * 3), "T": EachSample([[1.0, 2.0]] * 3)},
        {"MT": EachSample([[[0.5, 0.1, 0.2]]] * 3), "dtype": F32},
        inputs=("points",),
        dtypes=("float32",),
    ),
}

TYPES = ("uint8", "uint16", "int16", "int32", "float32")
SHAPES = [(5, 2), (0, 2), (1, 2)]


def points(dtype="float32", shapes=SHAPES):
    rng = np.random.default_rng(5)
    return [random_array(rng, s, dtype) for s in shapes]


def call(arrays, batched=True, layout=None, each=(), **arguments):
    """A call for either module; arguments named in `each` become batches."""

    def run(module):
        options = {k: module.batch(v) if k in each else v for k, v in arguments.items()}
        if "dtype" in options:
            options["dtype"] = getattr(module, options["dtype"])
        make = module.batch if batched else module.tensor
        return module.coord_transform(make(arrays if batched else arrays[0], layout=layout), **options)

    return run


def numbers(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


ARGUMENTS = [
    {},
    {"M": 2.0},
    {"M": numbers((1, 2))},
    {"M": numbers((2, 2)), "T": numbers(2)},
    {"M": numbers((3, 2)), "T": 4.0},
    {"M": numbers((1, 2)).astype(np.float64)},
    {"T": [1.0, -2.0]},
    {"MT": numbers((3, 3))},
]


@pytest.mark.oracle
@pytest.mark.parametrize("arguments", ARGUMENTS, ids=[str(list(a)) + str(i) for i, a in enumerate(ARGUMENTS)])
@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.drawn(3)
def test_against_the_oracle(dali, arguments, batched):
    for dtype in drawn_types(TYPES, 2, "coord_transform"):
        for wanted in ("float32", dtype):
            own = {**arguments, "dtype": wanted}
            assert check_same(dali, call(points(dtype), batched, **own), 1e-5, (dtype, wanted))


@pytest.mark.oracle
def test_values_for_each_sample(dali):
    for arguments in (
        {"M": [np.float32(2), np.float32(3), np.float32(-1)]},
        {"M": list(numbers((3, 4, 2)))},
        {"T": [np.float32(2), np.float32(3), np.float32(-1)]},
        {"T": list(numbers((3, 2)))},
        {"T": [np.int32([1, 2])] * 3},
        {"M": list(numbers((3, 4, 2))), "T": list(numbers((3, 4), 1))},
        {"MT": list(numbers((3, 2, 3)))},
    ):
        assert check_same(dali, call(points(), each=arguments, **arguments), 1e-5, arguments)
    assert check_same(dali, call(points(), M=numbers((2, 2)), T=[np.float32(i) for i in range(3)], each="T"), 1e-5)


@pytest.mark.oracle
def test_a_matrix_of_one_column_is_no_list_of_samples(dali):
    """Points of one coordinate, as many samples as rows."""
    arrays = points(shapes=[(4, 1), (2, 1), (3, 1)])
    assert check_same(dali, call(arrays, M=numbers((3, 1))), 1e-5)
    assert check_same(dali, call(arrays, M=[np.float32(i) for i in range(3)], each="M"), 1e-5)


@pytest.mark.oracle
@pytest.mark.parametrize("layout", [None, "HWC", "XYC", "FXC"])
def test_more_axes(dali, layout):
    arrays = points(shapes=[(3, 4, 3), (1, 2, 3), (2, 1, 3)])
    for m in (numbers((1, 3)), numbers((5, 3))):
        assert check_same(dali, call(arrays, layout=layout, M=m, T=2.0), 1e-5, m.shape)
    assert check_same(dali, call([a[None] for a in arrays], layout=layout and "A" + layout, M=3.0), 1e-5)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["M", "T", "MT"])
def test_values_for_each_frame(dali, name):
    shape = {"M": (2, 3), "T": (3,), "MT": (2, 4)}[name]
    arrays = points(shapes=[(4, 5, 3), (2, 1, 3)])
    values = [numbers((len(a), *shape), i) for i, a in enumerate(arrays)]

    def run(module):
        frames = module.per_frame(module.batch(values))
        return module.coord_transform(module.batch(arrays, layout="FXC"), **{name: frames})

    assert check_same(dali, run, 1e-5)
    scalars = [np.arange(len(a), dtype=np.float32) for a in arrays]

    def shifted(module):
        frames = module.per_frame(module.batch(scalars))
        return module.coord_transform(module.batch(arrays, layout="FXC"), T=frames)

    assert check_same(dali, shifted, 1e-5)


@pytest.mark.oracle
def test_rounding_and_range(dali):
    halves = np.array([[1, 3, 5, -1, -3, -5]])
    for dtype in drawn_types(TYPES, 2, "coord_transform"):
        arrays = [halves.clip(0 if dtype[0] == "u" else None).astype(dtype)]
        assert check_same(dali, call(arrays, M=0.5, dtype=dtype), note=dtype)
        assert check_same(dali, call(arrays, M=1e9, dtype=dtype), note=dtype)
    large = [np.array([[2_000_000_000, 16_777_217, -123_456_789]], np.int32)]
    assert check_same(dali, call(large, dtype="int32"))


def test_matrices_as_lists():
    """Row by row or nested; DALI takes a list as a matrix or as a vector, as earlier calls would have it."""
    x = numbers((4, 2))
    for options in ([1.0, 2.0, -3.0, 0.25], [[1.0, 2.0], [-3.0, 0.25]], ((1, 2), (-3, 0.25))):
        result = np.asarray(ndd.coord_transform(x, M=options, T=[0.5]))
        np.testing.assert_allclose(result, x @ np.float32([[1, 2], [-3, 0.25]]).T + 0.5, rtol=1e-5)
    result = np.asarray(ndd.coord_transform(x, MT=[1, 2, 3]))
    np.testing.assert_allclose(result, x @ np.float32([[1], [2]]) + 3, rtol=1e-5)
    for options in (3, [3.0], np.float32(3)):
        for name in ("M", "MT"):
            np.testing.assert_array_equal(np.asarray(ndd.coord_transform(x, **{name: options})), x * 3)
    each = ndd.batch([2.0, 3.0])
    assert [
        float(np.asarray(r)[0, 0]) for r in ndd.coord_transform(ndd.batch([[[1.0]], [[1.0]]]), MT=each).tensors
    ] == [2, 3]


def test_any_number_of_coordinates():
    x, m, t = numbers((10, 9)), numbers((12, 9), 1), numbers(12, 2)
    result = np.asarray(ndd.coord_transform(x, M=m, T=t))
    np.testing.assert_allclose(result, x @ m.T + t, rtol=1e-4, atol=1e-5)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("shape", "arguments"),
    [
        ((3, 2), {"M": numbers((2, 3))}),
        ((3, 2), {"M": numbers((1, 1))}),
        ((3, 2), {"M": numbers((1, 2, 2))}),
        ((3, 2), {"M": [1, 2, 3]}),
        ((3, 2), {"M": []}),
        ((3, 2), {"T": []}),
        ((3, 2), {"T": [1.0, 2.0, 3.0]}),
        ((3, 2), {"T": numbers((1, 2))}),
        ((3, 2), {"M": numbers((3, 2)), "T": [1.0, 2.0]}),
        ((3, 2), {"MT": numbers((2, 2))}),
        ((3, 2), {"MT": [1.0] * 4}),
        ((3, 2), {"MT": 2.0, "M": 1.0}),
        ((3, 2), {"MT": 2.0, "T": 1.0}),
        ((3,), {}),
        ((), {}),
    ],
)
def test_misuse(dali, shape, arguments):
    assert not check_same(dali, call([np.ones(shape, np.float32)], **arguments))


@pytest.mark.oracle
def test_misuse_of_types_and_batches(dali):
    for dtype in ("int8", "uint32", "uint64", "int64", "float16", "float64", "bool"):
        assert not check_same(dali, call([np.ones((3, 2), dtype)]), note=dtype)
        assert not check_same(dali, call([np.ones((3, 2), np.float32)], dtype=dtype), note=dtype)
    assert not check_same(dali, call([np.ones((3, 2), np.uint8)], dtype="int32"))
    assert not check_same(dali, call([np.ones((3, 2), np.float32), np.ones((3, 3), np.float32)]))
    two = [np.ones((3, 2), np.float32)] * 2
    assert not check_same(dali, call(two, M=[numbers((2, 2)), numbers((1, 2))], each="M"))
    assert not check_same(dali, call(two, T=[numbers(2), numbers(1)], each="T"))
    assert not check_same(dali, call(two, T=[numbers(3), numbers(3)], each="T"))
    assert not check_same(dali, call([np.ones((3, 2), np.float32)], layout="FX"))


def test_errors_say_what_was_expected():
    with pytest.raises(RuntimeError, match=r"coord_transform: `M`: expected a matrix of 2 columns.*\(2, 3\)"):
        ndd.coord_transform(np.ones((3, 2), np.float32), M=numbers((2, 3))).evaluate()
    with pytest.raises(RuntimeError, match="same number of coordinates, got 2 in sample 0 and 3 in sample 1"):
        ndd.coord_transform(ndd.batch([numbers((3, 2)), numbers((3, 3))])).evaluate()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.drawn(1)
def test_gpu(dtype, emulated_gpu):
    arrays = points(dtype)
    for arguments in (*ARGUMENTS, {"M": ndd.batch(list(numbers((3, 4, 2))))}):
        for wanted in (ndd.float32, getattr(ndd, dtype)):
            expected = ndd.coord_transform(ndd.batch(arrays), dtype=wanted, **arguments)
            result = ndd.coord_transform(ndd.batch(arrays).gpu(), dtype=wanted, **arguments)
            assert result.device == ndd.Device("gpu:0")
            for a, b in zip(result.cpu().tensors, expected.tensors, strict=True):
                np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-3)
