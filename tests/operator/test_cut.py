"""Elementwise kernels over pieces of samples, and results that are written with non-temporal stores."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from compare import assert_same
from number_samples import NUMPY, borders

import ndd
from ndd._compiled import sample_loops
from ndd._compiled.background import background
from ndd._compiled.jit import kernel
from ndd._operator import Plan, on_cpu, partition
from ndd._tensor.convert import convert_array

COUNT = 9


@pytest.fixture(params=[True, False], ids=["nontemporal", "cached"])
def small(request, monkeypatch):
    """Samples of some thousand elements are cut into many pieces."""
    for name, value in {
        "_FEWEST": 1,
        "_ELEMENTS": 4000,
        "_MOST": 6000,
        "_FAR": 1 if request.param else 1 << 60,
    }.items():
        monkeypatch.setattr(partition, name, value)


@pytest.fixture(params=[True, False], ids=["fallback", "compiled"])
def compiled(request, monkeypatch):
    monkeypatch.setattr(background, "allowed", False)
    if request.param:
        monkeypatch.setattr(
            partition, "loop_over_samples", lambda item: functools.partial(sample_loops._by_fallback, item)
        )


@pytest.fixture
def in_pieces_alone(monkeypatch):
    """No sample is left to be done alone, or in another way."""
    monkeypatch.setattr(on_cpu._Bound, "_one_by_one", None)
    monkeypatch.setattr(on_cpu, "_all_done", None)


def lying(layout, kind):
    """Samples, and a batch of them."""
    rng = np.random.default_rng(4)
    sizes = [40] * COUNT if layout == "whole" else [0, 1, 120, 1, 900, 37, 2, 300, 80]
    arrays = [rng.integers(0, 256, (size, 33)).astype(kind) for size in sizes]
    if layout == "whole":
        return arrays, ndd.as_batch(np.stack(arrays))
    if layout == "flat":
        return arrays, ndd.cast(ndd.batch([a.astype(np.float64) for a in arrays]), dtype=np.dtype(kind))
    if layout == "strided":
        arrays = [a.repeat(2, 1)[:, ::2] for a in arrays]
    if layout == "odd places":
        arrays = [np.frombuffer(b"-" + a.tobytes(), np.uint8)[1:].view(kind).reshape(a.shape) for a in arrays]
    return arrays, ndd.as_batch([ndd.as_tensor(a) for a in arrays])


LAYOUTS = ["apart", "flat", "whole", "strided", "odd places"]


@kernel
def scale(x, out, row, shift):
    for i in range(out.size):
        out[i] = np.float32(x[i]) * row[1] + shift


@kernel
def difference(x, y, out, factor):
    for i in range(out.size):
        out[i] = (x[i] - y[i]) * factor


def of_one(item):
    """An operator `row[1] x + shift`."""

    @ndd.operator(register=False, cut="elements")
    def scaled(x, /, *, shift: float = 3.0):
        """See above."""
        return ndd.like(x, dtype=ndd.float32)

    @scaled.plan
    def _(x, *, shift):
        rows = np.arange(2 * x.n, dtype=np.float32).reshape(x.n, 2)
        return Plan(x.shapes, {"row": rows}, {"shift": np.float32(shift)})

    scaled.cpu(item)
    return scaled


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.drawn(1)
def test_pieces_have_the_numbers_of_their_samples(layout, kind, small, compiled, in_pieces_alone):
    own = kernel(scale.function)
    own.fallback()
    arrays, batch = lying(layout, kind)
    with ndd.EvalContext(num_threads=3):
        result = of_one(own)(batch, shift=0.5)
        for k, (array, item) in enumerate(zip(arrays, result.tensors, strict=True)):
            wanted = array.astype(np.float32) * np.float32(2 * k + 1) + np.float32(0.5)
            np.testing.assert_array_equal(np.asarray(item), wanted)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.drawn(2)
def test_two_operands(layout, small, compiled):
    own = kernel(difference.function)
    own.fallback()
    left, batch = lying(layout, np.float32)
    right = [a + k for k, a in enumerate(left)]

    @ndd.operator(register=False, cut="elements")
    def differ(x, y, /):
        """9 (x - y)."""
        return ndd.like(x)

    differ.plan(lambda x, y: Plan(x.shapes, shared={"factor": np.float32(9)}))
    differ.cpu(own)
    with ndd.EvalContext(num_threads=3):
        result = differ(batch, ndd.batch(right))
        for k, item in enumerate(result.tensors):
            np.testing.assert_array_equal(np.asarray(item), np.full_like(left[k], -9 * k))


@pytest.mark.parametrize(
    "pair",
    ["u8 f32", "f32 u8", "f16 u8", "f32 bfloat16"]
    + [pytest.param(pair, marks=pytest.mark.long) for pair in ("f32 f16", "f64 f32", "i16 u8", "f16 f32", "bool i32")],
)
def test_casts(pair, small, monkeypatch):
    """Kernels, and conversions that have none."""
    monkeypatch.setattr(background, "allowed", False)
    source, target = pair.split()
    arrays = [np.resize(borders(source), size) for size in (0, 5000, 3, 20000)]
    with ndd.EvalContext(num_threads=3):
        result = ndd.cast(ndd.batch(arrays), dtype=getattr(ndd, NUMPY.get(target, target)))
        for item, array in zip(result.tensors, arrays, strict=True):
            bits = item._value().arrays()[0] if target == "bfloat16" else np.asarray(item)
            assert_same(bits, convert_array(array, source, target), 0)


ARITHMETIC = {
    "u8 * 0.5": ("u8", lambda x, n: x * (0.5 if n is None else n.float32(0.5))),
    "3 - u8": ("u8", lambda x, n: 3 - x if n is None else 3 - x.astype(n.int32)),
    "f32 / f32": ("f32", lambda x, n: x / x),
    "f64 + 1": ("f64", lambda x, n: x + 1),
    "i32 * i32": ("i32", lambda x, n: x * x),
    "bool + 2": ("bool", lambda x, n: x + (2 if n is None else n.int32(2))),
    "sqrt u8": ("u8", lambda x, n: ndd.math.sqrt(x) if n is None else n.sqrt(x.astype(n.float32))),
    "floor": ("f32", lambda x, n: (n or ndd.math).floor(x)),
    "fabs": ("f64", lambda x, n: (n or ndd.math).fabs(x)),
    "-x": ("f32", lambda x, n: -x),
}
_LIKE_OTHERS = ("3 - u8", "f64 + 1", "bool + 2", "floor")  # a kernel is compiled for each


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long if name in _LIKE_OTHERS else []) for name in ARITHMETIC],
)
@pytest.mark.drawn(2)
def test_arithmetic(name, small, compiled):
    source, compute = ARITHMETIC[name]
    arrays = [np.resize(borders(source), size) for size in (0, 5000, 3, 20000)]
    with ndd.EvalContext(num_threads=3), np.errstate(all="ignore"):
        result = compute(ndd.batch(arrays), None)
        for item, array in zip(result.tensors, arrays, strict=True):
            assert_same(np.asarray(item), compute(array, np), 0)


def test_a_batch_beside_one_tensor_and_stretched_samples(small, compiled):
    arrays = [np.full((size, 1), 1.0 + size, np.float32) for size in (0, 3000, 2)]
    row = np.arange(4, dtype=np.float32)
    with ndd.EvalContext(num_threads=3):
        result = ndd.batch(arrays) + ndd.tensor(row)
        for item, array in zip(result.tensors, arrays, strict=True):
            np.testing.assert_array_equal(np.asarray(item), array + row)


ONE_LOOP = {
    "cast": lambda x: ndd.cast(x, dtype=ndd.float32),
    "cast_like": lambda x: ndd.cast_like(x, ndd.tensor(1.0)),
    "multiply": lambda x: x * 0.5,
    "sqrt": ndd.math.sqrt,
    "lookup_table": lambda x: ndd.lookup_table(x, keys=[0, 1], values=[3, 4]),
    "brightness": lambda x: ndd.brightness(x, brightness=1.2),
    "contrast of each": lambda x: ndd.contrast(x, contrast=ndd.batch([0.1 * k for k in range(x.batch_size)])),
    "equalize": ndd.equalize,
}


@pytest.mark.parametrize("name", ONE_LOOP)
def test_a_thread_is_asked_once(name, tasks):
    """Not for each sample."""
    rng = np.random.default_rng(5)
    arrays = [rng.integers(0, 256, (100, 150 + k, 3), np.uint8) for k in range(20)]
    with ndd.EvalContext(num_threads=3):
        result = ONE_LOOP[name](ndd.batch(arrays, layout="HWC")).evaluate()
        assert tasks == [3]
        for item, array in zip(result.tensors[:3], arrays[:3], strict=True):
            if "each" not in name:
                assert_same(
                    np.asarray(item), np.asarray(ONE_LOOP[name](ndd.batch([array], layout="HWC")).tensors[0]), 0
                )


@pytest.mark.parametrize("name", ["sum", "mean_square", "max"])
def test_samples_that_lie_together_and_become_few_numbers_are_shared_by_threads(name, monkeypatch):
    """A reduction's results are few, its work is not."""
    counts = []
    parallel_for = partition.parallel_for

    def counted(context, loop, fields, count, *others):
        counts.append(count)
        return parallel_for(context, loop, fields, count, *others)

    monkeypatch.setattr(partition, "parallel_for", counted)
    images = np.random.default_rng(6).integers(0, 256, (64, 40, 50, 3), np.uint8)
    reduced = {"sum": images.astype(np.int64).sum((1, 2)), "max": images.max((1, 2))}
    reduced["mean_square"] = np.square(images.astype(np.float64)).mean((1, 2))
    with ndd.EvalContext(num_threads=3):
        result = getattr(ndd.reductions, name)(ndd.as_batch(images), axes=[0, 1])
        np.testing.assert_allclose(np.asarray(result.torch()), reduced[name], rtol=1e-6)
    assert min(counts) >= 8


@pytest.mark.parametrize("name", ["sum", "mean", "mean_square", "max"])
def test_the_largest_pieces_are_begun_first(name, monkeypatch):
    """One long piece that is left to the end keeps one thread busy while the others wait."""
    orders = []
    parallel_for = partition.parallel_for

    def recorded(context, loop, fields, *others):
        order, kernel_fields = fields
        extents = [field[1] for field in kernel_fields if len(field) == 3]
        orders.append(extents[0].prod(axis=1)[order])
        return parallel_for(context, loop, fields, *others)

    monkeypatch.setattr(partition, "parallel_for", recorded)
    rng = np.random.default_rng(6)
    images = [rng.integers(0, 256, (size, 500, 3), np.uint8) for size in (40, 60, 20, 500, 30)]
    with ndd.EvalContext(num_threads=3):
        batch = ndd.batch([image[:, ::2] for image in images], layout="HWC")  # they lie apart
        getattr(ndd.reductions, name)(batch, axes=[0, 1]).evaluate()
    work = orders[-1]
    assert len(work) >= len(images)
    assert len(set(work.tolist())) > 1
    assert (np.diff(work) <= 0).all(), work
