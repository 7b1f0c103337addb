"""reshape, reinterpret, expand_dims and squeeze: shapes and layouts as DALI 2.4.0 gives them, without copies.

The expected values were read from DALI in fresh processes: its dynamic mode keeps operator instances between calls and
mixes up their arguments after an error, so that it cannot be asked here case by case.
"""

import numpy as np
import pytest
from cases import DTYPES, U8, Case, each_of, values

import ndd

REGISTRY_INPUTS = {"thin": (lambda rng, i, dtype: values(rng, (2 + i, 1, 4), dtype), "HWC")}
REGISTRY_CASES = {
    "reshape": [
        Case({"shape": [4, -1]}, inputs=("same matrix",)),
        Case({"layout": "HW"}, inputs=("matrix",)),
    ],
    "reinterpret": each_of({"dtype": U8}, inputs=("matrix",), dtypes=DTYPES),
    "expand_dims": each_of({"axes": [0]}, {"axes": [1], "new_axis_names": "X"}, inputs=("plane",)),
    "squeeze": [
        Case({"axis_names": "W"}, inputs=("thin",)),
        Case({"axes": [1]}, inputs=("thin",), oracle=False),  # DALI 2.4.0 does not see `axes` in dynamic mode
    ],
}


def t(*shape, layout=None, dtype=np.uint8):
    return ndd.tensor(np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape), layout=layout)


def hw():
    return t(2, 3, layout="HW")


RESHAPES = {
    "shape": ({"shape": [3, 2]}, (3, 2), "HW"),
    "flat": ({"shape": [6]}, (6,), None),
    "number": ({"shape": 6}, (6,), None),
    "rest": ({"shape": [-1, 2]}, (3, 2), "HW"),
    "any negative": ({"shape": [-2, 2]}, (3, 2), "HW"),
    "floats": ({"shape": [3.7, 2.0]}, (3, 2), "HW"),
    "layout": ({"layout": "AB"}, (2, 3), "AB"),
    "no layout": ({"layout": ""}, (2, 3), None),
    "both": ({"shape": [3, 2, 1], "layout": "ABC"}, (3, 2, 1), "ABC"),
    "relative": ({"rel_shape": [0.5, 2]}, (1, 6), "HW"),
    "relative rest": ({"rel_shape": [1.5, -1]}, (3, 2), "HW"),
    "relative fewer": ({"rel_shape": [3]}, (6,), None),
    "relative and one more": ({"rel_shape": [1, 0.4, -1]}, (2, 1, 3), None),
    "relative rounded": ({"rel_shape": [0.4, 2]}, (1, 6), "HW"),
    "axes": ({"src_dims": [1, 0]}, (3, 2), "HW"),
    "new axis": ({"src_dims": [1, -1, 0]}, (3, 1, 2), None),
    "relative axes": ({"src_dims": [1, 0], "rel_shape": [-1, 1]}, (3, 2), "HW"),
    "shape before axes": ({"src_dims": [1], "shape": [6]}, (6,), None),
}


@pytest.mark.parametrize("name", RESHAPES)
def test_reshape(name):
    arguments, shape, layout = RESHAPES[name]
    result = ndd.reshape(hw(), **arguments)
    assert (result.ndim, result.layout) == (len(shape), layout)
    assert (result.shape, result.layout) == (shape, layout)
    np.testing.assert_array_equal(np.asarray(result).reshape(-1), np.arange(6))


REFUSED = {
    "nothing": {},
    "two open": {"shape": [-1, -1]},
    "too many": {"shape": [4, 2]},
    "does not divide": {"shape": [4, -1]},
    "scalar": {"shape": []},
    "layout": {"layout": "ABC"},
    "shape and layout": {"shape": [3, 2, 1], "layout": "AB"},
    "more relative": {"rel_shape": [1, 1, 1]},
    "dropped": {"src_dims": [0]},
    "no such axis": {"src_dims": [0, 2]},
    "twice": {"src_dims": [0, 0]},
    "minus two": {"src_dims": [0, -2]},
    "lengths": {"src_dims": [1, 0], "rel_shape": [0.5]},
    "two ways": {"shape": [6], "rel_shape": [1]},
}


@pytest.mark.parametrize("name", REFUSED)
def test_reshape_refuses(name):
    with ndd.EvalMode.sync_cpu, pytest.raises(RuntimeError, match="reshape: "):
        ndd.reshape(hw(), **REFUSED[name])


def test_reshape_by_a_value():
    for shape in ([3, 2], np.array([3, -1]), np.array([3, 2], np.uint8)):
        result = ndd.reshape(hw(), shape)
        assert (result.shape, result.layout) == ((3, 2), "HW")
    assert ndd.reshape(hw(), [[6]]).shape == (6,)
    for wrong in (6, np.array([3.0, 2.0], np.float32)):
        with ndd.EvalMode.sync_cpu, pytest.raises(RuntimeError):
            ndd.reshape(hw(), wrong)


def test_reshape_of_batches():
    batch = ndd.batch([np.ones((2, 1), np.uint8), np.ones((1, 3), np.uint8)], layout="HW")
    assert ndd.reshape(batch, shape=[-1]).shape == [(2,), (3,)]
    assert ndd.reshape(batch, src_dims=[1, 0]).shape == [(1, 2), (3, 1)]
    result = ndd.reshape(batch, shape=ndd.batch([[2, 1], [3, 1]]))
    assert (result.layout, result.shape) == ("HW", [(2, 1), (3, 1)])
    assert ndd.reshape(batch, ndd.batch([[2], [3]])).shape == [(2,), (3,)]
    assert ndd.reshape(batch, rel_shape=ndd.batch([[0.5, 2.0], [1.0, 1.0]])).shape == [(1, 2), (1, 3)]
    with ndd.EvalMode.sync_cpu, pytest.raises(RuntimeError, match="sample 1: shape"):
        ndd.reshape(batch, shape=[2])


def test_nothing_is_copied():
    array = np.zeros((2, 3, 4), np.uint8)
    batch = ndd.as_batch(array)
    for view in (
        ndd.reshape(batch, shape=[12]),
        ndd.reinterpret(batch, dtype=ndd.int32),
        ndd.expand_dims(batch, axes=[0]),
        ndd.squeeze(ndd.expand_dims(batch, axes=[0]), axes=[0]),
    ):
        assert np.shares_memory(np.asarray(view.select(1)), array)
    strided = ndd.as_tensor(array)[:, ::2]
    np.testing.assert_array_equal(np.asarray(ndd.reshape(strided, shape=[-1])), np.zeros(16))


def test_reinterpret():
    cases = [
        (t(2, 4, layout="HW"), {"dtype": ndd.int32}, (2, 1), "HW"),
        (t(2, 4), {"dtype": ndd.int16, "shape": [-1]}, (4,), None),
        (t(2, 4), {"dtype": ndd.int16, "rel_shape": [1, 0.5]}, (2, 2), None),
        (t(2, 4), {"dtype": ndd.int16, "src_dims": [1, 0]}, (4, 1), None),
        (t(2, 4), {"dtype": ndd.int16, "layout": "AB"}, (2, 2), "AB"),
        (t(2, 1, dtype=np.int32), {"dtype": ndd.uint8}, (2, 4), None),
        (t(2, 4), {"dtype": ndd.bfloat16}, (2, 2), None),
        (t(dtype=np.int32), {"dtype": ndd.float32}, (), None),
    ]
    for value, arguments, shape, layout in cases:
        result = ndd.reinterpret(value, **arguments)
        assert (result.shape, result.layout, result.dtype) == (shape, layout, arguments["dtype"])
        if result.dtype != ndd.bfloat16:
            assert np.asarray(result).tobytes() == np.asarray(value).tobytes()
    for value, arguments in (
        (t(2, 4), {}),
        (t(2, 3), {"dtype": ndd.int32}),
        (t(2, 4), {"dtype": ndd.int16, "shape": [8]}),
        (t(2, 4), {"dtype": ndd.int16, "rel_shape": [1, 1]}),
        (t(dtype=np.int32), {"dtype": ndd.uint8}),
    ):
        with ndd.EvalMode.sync_cpu, pytest.raises(RuntimeError, match="reinterpret: "):
            ndd.reinterpret(value, **arguments)


EXPANDED = [
    ({"axes": 0}, (1, 2, 3), None),
    ({"axes": [0], "new_axis_names": "F"}, (1, 2, 3), "FHW"),
    ({"axes": [1, 2], "new_axis_names": "FC"}, (2, 1, 1, 3), "HFCW"),
    ({"axes": [2, 1], "new_axis_names": "FC"}, (2, 1, 1, 3), "HCFW"),
    ({"axes": [2]}, (2, 3, 1), None),
    ({"axes": [0, 3]}, (1, 2, 3, 1), None),
    ({"axes": []}, (2, 3), "HW"),
]


@pytest.mark.parametrize(("arguments", "shape", "layout"), EXPANDED)
def test_expand_dims(arguments, shape, layout):
    result = ndd.expand_dims(hw(), **arguments)
    assert (result.ndim, result.layout, result.shape) == (len(shape), layout, shape)


@pytest.mark.parametrize("arguments", [{"axes": [0, 0]}, {"axes": [3]}, {"axes": [0, 4]}, {"axes": [-1]}])
def test_expand_dims_refuses(arguments):
    with pytest.raises(RuntimeError, match="expand_dims: `axes`"):
        ndd.expand_dims(hw(), **arguments)


def test_expand_dims_names():
    with pytest.raises(RuntimeError, match="does not name 1"):
        ndd.expand_dims(hw(), axes=[0], new_axis_names="FC")
    with pytest.raises(RuntimeError, match="needs an input with a layout"):
        ndd.expand_dims(t(2, 3), axes=[0], new_axis_names="F")
    assert ndd.expand_dims(ndd.tensor(3), axes=[0], new_axis_names="F").layout == "F"
    with pytest.raises(TypeError, match="axes"):
        ndd.expand_dims(hw())


SQUEEZED = [
    ({"axes": 0}, (2, 1, 3), "HCW"),
    ({"axes": [2, 0]}, (2, 3), "HW"),
    ({"axes": [-2]}, (1, 2, 3), "FHW"),
    ({"axis_names": "C"}, (1, 2, 3), "FHW"),
    ({"axis_names": "CF"}, (2, 3), "HW"),
    ({"axes": []}, (1, 2, 1, 3), "FHCW"),
]


@pytest.mark.parametrize(("arguments", "shape", "layout"), SQUEEZED)
def test_squeeze(arguments, shape, layout):
    result = ndd.squeeze(t(1, 2, 1, 3, layout="FHCW"), **arguments)
    assert (result.ndim, result.layout, result.shape) == (len(shape), layout, shape)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"axes": [0, 0]}, {"axes": [1]}, {"axis_names": "Z"}, {"axis_names": "H"}, {"axis_names": "C", "axes": [0]}],
)
def test_squeeze_refuses(arguments):
    with ndd.EvalMode.sync_cpu, pytest.raises(RuntimeError, match="squeeze: "):
        ndd.squeeze(t(1, 2, 1, 3, layout="FHCW"), **arguments)


def test_on_gpu(emulated_gpu):
    batch = ndd.batch([np.arange(6, dtype=np.uint8), np.arange(12, dtype=np.uint8)]).gpu()
    result = ndd.reshape(batch, ndd.batch([[2, 3], [3, 4]]))
    assert result.device == ndd.Device("gpu:0")
    np.testing.assert_array_equal(np.asarray(result.cpu().select(1)), np.arange(12).reshape(3, 4))
    assert ndd.reinterpret(batch, dtype=ndd.int16).shape == [(3,), (6,)]
    assert ndd.squeeze(ndd.expand_dims(batch, axes=1), axes=1).shape == [(6,), (12,)]


def test_an_empty_list_of_axes_is_none():
    assert ndd.reshape(t(2, 3), rel_shape=[1, 1], src_dims=[]).shape == (2, 3)
    assert ndd.reshape(t(2, 3), shape=[3, 2], src_dims=[]).shape == (3, 2)


def _giving(array):
    return lambda: [array]


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(3))
def test_axes_of_the_source_count_as_in_pipelines(seed):
    """Generated calls, all of them in one pipeline of DALI: its dynamic mode loses `src_dims`."""
    dali, fn = pytest.importorskip("nvidia.dali"), pytest.importorskip("nvidia.dali.fn")
    rng = np.random.default_rng(seed)
    calls = []
    while len(calls) < 12:
        extents = rng.integers(1, 5, rng.integers(1, 5)).tolist()
        axes = rng.permutation(len(extents)).tolist()
        for _ in range(rng.integers(3)):
            axes.insert(int(rng.integers(len(axes) + 1)), -1)
        how = {"src_dims": axes}
        if rng.integers(2):
            rel = np.ones(len(axes))
            rel[rng.integers(len(axes))] = -1
            how["rel_shape"] = rel.tolist()
        if rng.integers(2):
            how["layout"] = "XYZWUV"[: len(axes)]
        calls.append((np.zeros(extents, np.uint8), how))

    @dali.pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline():
        return tuple(fn.reshape(fn.external_source(source=_giving(array)), **how) for array, how in calls)

    theirs = pipeline()
    theirs.build()
    for (array, how), expected in zip(calls, theirs.run(), strict=True):
        result = ndd.reshape(ndd.tensor(array), **how)
        assert (result.shape, result.layout or "") == (expected.at(0).shape, expected.layout()), (array.shape, how)
