"""`ndd.tensor_resize` beside DALI, and on the emulated GPU."""

import numpy as np
import pytest
from cases import each_of
from compare import arrays_of, assert_same_values, outcome
from resize_calls import given
from selection import drawn_types, repeated

import ndd

REGISTRY_CASES = {
    "tensor_resize": each_of(
        {"sizes": [12, 15], "axes": [0, 1]},
        {"scales": [1.5, 0.5], "axes": [0, 1]},
        layouts=("HWC",),
        dtypes=("uint8", "int16", "uint16", "float32"),
        # Halves are frequent here; DALI rounds those of the last elements of a row away from zero, others to even.
        off_by_one=0.08,
    ),
}


def random_call(rng):
    """(array, arguments)"""
    ndim = int(rng.integers(1, 5))
    kind = rng.choice(drawn_types(("uint8", "int16", "float32"), 2, "tensor_resize"))
    array = rng.integers(0, 256, rng.integers(1, 12, ndim)).astype(kind)
    count = int(rng.integers(1, min(ndim, 3) + 1))
    first = int(rng.integers(0, ndim - count + 1))
    axes = rng.permutation(np.arange(first, first + count)).tolist()
    arguments = {"axes": axes, "max_size": 25.0}

    def numbers(low, high):
        return [float(v) for v in rng.uniform(low, high, count).round(2) * rng.choice([1, 1, 1, -1, 0], count)]

    arguments |= {"sizes": numbers(0.4, 14)} if rng.random() < 0.5 else {"scales": numbers(0.2, 2.5)}
    if rng.random() < 0.3:
        arguments["size_rounding"] = str(rng.choice(["truncate", "ceil"]))
    if rng.random() < 0.4:
        arguments["mode"] = str(rng.choice(["default", "stretch", "not_larger", "not_smaller"]))
    if rng.random() < 0.3:
        arguments["roi_start"] = [float(v) for v in rng.uniform(-0.1, 0.4, count).round(2)]
        arguments["roi_end"] = [float(v) for v in rng.uniform(0.6, 1.1, count).round(2)]
        arguments["roi_relative"] = True
        # A region, or the whole, and an alignment are not combined: DALI then leaves some axes as they are.
    elif rng.random() < 0.3 and count == ndim:
        arguments["alignment"] = [float(v) for v in rng.uniform(0, 1, count).round(2)]
    if rng.random() < 0.6:
        arguments["interp_type"] = int(rng.choice([1, 2, 3, 4]))
    return array, arguments


def called(module, array, arguments):
    return outcome(module, lambda m: m.tensor_resize(m.tensor(array), **given(m, arguments)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.drawn(1)
def test_random_arguments_as_dali(dali, seed):
    rng = np.random.default_rng(seed)
    good = 0
    trials = repeated(60, 20)
    for _ in trials:
        array, arguments = random_call(rng)
        ours, theirs = (called(m, array, arguments) for m in (ndd, dali))
        if "scales" in arguments and arguments.get("mode", "default").startswith("not"):
            assert type(ours) is type(theirs) is RuntimeError
            continue
        assert not isinstance(ours, Exception), (array.shape, arguments, ours)
        if isinstance(theirs, Exception):
            assert "resize more than 3" in str(theirs) or "kernel instance" in str(theirs)
            continue
        result, expected = arrays_of(ours), arrays_of(theirs)
        assert result[0].shape == expected[0].shape, (array.shape, arguments)
        if any(array.shape[a] == result[0].shape[a] for a in arguments["axes"]):
            continue  # there DALI resamples an axis or not, by rules of its own
        good += 1
        try:
            assert_same_values(result, expected, relative=1e-4, off_by_one=0.05 + 24 / max(result[0].size, 1))
        except AssertionError as error:
            raise AssertionError(f"{array.shape} {array.dtype} {arguments}: {error}") from None
    assert good * 60 > 20 * len(trials)


@pytest.mark.long
def test_one_axis_is_resized_as_by_dali_to_the_last_bit(dali):
    rng = np.random.default_rng(0)
    for seed in range(60):
        ndim = 1 + seed % 4
        array = rng.integers(0, 256, rng.integers(2, 20, ndim)).astype(("uint8", "uint16", "float32")[seed % 3])
        axis = int(rng.integers(ndim))
        arguments = {"axes": [axis], "scales": [round(float(rng.uniform(0.2, 2.5)) * rng.choice([1, 1, -1]), 2)]}
        arguments |= {"interp_type": int(rng.integers(6))} if seed % 2 else {}
        if seed % 5 == 0:
            arguments |= {"roi_start": [0.2], "roi_end": [0.9], "roi_relative": True}
        ours, theirs = (called(m, array, arguments) for m in (ndd, dali))
        if ours.shape[axis] == array.shape[axis]:
            continue  # there DALI resamples an axis or not, by rules of its own
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs), err_msg=f"{array.shape} {arguments}")


def test_axes_in_any_order_and_from_the_end():
    array = np.random.default_rng(0).random((6, 8, 10), np.float32)
    item = ndd.tensor_resize(array, sizes=[3, 4], axes=[0, 2])
    np.testing.assert_array_equal(np.asarray(item), np.asarray(ndd.tensor_resize(array, sizes=[4, 3], axes=[-1, 0])))
    named = ndd.tensor_resize(ndd.tensor(array, layout="ABC"), sizes=[4, 3], axis_names="CA")
    np.testing.assert_array_equal(np.asarray(item), np.asarray(named))
    assert named.layout == "ABC"


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({}, RuntimeError),
        ({"sizes": [1, 1, 1], "scales": [1, 1, 1]}, RuntimeError),
        ({"sizes": [1, 2]}, RuntimeError),
        ({"sizes": [3], "axes": [3]}, IndexError),
        ({"sizes": [3, 3], "axes": [1, 1]}, ValueError),
        ({"sizes": [3], "axis_names": "X"}, RuntimeError),
        ({"sizes": [3], "axis_names": "H", "axes": [0]}, RuntimeError),
        ({"sizes": 3, "size_rounding": "floor"}, RuntimeError),
        ({"sizes": 3, "alignment": [0, 1]}, RuntimeError),
    ],
)
def test_errors_as_dali(dali, arguments, kind):
    array = np.zeros((4, 5, 3), np.uint8)
    for module in (ndd, dali):
        result = outcome(module, lambda m: m.tensor_resize(m.tensor(array, layout="HWC"), **arguments))
        assert type(result) is kind, (module.__name__, result)


@pytest.mark.parametrize("axes", [[0], [1], [2], [0, 1], [1, 2], [0, 2]])
def test_strided_memory(axes):
    array = np.random.default_rng(5).random((12, 14, 6), np.float32)
    for view in (array[:, ::2, :3], array[::2], array.transpose(2, 0, 1), array[..., :1]):
        result, expected = (
            ndd.tensor_resize(ndd.as_tensor(a), scales=[0.7], axes=axes) for a in (view, np.ascontiguousarray(view))
        )
        np.testing.assert_array_equal(np.asarray(result), np.asarray(expected))


def test_more_axes_than_dali():
    array = np.random.default_rng(1).random((4, 5, 6, 7), np.float32)
    result = np.asarray(ndd.tensor_resize(array, sizes=[2, 3, 9, 4]))
    step = array
    for axis, size in enumerate((2, 3, 9, 4)):
        step = np.asarray(ndd.tensor_resize(step, sizes=[size], axes=[axis]))
    np.testing.assert_allclose(result, step, rtol=1e-5)


@pytest.mark.parametrize("axes", [[0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]])
@pytest.mark.drawn(1)
def test_gpu_as_cpu(emulated_gpu, axes):
    samples = [np.random.default_rng(2).random(s, np.float32) for s in ((6, 9, 8), (5, 8, 11))]
    batch = ndd.batch(samples)
    scales = [0.6, 1.7, 0.4][: len(axes)]
    on_cpu, on_gpu = (ndd.tensor_resize(b, scales=scales, axes=axes) for b in (batch, batch.gpu()))
    assert_same_values(arrays_of(on_gpu), arrays_of(on_cpu))
    assert 1 <= len(emulated_gpu.launches) <= len(axes)


@pytest.mark.parametrize("name", ["NN", "LINEAR", "CUBIC", "LANCZOS3", "TRIANGULAR", "GAUSSIAN"])
def test_axes_that_stay_as_they_are(dali, name):
    """A Gaussian blurs some of these too: those that DALI filters."""
    dali_types = pytest.importorskip("nvidia.dali.types")
    x = np.random.default_rng(0).random((30, 20, 3)).astype(np.float32)
    kind = f"INTERP_{name}"
    for sizes in ([12, 31, 3], [30, 31, 3], [30, 20, 3], [12, 20, 3], [30, 20, 7]):
        # An operator of its own: DALI keeps one for each set of constants, and it fails after another number of axes.
        kept = {"interp_type": getattr(dali_types, kind), "minibatch_size": 31}
        expected = dali.tensor_resize(dali.tensor(x), sizes=sizes, **kept)
        result = ndd.tensor_resize(ndd.tensor(x), sizes=sizes, interp_type=getattr(ndd.types, kind))
        np.testing.assert_allclose(np.asarray(result), np.asarray(expected), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", [1, 5])
@pytest.mark.drawn(1)
def test_numbers_in_a_row_on_the_gpu(emulated_gpu, kind):
    batch = ndd.batch([np.random.default_rng(n).random(n, np.float32) for n in (9, 14)])
    arguments = {"scales": [1.7], "interp_type": ndd.types.DALIInterpType(kind)}
    on_cpu, on_gpu = (ndd.tensor_resize(b, **arguments) for b in (batch, batch.gpu()))
    assert_same_values(arrays_of(on_gpu), arrays_of(on_cpu))
    assert len(emulated_gpu.launches) == 1
