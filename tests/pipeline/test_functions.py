"""The functions of `fn`: the rule that makes them, arithmetic, sources, Python functions."""

from __future__ import annotations

import contextlib
import inspect
import operator
import sys

import numpy as np
import pytest

import ndd
from ndd import fn, types
from ndd.plugin.pytorch import DALIGenericIterator


def run(body, batch_size=2, runs=1, **options):
    """The arrays of every output of a pipeline over `body`; of the only output, alone."""
    pipe = ndd.pipeline_def(body, batch_size=batch_size, num_threads=1, prefetch_queue_depth=1, **options)()
    result = [[[np.asarray(t) for t in o] for o in pipe.run()] for _ in range(runs)]
    return result[-1][0] if len(result[-1]) == 1 else result[-1]


IMAGES = [np.arange(24, dtype=np.uint8).reshape(2, 4, 3), np.arange(60, dtype=np.uint8).reshape(5, 4, 3)]


def images():
    return fn.external_source(source=[IMAGES], cycle=True, layout="HWC")


def names():
    """Every operator of ndd by its functional name."""
    rooms = {"": ndd}
    for room in ("decoders", "io.file", "noise", "random", "reductions", "segmentation", "transforms"):
        with contextlib.suppress(AttributeError):
            rooms[f"{room}."] = operator.attrgetter(room)(ndd)
    for path, room in rooms.items():
        for name, value in vars(room).items():
            if inspect.isfunction(value) and hasattr(value, "operator") and not name.startswith("_"):
                yield f"{path}{name}"


@pytest.mark.parametrize("path", sorted(names()))
def test_every_operator_has_its_function(path):
    result = fn
    for part in path.split("."):
        result = getattr(result, part)
    assert callable(result)
    assert result.__doc__


def test_every_reader_has_its_function():
    for name in ("file", *(n for n in dir(ndd.readers) if n == "Numpy")):
        assert callable(getattr(fn.readers, name.lower()))
    with pytest.raises(AttributeError, match=r"readers\.nothing"):
        fn.readers.nothing  # noqa: B018


def test_old_and_unknown_names():
    assert fn.file_reader.__doc__ == fn.readers.file.__doc__
    assert fn.coin_flip.__doc__ == fn.random.coin_flip.__doc__
    assert fn.transform_translation.__doc__ == fn.transforms.translation.__doc__
    assert fn.video_reader_resize.__doc__ == fn.readers.video_resize.__doc__
    assert fn.experimental.inflate.__doc__ == fn.decoders.inflate.__doc__
    assert fn.experimental.flip.__doc__ == fn.flip.__doc__
    assert fn.experimental.readers.file.__doc__ == fn.readers.file.__doc__
    with pytest.raises(AttributeError, match="frobnicate"):
        fn.frobnicate  # noqa: B018


def test_outside_of_a_pipeline():
    with pytest.raises(RuntimeError, match="pipeline_def"):
        fn.python_function(3, function=abs)
    with pytest.raises(RuntimeError, match="has no value"):
        fn.flip(3).get()


def test_operators_take_nodes_for_inputs_and_arguments():
    def body():
        x = images()
        return fn.flip(x, horizontal=fn.external_source(source=[[0, 1]], cycle=True), name="flip", preserve=True)

    first, second = run(body)
    assert first.tolist() == IMAGES[0].tolist()
    assert second.tolist() == IMAGES[1][:, ::-1].tolist()


def test_arithmetic():
    def body():
        x = fn.external_source(source=[[np.int32(7), np.int32(-3)]], cycle=True)
        f = fn.cast(x, dtype=types.FLOAT)
        whole = (
            x + 1, 1 + x, x - 1, 1 - x, x * 2, 2 * x, x // 2, 15 // x, x % 2, -x, +x, abs(x), x**2, 2**abs(x),
            x & 1, 1 & x, x | 8, 8 | x, x ^ 1, 1 ^ x, x == 7, x != 7, x < 0, x <= -3, x > 0, x >= 7,
        )  # fmt: skip
        return *whole, x / 2, 1 / f, f * x, x * types.Constant(3), types.Constant(3) * x

    result = [[v.item() for v in pair] for pair in run(body)]
    expected = []
    for x in (7, -3):
        expected.append([
            x + 1, 1 + x, x - 1, 1 - x, x * 2, 2 * x, int(x / 2), int(15 / x), int(np.fmod(x, 2)), -x, x, abs(x),
            x**2, 2**abs(x), x & 1, 1 & x, x | 8, 8 | x, x ^ 1, 1 ^ x, x == 7, x != 7, x < 0, x <= -3, x > 0, x >= 7,
            x / 2, 1 / x, float(x * x), 3 * x, 3 * x,
        ])  # fmt: skip
    for (ours_a, ours_b), a, b in zip(result, *expected, strict=True):
        assert (ours_a, ours_b) == (pytest.approx(a), pytest.approx(b))


def test_indexing_and_shapes():
    def body():
        x = images()
        size = x.shape()
        return x[0], x[1:, :2, 0], fn.shapes(x), size[0], x[size[0] - 1], x.shape(dtype=types.INT32)

    row, part, shapes, height, last, small = run(body)
    for i, image in enumerate(IMAGES):
        assert row[i].tolist() == image[0].tolist()
        assert part[i].tolist() == image[1:, :2, 0].tolist()
        assert shapes[i].tolist() == list(image.shape)
        assert height[i] == len(image)
        assert last[i].tolist() == image[-1].tolist()
        assert small[i].dtype == np.int32


@pytest.mark.parametrize("other", [None, "a", b"a"])
def test_what_a_node_cannot_be_added_to(other):
    for compute in (lambda x: x + other, lambda x: other < x, lambda x: x == other):
        body = ndd.pipeline_def(lambda compute=compute: compute(fn.constant(idata=[1], shape=[1])), batch_size=1)
        with pytest.raises(TypeError, match="A DataNode goes together with nodes, numbers and arrays, got"):
            body().run()


def test_a_node_says_what_it_is_not():
    def as_condition():
        x = images()
        return x if x == 3 else -x

    def unpacked():
        a, b = images()
        return a, b

    with pytest.raises(TypeError, match="truth value"):
        run(as_condition)
    with pytest.raises(TypeError, match="one output"):
        run(unpacked)


def test_random_operators_get_the_batch_size():
    def body():
        x = fn.external_source(source=[[1, 2, 3], [4]])
        return x, fn.random.uniform(range=[0.0, 1.0]), fn.random.coin_flip()

    pipe = ndd.pipeline_def(body, batch_size=5)()
    assert [[len(o) for o in pipe.run()] for _ in range(2)] == [[3, 3, 3], [1, 1, 1]]


def test_a_random_operator_before_the_source_of_a_short_batch():
    def body():
        noise = fn.random.uniform(range=[0.0, 1.0])
        return noise, fn.external_source(source=[[1, 2], [4]])

    pipe = ndd.pipeline_def(body, batch_size=5)()
    assert [[len(o) for o in pipe.run()] for _ in range(2)] == [[2, 2], [1, 1]]


def test_seeds():
    def body():
        return fn.random.uniform(range=[0.0, 1.0]), fn.random.uniform(range=[0.0, 1.0]), fn.random.uniform(seed=5)

    def draw(**options):
        pipe = ndd.pipeline_def(body, batch_size=3, **options)()
        return [[o.as_array().tolist() for o in pipe.run()] for _ in range(2)]

    first = draw(seed=1)
    assert first == draw(seed=1)
    assert first != draw(seed=2)
    assert first[0][0] != first[1][0] != first[0][1]
    assert draw(seed=2)[0][2] == first[0][2]
    assert draw() != draw()


# External sources


def collected(source, batch_size=2, runs=2, **options):
    def body():
        return fn.external_source(source, **options)

    pipe = ndd.pipeline_def(body, batch_size=batch_size)()
    return [[[np.asarray(t).tolist() for t in o] for o in pipe.run()] for _ in range(runs)]


def test_forms_of_sources():
    expected = [[[0, 1]], [[2, 3]]]
    rows = [[0, 1], [2, 3]]

    def generator():
        yield from rows

    numbers = iter(rows)
    assert collected(rows) == expected
    assert collected(generator) == expected
    assert collected(generator()) == expected
    assert collected(lambda: next(numbers)) == expected
    assert collected(lambda i: rows[i]) == expected
    assert collected(lambda info: rows[info.iteration], batch_info=True) == expected
    assert collected(lambda info: info.idx_in_epoch, batch=False) == expected
    assert collected([0, 1, 2, 3], batch=False) == expected
    assert collected(np.arange(4).reshape(2, 2)) == expected
    assert collected([ndd.batch(r) for r in rows]) == expected
    assert collected(lambda i=5: rows[i]) == expected  # counted with its default, as in DALI


def test_a_callable_object_and_a_method():
    class Source:
        def __call__(self, i):
            return [i, i + 1]

        def method(self, i):
            return [2 * i]

    assert collected(Source()) == [[[0, 1]], [[1, 2]]]
    assert collected(Source().method) == [[[0]], [[2]]]


def test_sample_infos():
    def sample(info):
        assert isinstance(info, types.SampleInfo)
        return np.array([info.idx_in_epoch, info.idx_in_batch, info.iteration, info.epoch_idx])

    assert collected(sample, batch=False) == [
        [[[0, 0, 0, 0], [1, 1, 0, 0]]],
        [[[2, 0, 1, 0], [3, 1, 1, 0]]],
    ]


def test_several_outputs_of_a_source():
    def source(i):
        return [i, i + 1], [[i], [i]]

    def samples(info):
        return info.idx_in_epoch, np.array([info.idx_in_batch])

    def body(source, **options):
        def inner():
            a, b = fn.external_source(source=source, num_outputs=2, **options)
            return b, a

        pipe = ndd.pipeline_def(inner, batch_size=2)()
        return [[[np.asarray(t).tolist() for t in o] for o in pipe.run()] for _ in range(2)]

    assert body(source) == [[[[0], [0]], [0, 1]], [[[1], [1]], [1, 2]]]
    assert body(samples, batch=False) == [[[[0], [1]], [0, 1]], [[[0], [1]], [2, 3]]]
    with pytest.raises(RuntimeError, match="2 outputs"):
        body(lambda i: ([1, 2],) * 3)


def test_cycles():
    assert collected([[1], [2]], runs=5, cycle=True) == [[[1]], [[2]], [[1]], [[2]], [[1]]]
    assert collected([1, 2, 3], runs=3, cycle="quiet", batch=False) == [[[1, 2]], [[3, 1]], [[2, 3]]]
    for cycle in (None, False, "no", "raise"):
        with pytest.raises(StopIteration):
            collected([[1], [2]], runs=3, cycle=cycle)
    with pytest.raises(ValueError, match="cycle"):
        collected([[1]], cycle="sometimes")
    with pytest.raises(ValueError, match="cycle"):
        collected(lambda: [1], cycle="raise")
    with pytest.raises(TypeError, match="begin again"):
        collected((batch for batch in [[1]]), cycle="raise")


def test_options_of_sources():
    def body():
        return fn.external_source(
            source=[np.zeros((2, 3, 3), np.float32)],
            layout="HW",
            dtype=types.FLOAT,
            ndim=2,
            no_copy=True,
            blocking=True,
            parallel=False,
            use_copy_kernel=False,
            cuda_stream=None,
            repeat_last=False,
            device="cpu",
        )

    (out,) = ndd.pipeline_def(body, batch_size=2)().run()
    assert (out.layout(), out.dtype, out.shape()) == ("HW", types.FLOAT, [(3, 3)] * 2)
    with pytest.raises(RuntimeError, match="type"):
        collected([[1, 2]], dtype=types.FLOAT)
    with pytest.raises(RuntimeError, match="dimensions"):
        collected([[1, 2]], ndim=2)


def test_repeating_what_was_fed_last():
    def body():
        return fn.external_source(name="x", repeat_last=True)

    pipe = ndd.pipeline_def(body, batch_size=2, prefetch_queue_depth=1)()
    pipe.feed_input("x", [1, 2])
    assert [pipe.run()[0].as_array().tolist() for _ in range(3)] == [[1, 2]] * 3


def test_batches_of_one_run_agree():
    def body():
        return fn.external_source(source=[[1, 2]]), fn.external_source(source=[[1]])

    with pytest.raises(RuntimeError, match="agree"):
        ndd.pipeline_def(body, batch_size=2)().run()


# Python functions


def test_python_functions():
    def body():
        x = images()
        mean = fn.python_function(x, function=lambda a: a.mean(axis=(0, 1)).astype(np.float32))
        low, high = fn.python_function(
            x, function=lambda a: (a.min(keepdims=True), a.max(keepdims=True)), num_outputs=2
        )
        count = fn.python_function(x, function=lambda batch: [np.int32(len(batch))] * len(batch), batch_processing=True)
        return mean, low, high, count

    mean, low, high, count = run(body)
    for i, image in enumerate(IMAGES):
        assert mean[i].tolist() == image.mean(axis=(0, 1)).astype(np.float32).tolist()
        assert (low[i].item(), high[i].item(), count[i].item()) == (image.min(), image.max(), 2)


def test_what_a_python_function_raises():
    """Its own error, and on it goes. The end of what it iterates over is not that of the data."""
    calls = []

    def failing(kind):
        def failing(a):
            calls.append(1)
            if len(calls) == 3:
                raise kind("mine")
            return a.sum()

        return failing

    def pipeline(kind):
        calls.clear()
        body = ndd.pipeline_def(lambda: fn.python_function(images(), function=failing(kind)))
        return body(batch_size=2, num_threads=1, prefetch_queue_depth=1)

    pipe = pipeline(KeyError)
    pipe.run()
    with pytest.raises(KeyError, match=r"^'mine'$"):
        pipe.run()
    assert len(pipe.run()[0]) == 2
    batches = DALIGenericIterator(pipeline(StopIteration), ["x"], size=8)
    with pytest.raises(RuntimeError, match="failing raised StopIteration"):
        list(batches)


def test_a_python_function_for_its_effect():
    seen = []

    def body():
        x = images()
        fn.python_function(x, function=lambda a: seen.append(a.shape), num_outputs=0)
        return x

    run(body)
    assert seen == [i.shape for i in IMAGES]


def test_a_python_function_without_inputs():
    def body():
        return fn.python_function(function=lambda: np.int32(4))

    assert [v.item() for v in run(body, batch_size=3)] == [4, 4, 4]


def test_types():
    for name in (
        "UINT8",
        "UINT16",
        "UINT32",
        "UINT64",
        "INT8",
        "INT16",
        "INT32",
        "INT64",
        "FLOAT16",
        "FLOAT",
        "FLOAT64",
        "BOOL",
    ):
        kind = getattr(types, name)
        assert types.to_dali_type(types.to_numpy_type(kind)) == kind
    assert types.to_dali_type("torch.float32") == types.FLOAT
    assert (types.NHWC, types.NCHW) == ("HWC", "CHW")
    with pytest.raises(TypeError):
        types.to_dali_type("datetime64[s]")


@pytest.mark.oracle
def test_types_are_dalis():
    theirs = pytest.importorskip("nvidia.dali.types")
    for name in dir(types):
        ours = getattr(types, name)
        if name.isupper() and hasattr(theirs, name) and hasattr(getattr(theirs, name), "value"):
            assert int(ours) == int(getattr(theirs, name)), name
        if isinstance(ours, str) and not name.startswith("_"):
            assert ours == getattr(theirs, name), name
    for name in ("UINT8", "INT16", "FLOAT", "FLOAT16", "BOOL", "FLOAT64"):
        assert types.to_numpy_type(getattr(types, name)) == theirs.to_numpy_type(getattr(theirs, name))


@pytest.mark.oracle
def test_mathematics_on_nodes_is_dalis():
    """`from nvidia.dali import math` in a pipeline becomes `from ndd import math`."""
    theirs = pytest.importorskip("nvidia.dali")
    math, fn, pipeline_def = pytest.importorskip("nvidia.dali.math"), theirs.fn, theirs.pipeline_def
    result = []
    for kind, functions, maths in ((pipeline_def, fn, math), (ndd.pipeline.pipeline_def, ndd.fn, ndd.math)):

        @kind(batch_size=2, num_threads=1, device_id=None)
        def body(functions=functions, maths=maths):
            x = functions.external_source(lambda: [np.float32([1, 4]), np.float32([9])], batch=True)
            return maths.sqrt(x), maths.clamp(x, 2, 5), maths.atan2(1.0, x), maths.max(x, maths.min(x, 3.0))

        pipe = body()
        pipe.build()
        result.append([[np.array(out.at(i)) for i in range(2)] for out in pipe.run()])
    for expected, got in zip(*result, strict=True):
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_mathematics_on_recorded_nodes():
    pipe = ndd.pipeline.Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(ndd.math.sqrt(ndd.fn.external_source(lambda: [np.float32([4]), np.float32([9])], batch=True)))
    pipe.build()
    (out,) = pipe.run()
    assert [np.asarray(out.at(i)).tolist() for i in range(2)] == [[2.0], [3.0]]


def test_an_error_of_a_recorded_step_names_the_line_that_recorded_it():
    pipe = ndd.Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        x = fn.external_source(lambda: [np.uint8([[1, 2]])] * 2, layout="HW")
        pipe.set_outputs(x[5])
    line = sys._getframe().f_lineno - 1
    with pytest.raises(RuntimeError, match=rf"called at .*test_functions\.py:{line}: Index 5 is out of range"):
        pipe.run()


@pytest.mark.parametrize(
    ("source", "options", "error", "said"),
    [
        (lambda i, j=1: [i], {}, TypeError, "no argument or one.*got i, j=1"),
        (lambda *all: [0], {}, TypeError, r"no argument or one.*got \*all"),
        ([[1]], {"cycle": 1}, ValueError, "cycle must be one of"),
        (lambda: [1], {"num_outputs": "a"}, TypeError, "num_outputs: expected an integer .* got 'a'"),
        (lambda: [1], {"num_outputs": 0}, ValueError, "num_outputs: expected an integer of at least 1"),
    ],
)
def test_sources_that_cannot_be_asked(source, options, error, said):
    with pytest.raises(error, match=said):
        ndd.pipeline_def(lambda: fn.external_source(source, **options))(batch_size=1).run()
