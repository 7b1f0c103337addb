"""How pipelines are defined, and what they are told then."""

from __future__ import annotations

import numpy as np
import pytest
from pipeline.counting import counter, values

import ndd
from ndd import fn, types


def test_both_forms_of_the_decorator():
    @ndd.pipeline_def
    def bare(factor, offset=0):
        """Says what it does."""
        return fn.external_source(source=[[1, 2]]) * factor + offset

    assert bare.__name__ == "bare"
    assert bare.__doc__ == "Says what it does."
    pipe = bare(3, offset=1, batch_size=2, num_threads=1, device_id=None)
    assert values(pipe.run()[0]) == [4, 7]
    assert counter(batch_size=5).max_batch_size == 5
    assert counter(10).max_batch_size == 2


def test_imports_of_pipeline_mode_code():
    import ndd.fn as fn_module
    import ndd.types as types_module
    from ndd.pipeline import Pipeline, fn as same, pipeline_def

    assert fn_module.readers.file
    assert same.readers.file
    assert (Pipeline, pipeline_def) == (ndd.Pipeline, ndd.pipeline_def)
    assert types_module.FLOAT == 9
    assert "external_source" in dir(fn_module)
    assert "flip" in dir(fn_module)


def test_batch_size_is_needed():
    @ndd.pipeline_def
    def nothing():
        return types.Constant(1)

    for attempt in (lambda: nothing().build(), lambda: nothing().run()):
        with pytest.raises(ValueError, match="batch_size"):
            attempt()


def test_build_is_optional_and_may_be_repeated():
    pipe = counter()
    pipe.build()
    pipe.build()
    assert values(pipe.run()[0]) == [0, 1]
    pipe.build()
    assert values(pipe.run()[0]) == [2, 3]


@pytest.mark.parametrize("depth", [1, 2])
def test_a_block_records_steps(depth):
    pipe = ndd.Pipeline(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=depth, seed=3)
    with pipe:
        x = fn.external_source(source=[[1, 2], [3, 4], [5, 6]], cycle=True)
        noise = fn.random.uniform(range=[0.0, 1.0])
        pipe.set_outputs(x * 2, x + 1, noise)
    runs = [pipe.run() for _ in range(4)]
    assert [values(r[0]) for r in runs] == [[2, 4], [6, 8], [10, 12], [2, 4]]
    assert [values(r[1]) for r in runs] == [[2, 3], [4, 5], [6, 7], [2, 3]]
    assert len({str(values(r[2])) for r in runs}) == 4


def test_a_subclass_defines_its_graph():
    class Doubled(ndd.Pipeline):
        def __init__(self):
            super().__init__(2, 1, None)

        def define_graph(self):
            return fn.external_source(source=[[1, 2]], cycle=True) * 2

    assert values(Doubled().run()[0]) == [2, 4]
    with pytest.raises(NotImplementedError, match="define_graph"):
        ndd.Pipeline(batch_size=1).run()


def test_constants_become_batches():
    @ndd.pipeline_def(batch_size=2)
    def body():
        column = types.Constant([1, 2, 3], dtype=types.FLOAT, shape=(3, 1), layout="AB")
        return column, np.ones((2, 2)), 1, 2.5, True, [1, 2]

    outputs = body().run()
    assert [o.dtype for o in outputs] == [
        types.FLOAT, types.FLOAT, types.INT32, types.FLOAT, types.BOOL, types.INT32
    ]  # fmt: skip
    assert [o.shape() for o in outputs] == [[(3, 1)] * 2, [(2, 2)] * 2, [()] * 2, [()] * 2, [()] * 2, [(2,)] * 2]
    assert outputs[0].layout() == "AB"


@pytest.mark.oracle
def test_constants_are_dalis():
    dali = pytest.importorskip("nvidia.dali")
    import nvidia.dali.types as their_types

    result = []
    for library, kinds in ((ndd, types), (dali, their_types)):

        @library.pipeline_def(batch_size=2, num_threads=1, device_id=None)
        def body(kinds=kinds):
            return kinds.Constant([1, 2, 3], dtype=kinds.FLOAT, shape=(3, 1), layout="AB"), 1, 2.5, True, np.ones(2)

        outputs = body().run()
        result.append([(int(o.dtype), o.shape(), o.layout(), np.asarray(o.as_tensor()).tolist()) for o in outputs])
    assert result[0] == result[1]


def test_outputs_may_be_a_dict():
    @ndd.pipeline_def(batch_size=2)
    def body():
        x = fn.external_source(source=[[1, 2]])
        return {"x": x, "twice": x * 2}

    pipe = body()
    _, twice = pipe.run()
    assert values(twice) == [2, 4]
    assert pipe.output_names == ["x", "twice"]


def test_outputs_are_checked():
    @ndd.pipeline_def(batch_size=2, output_dtype=types.FLOAT)
    def wrong_type():
        return fn.external_source(source=[[1, 2]])

    with pytest.raises(RuntimeError, match="type"):
        wrong_type().run()
    good = wrong_type(output_dtype=[types.INT32], output_ndim=0)
    assert values(good.run()[0]) == [1, 2]
    with pytest.raises(RuntimeError, match="dimensions"):
        wrong_type(output_dtype=None, output_ndim=3).run()
    with pytest.raises(RuntimeError, match="layout"):
        wrong_type(output_dtype=None, output_layout="HWC").run()
    with pytest.raises(RuntimeError, match="1 outputs, 2"):
        wrong_type(output_dtype=[None, None]).run()


def test_all_arguments_of_the_constructor():
    pipe = counter(
        num_threads=1,
        device_id=None,
        seed=7,
        exec_pipelined=True,
        prefetch_queue_depth={"cpu_size": 3, "gpu_size": 2},
        exec_async=True,
        bytes_per_sample=10,
        set_affinity=True,
        max_streams=2,
        default_cuda_stream_priority=1,
        enable_memory_stats=True,
        enable_checkpointing=False,
        checkpoint=None,
        py_num_workers=2,
        py_start_method="spawn",
        py_callback_pickler=None,
        output_dtype=None,
        output_ndim=None,
        output_layout=None,
        exec_dynamic=False,
        experimental_exec_dynamic=None,
        stream_policy=None,
        concurrency=None,
    )
    assert (pipe.max_batch_size, pipe.num_threads, pipe.device_id, pipe.seed) == (2, 1, None, 7)
    assert (pipe.prefetch_queue_depth, pipe.cpu_queue_size, pipe.gpu_queue_size) == (
        {"cpu_size": 3, "gpu_size": 2},
        3,
        2,
    )
    assert (pipe.exec_dynamic, pipe.max_streams) == (False, 2)
    assert (pipe.py_num_workers, pipe.py_start_method, pipe.set_affinity) == (2, "spawn", True)
    assert pipe.num_outputs == 1
    assert pipe.output_dtype() == [None]
    assert values(pipe.run()[0]) == [0, 1]
    with pytest.warns(Warning, match="max_batch_size"):
        assert pipe.batch_size == 2
    with pytest.raises(ValueError, match="prefetch_queue_depth"):
        counter(prefetch_queue_depth=0)


def test_the_arguments_are_dalis():
    dali = pytest.importorskip("nvidia.dali")
    import inspect

    ours = inspect.signature(ndd.Pipeline.__init__).parameters
    theirs = inspect.signature(dali.Pipeline.__init__).parameters
    assert list(ours) == list(theirs)
    assert {n: p.default for n, p in ours.items()} == {n: p.default for n, p in theirs.items()}


def test_a_gpu_that_is_not_there(monkeypatch):
    if ndd.Device.current().device_type == "gpu":
        pytest.skip("there is a GPU")
    with pytest.raises(RuntimeError):
        counter(device_id=0).run()


def test_gpu_operators_in_a_pipeline_of_the_cpu():
    @ndd.pipeline_def(batch_size=1, device_id=None)
    def body():
        return fn.flip(fn.external_source(source=[np.zeros((1, 4, 4, 3), np.uint8)]), device="gpu")

    with pytest.raises(RuntimeError, match="device_id=None"):
        body().run()


@pytest.mark.parametrize("name", ["batch_size", "num_threads", "device_id", "seed"])
@pytest.mark.parametrize("given", ["4", 2.5])
def test_what_is_no_number(name, given):
    with pytest.raises(TypeError, match=f"Pipeline: {name}: expected an integer, got {given!r}"):
        ndd.Pipeline(**{name: given})


def test_half_of_the_prefetch_depth():
    with pytest.raises(KeyError, match="a dict needs cpu_size and gpu_size"):
        ndd.Pipeline(2, prefetch_queue_depth={"cpu_size": 1})


@pytest.mark.oracle
@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.Constant(np.array(42), device="cpu"),
        lambda t: t.Constant(np.int64(42), device="cpu"),
        lambda t: t.Constant(np.array(4.5), device="cpu"),
        lambda t: t.Constant(np.array(42, np.int16), device="cpu"),
        lambda t: t.Constant(np.array(True), device="cpu"),
        lambda t: t.Constant(np.array(42), dtype=t.INT64, device="cpu"),
        lambda t: t.Constant(np.array(42)),
        lambda t: t.Constant(np.int64(2**40)),
        lambda t: t.Constant(np.array([42])),
        lambda t: t.Constant(4.6, dtype=t.INT32, device="cpu"),
        lambda t: t.Constant(4.6, dtype=t.INT32),
        lambda t: t.Constant(np.array(2**40), device="cpu"),
        lambda t: np.array(42),
        lambda t: np.int64(42),
    ],
)
def test_the_type_of_a_constant_is_dalis(make):
    pytest.importorskip("nvidia.dali")
    from nvidia import dali

    result = []
    for library in (ndd, dali):
        try:
            pipe = library.pipeline_def(lambda m=library: make(m.types))(batch_size=1, num_threads=1, device_id=None)
            pipe.build()
            (out,) = pipe.run()
            result.append((int(out.dtype), out.shape(), np.asarray(out.at(0)).tolist()))
        except OverflowError:
            result.append(OverflowError)
    assert result[0] == result[1]


COMPARED = [
    lambda C, t: C(10) == C(10),
    lambda C, t: C(10) != C(10),
    lambda C, t: C(10) == C(10.0),
    lambda C, t: C(10) != C(10.0),
    lambda C, t: C(10) == C(10).int64(),
    lambda C, t: C(True) == C(1),
    lambda C, t: C(2.7, t.INT32) == C(2),
    lambda C, t: C(np.int64(3)) == C(np.int64(3)),
    lambda C, t: C(float("nan")) == C(float("nan")),
    lambda C, t: (C(10) == 10, C(10) != 10, 10 == C(10), C(10) is None, C(10) == "a"),  # noqa: SIM300
    lambda C, t: {C(10)},
    lambda C, t: C(10) < C(11),
    lambda C, t: (int(C(3)), int(C(True)), int(C(np.uint64(2**63))), float(C(2.5)), float(C(3, t.FLOAT)), bool(C(0))),
    lambda C, t: int(C(3.5)),
    lambda C, t: float(C(3)),
    lambda C, t: float(C(True)),
    lambda C, t: bool(C(0.5)),
]


@pytest.mark.oracle
@pytest.mark.parametrize("compared", COMPARED)
def test_constants_of_one_number_compare_and_convert_as_in_dali(compared):
    pytest.importorskip("nvidia.dali")
    from nvidia.dali import types

    result = []
    for kinds in (ndd.types, types):
        try:
            result.append(compared(kinds.Constant, kinds))
        except TypeError:
            result.append(TypeError)
    assert result[0] == result[1]


def test_constants_of_several_numbers_can_be_hashed():
    assert len({ndd.types.Constant([1, 2]), ndd.types.Constant([1, 2])}) == 2
