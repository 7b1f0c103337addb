"""Runs of a pipeline: their depth, their end, what is fed, what comes out."""

from __future__ import annotations

import contextlib
import copy
import gc
import importlib
import pickle

import numpy as np
import pytest
from pipeline.counting import counter, values

import ndd
from ndd import fn, types
from ndd.tensors import TensorCPU, TensorListCPU


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("exec_async", [True, False])
@pytest.mark.drawn(2)
def test_the_depth_changes_nothing(depth, exec_async, files):
    @ndd.pipeline_def(batch_size=3, seed=5)
    def body():
        _, label = fn.readers.file(files=files, random_shuffle=True, name="Reader")
        return label, fn.random.uniform(range=[0.0, 1.0])

    def run(**options):
        pipe = body(**options)
        return [[values(o) for o in pipe.run()] for _ in range(6)]

    assert run(prefetch_queue_depth=depth, exec_async=exec_async) == run(prefetch_queue_depth=1)


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("cycle", [None, "raise"])
def test_the_end_and_a_new_beginning(depth, cycle):
    @ndd.pipeline_def(batch_size=1, prefetch_queue_depth=depth)
    def body():
        return fn.external_source(source=[[1], [2], [3]], cycle=cycle)

    pipe = body()
    for _ in range(2):
        assert [values(pipe.run()[0])[0] for _ in range(3)] == [1, 2, 3]
        for _ in range(2):
            with pytest.raises(StopIteration):
                pipe.run()
        pipe.reset()
        if cycle is None:
            with pytest.raises(StopIteration):
                pipe.run()
            break


@pytest.mark.oracle
@pytest.mark.parametrize("package", ["ndd", "nvidia.dali"])
@pytest.mark.parametrize("lengths", [(2, 2), (2, 3), (3, 2)])
@pytest.mark.parametrize("depth", [1, 2])
def test_sources_end_an_epoch_together(package, lengths, depth):
    """At the end of one the others are asked as well."""
    library = importlib.import_module(package)

    def generated():
        yield from ([np.int32(10 * i)] for i in range(lengths[1]))

    pipe = library.Pipeline(1, 1, None, prefetch_queue_depth=depth, exec_pipelined=False, exec_async=False)
    listed = [[np.int32(i)] for i in range(lengths[0])]
    with pipe:
        sources = [library.fn.external_source(source, cycle="raise") for source in (listed, generated)]
        pipe.set_outputs(*sources)
    pipe.build()
    seen = []
    for _ in range(3):
        epoch = []
        with contextlib.suppress(StopIteration):
            while True:
                epoch.append([int(np.asarray(output.at(0))) for output in pipe.run()])
        seen.append(epoch)
        pipe.reset()
    whole = [[0, 0], [1, 10]]
    then = {(2, 2): [whole, whole], (2, 3): [[], [[1, 0]]], (3, 2): [[], [[0, 10]]]}
    assert seen == [whole, *then[lengths]]


def test_outputs_survive_later_runs():
    pipe = counter()
    kept = [pipe.run()[0] for _ in range(20)]
    arrays = [k.as_array() for k in kept]
    del pipe
    gc.collect()
    assert [a.tolist() for a in arrays] == [[2 * i, 2 * i + 1] for i in range(20)]


def test_three_steps():
    pipe = counter()
    pipe.schedule_run()
    pipe.schedule_run()
    result = []
    for _ in range(3):
        result.append(values(pipe.share_outputs()[0]))
        pipe.release_outputs()
        pipe.schedule_run()
    assert result == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(RuntimeError, match="schedule_run"):
        pipe.run()


@pytest.mark.oracle
@pytest.mark.parametrize("options", [{}, {"prefetch_queue_depth": 3}, {"exec_pipelined": False, "exec_async": False}])
def test_only_scheduled_runs_are_shared_as_in_dali(options):
    """The first `schedule_run` schedules as many as are prefetched; `empty` tells whether one is left."""

    def outcomes(package, program):
        library = importlib.import_module(package)
        data = [[np.int32(i)] for i in range(4)]
        pipe = library.Pipeline(1, 1, None, **options)
        with pipe:
            pipe.set_outputs(library.fn.external_source(data, cycle="raise"))
        pipe.build()
        seen = []
        for step in program.split():
            try:
                result = getattr(pipe, step)()
            except StopIteration:
                result = "end"
            seen.append(int(result[0].as_array()[0]) if isinstance(result, tuple) else result)
        return seen

    share, turn = "share_outputs release_outputs empty", "schedule_run share_outputs release_outputs "
    for program in (
        f"empty {share} schedule_run {share} {share} {share}",
        f"schedule_run {share} schedule_run {share} schedule_run outputs outputs outputs",
        turn * 6 + "reset share_outputs " + turn * 2,
        "run empty run",
    ):
        assert outcomes("ndd", program) == outcomes("nvidia.dali", program)


@pytest.mark.oracle
@pytest.mark.parametrize("package", ["ndd", "nvidia.dali"])
@pytest.mark.parametrize("options", [{"cycle": "raise"}, {"source": [[1]], "bytes_per_sample_hint": 8}])
def test_options_that_need_another_one(package, options):
    library = importlib.import_module(package)
    with library.Pipeline(1, 1, None), pytest.raises(ValueError, match=r"`cycle`|bytes_per_sample_hint"):
        library.fn.external_source(**options)


def test_fed_by_name():
    @ndd.pipeline_def(batch_size=3, prefetch_queue_depth=1)
    def body():
        return fn.external_source(name="x") * 2

    pipe = body()
    assert values(pipe.run(x=np.array([1, 2, 3]))[0]) == [2, 4, 6]
    assert values(pipe.run(x=[np.int32(5)])[0]) == [10]
    pipe.feed_input("x", [np.int32(1), np.int32(2)])
    pipe.feed_input("x", np.array([3, 4], np.int32))
    assert [values(pipe.run()[0]) for _ in range(2)] == [[2, 4], [6, 8]]
    assert values(pipe.run(x=ndd.batch([7]))[0]) == [14]
    torch = pytest.importorskip("torch")
    assert values(pipe.run(x=torch.tensor([8, 9]))[0]) == [16, 18]
    assert values(pipe.run(x=[torch.tensor(1)])[0]) == [2]
    first = pipe.run(x=np.array([1]))[0]
    assert values(pipe.run(x=first)[0]) == [4]
    with pytest.raises(KeyError, match="'y'"):
        pipe.run(y=np.array([1]))
    with pytest.raises(KeyError, match="'y'"):
        pipe.feed_input("y", np.array([1]))
    with pytest.raises(RuntimeError, match="batch of 4 samples"):
        pipe.run(x=np.arange(4))
    with pytest.raises(RuntimeError, match="one type"):
        pipe.run(x=[np.int32(1), np.float32(1)])
    with pytest.raises(IndexError, match="no data"):
        pipe.run()
    assert values(pipe.run(x=np.array([1]))[0]) == [2]


def test_names_need_a_depth_of_one():
    @ndd.pipeline_def(batch_size=3)
    def body():
        return fn.external_source(name="x")

    with pytest.raises(RuntimeError, match="prefetch_queue_depth=1"):
        body().run(x=[1])
    assert values(body(exec_pipelined=False).run(x=[1])[0]) == [1]
    pipe = body()
    pipe.feed_input("x", [1, 2])
    pipe.feed_input("x", [3])
    assert [values(pipe.run()[0]) for _ in range(2)] == [[1, 2], [3]]


def test_a_node_is_fed_as_well_as_a_name():
    pipe = ndd.Pipeline(batch_size=2, prefetch_queue_depth=1)
    with pipe:
        node = fn.external_source(name="x")
        pipe.set_outputs(node + 1)
    pipe.feed_input(node, [1, 2])
    assert values(pipe.run()[0]) == [2, 3]


def test_a_source_that_no_output_needs_is_not_fed():
    pipe = ndd.Pipeline(batch_size=1, prefetch_queue_depth=1)
    with pipe:
        unused = fn.external_source(name="unused")
        pipe.set_outputs(fn.external_source(name="x"))
    for node in (unused, "unused"):
        with pytest.raises(KeyError, match=r"no external_source named 'unused'; it has \['x'\]"):
            pipe.feed_input(node, [1])
    assert values(pipe.run(x=[2])[0]) == [2]


def test_a_source_cannot_be_fed():
    @ndd.pipeline_def(batch_size=1)
    def body():
        return fn.external_source(source=[[1]], name="x")

    with pytest.raises(RuntimeError, match="source"):
        body().feed_input("x", [1])


def test_layouts_of_what_is_fed():
    @ndd.pipeline_def(batch_size=1, prefetch_queue_depth=1)
    def body():
        return fn.external_source(name="x", layout="HW"), fn.external_source(name="y")

    pipe = body()
    pipe.feed_input("x", np.zeros((1, 2, 2)))
    pipe.feed_input("y", np.zeros((1, 2, 2)), layout="WH")
    x, y = pipe.run()
    assert (x.layout(), y.layout()) == ("HW", "WH")


def test_lists_of_tensors():
    @ndd.pipeline_def(batch_size=2)
    def body():
        dense = fn.external_source(source=[np.arange(12, dtype=np.int32).reshape(2, 2, 3)], layout="HW")
        ragged = fn.external_source(source=[[np.zeros(2, np.float32), np.ones(3, np.float32)]])
        return dense, ragged

    dense, ragged = body().run()
    assert isinstance(dense, ndd.pipeline.outputs.TensorList)
    assert len(dense) == 2
    assert dense.shape() == [(2, 3), (2, 3)]
    assert dense.dtype == types.INT32
    assert (dense.layout(), ragged.layout(), dense.ndim()) == ("HW", "", 2)
    assert dense.is_dense_tensor()
    assert not ragged.is_dense_tensor()
    assert dense.as_cpu() is dense
    assert dense.as_array().tolist() == dense.as_tensor().torch().tolist() == dense.torch().tolist()
    assert isinstance(dense.at(1), np.ndarray)
    assert dense[-1].shape() == [2, 3]
    assert np.asarray(dense[1]).tolist() == dense.at(1).tolist() == [[6, 7, 8], [9, 10, 11]]
    assert [t.shape() for t in ragged] == [[2], [3]]
    assert len(ragged[0:1]) == 1
    assert dense[0].layout() == "HW"
    assert dense[0].dtype == types.INT32
    assert np.from_dlpack(dense[0]).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert dense[0].data_ptr() == dense.torch().data_ptr()
    with pytest.raises(RuntimeError, match="shape"):
        ragged.as_tensor()
    with pytest.raises(RuntimeError, match="shape"):
        ragged.as_array()
    assert np.asarray(ragged.as_reshaped_tensor([5, 1])).tolist() == [[0], [0], [1], [1], [1]]
    for take in (dense.__getitem__, dense.at):
        with pytest.raises(TypeError, match="expected an integer, got 'a'"):
            take("a")
    for wrong in (2, -3):
        with pytest.raises(IndexError):
            dense[wrong]
        with pytest.raises(RuntimeError):
            dense.at(wrong)


def test_outputs_can_be_pickled_and_copied():
    for item in (TensorListCPU(np.arange(6).reshape(2, 3), "W"), TensorCPU(np.arange(3), "W")):
        for again in (pickle.loads(pickle.dumps(item)), copy.deepcopy(item), copy.copy(item)):
            assert type(again) is type(item)
            assert again.layout() == "W"
            assert np.asarray(again.as_array() if hasattr(again, "as_array") else again).tolist() == (
                [[0, 1, 2], [3, 4, 5]] if hasattr(item, "as_array") else [0, 1, 2]
            )
