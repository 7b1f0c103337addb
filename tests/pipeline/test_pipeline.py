"""Pipelines: how they are defined, run, asked about themselves and ended."""

from __future__ import annotations

import gc
import sys
import threading
import time
import traceback
import weakref
from pathlib import Path

import numpy as np
import pytest
from memory import least_growth
from waiting import wait_until

import ndd
from ndd import fn, types


def root(*parts):
    return Path(__file__).parent.joinpath(*parts)


@pytest.fixture
def files(tmp_path):
    made = []
    for i in range(7):
        path = tmp_path / f"{i}.bin"
        path.write_bytes(bytes([i] * (i + 1)))
        made.append(str(path))
    return made


def values(output):
    return [np.asarray(t).tolist() for t in output]


@ndd.pipeline_def(batch_size=2)
def counter(start=0):
    return fn.external_source(source=lambda i: [np.int32(start + 2 * i), np.int32(start + 2 * i + 1)])


# Definition


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

    found = []
    for library, kinds in ((ndd, types), (dali, their_types)):

        @library.pipeline_def(batch_size=2, num_threads=1, device_id=None)
        def body(kinds=kinds):
            return kinds.Constant([1, 2, 3], dtype=kinds.FLOAT, shape=(3, 1), layout="AB"), 1, 2.5, True, np.ones(2)

        outputs = body().run()
        found.append([(int(o.dtype), o.shape(), o.layout(), np.asarray(o.as_tensor()).tolist()) for o in outputs])
    assert found[0] == found[1]


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


# Running


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("exec_async", [True, False])
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
    found = []
    for _ in range(3):
        found.append(values(pipe.share_outputs()[0]))
        pipe.release_outputs()
        pipe.schedule_run()
    assert found == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(RuntimeError, match="schedule_run"):
        pipe.run()


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


# Readers


def test_readers_are_made_once_and_advance_once_a_run(files):
    @ndd.pipeline_def(batch_size=2)
    def body():
        data, label = fn.readers.file(files=files, name="Reader", num_shards=2, shard_id=1)
        return data, label

    pipe = body()
    assert pipe.reader_meta("Reader") == {
        "epoch_size": 7,
        "epoch_size_padded": 7,
        "number_of_shards": 2,
        "shard_id": 1,
        "pad_last_batch": 0,
        "stick_to_shard": 0,
    }
    assert pipe.epoch_size() == {"Reader": 7}
    labels = [values(pipe.run()[1]) for _ in range(2)]
    assert labels == [[[3], [4]], [[5], [6]]]
    assert list(pipe.reader_meta()) == ["Reader"]
    with pytest.raises(RuntimeError, match="Nobody"):
        pipe.reader_meta("Nobody")
    with pytest.raises(RuntimeError, match="Nobody"):
        pipe.epoch_size("Nobody")


@pytest.mark.oracle
@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_readers_give_what_dalis_give(files, pad, shuffle):
    dali = pytest.importorskip("nvidia.dali")
    import nvidia.dali.fn as their_fn

    found = []
    for library, functions in ((ndd, fn), (dali, their_fn)):

        @library.pipeline_def(batch_size=3, num_threads=1, device_id=None)
        def body(functions=functions):
            data, label = functions.readers.file(
                files=files, name="R", num_shards=2, shard_id=0, pad_last_batch=pad, random_shuffle=shuffle, seed=11
            )
            return data, label

        pipe = body()
        pipe.build()
        facts = (pipe.reader_meta("R"), pipe.epoch_size("R"))
        runs = [pipe.run() for _ in range(7)]
        found.append((facts, [[[np.array(t).tolist() for t in o] for o in r] for r in runs]))
    assert found[0] == found[1]


def test_two_readers_without_names(files):
    @ndd.pipeline_def(batch_size=1)
    def body():
        pair = [fn.readers.file(files=files[k:])[0] for k in (0, 3)]
        _, other = fn.readers.file(files=files, labels=list(range(10, 17)))
        return pair[0], pair[1], other

    pipe = body()
    for i in range(3):
        first, second, label = pipe.run()
        assert (len(first.at(0)), len(second.at(0)), label.at(0).tolist()) == (i + 1, i + 4, [10 + i])


# What comes out


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
    for wrong in (2, -3):
        with pytest.raises(IndexError):
            dense[wrong]
        with pytest.raises(RuntimeError):
            dense.at(wrong)


# A debugger, errors, threads, memory


def test_errors_point_at_the_line_of_the_body():
    @ndd.pipeline_def(batch_size=2)
    def body():
        x = fn.external_source(source=lambda i: np.zeros((2, 4 + i, 4, 3), np.uint8), layout="HWC")
        return fn.crop(x, crop=[5, 5], crop_pos_x=2.0 if sum_of_shape(x) else 0.5)  # the line

    def sum_of_shape(x):
        return x.value.shape[0][0] == 6

    line = next(i for i, text in enumerate(Path(__file__).read_text().splitlines(), 1) if text.endswith("# the line"))
    for depth in (1, 2):
        pipe = body(prefetch_queue_depth=depth)
        with pytest.raises(RuntimeError) as caught:
            [pipe.run() for _ in range(3)]
        lines = [f.lineno for f in traceback.extract_tb(caught.value.__traceback__) if f.filename == __file__]
        assert line in lines or f"{Path(__file__).name}:{line}" in str(caught.value)


def test_a_run_after_an_error():
    calls = iter(range(100))

    @ndd.pipeline_def(batch_size=1)
    def body():
        i = next(calls)
        if i == 2:
            raise ValueError("the third")
        return fn.external_source(source=lambda k: [np.int32(i)])

    pipe = body()
    found = []
    for _ in range(4):
        try:
            found.append(values(pipe.run()[0])[0])
        except ValueError as error:
            found.append(str(error))
    assert found[0] == 0
    assert found[2] == "the third"
    assert len(found) == 4


def test_a_body_is_plain_python(capsys):
    seen = []

    @ndd.pipeline_def(batch_size=2)
    def body():
        x = fn.external_source(source=[[1, 2], [3, 4], [5, 6]])
        seen.append(x.value.cpu().torch().tolist())
        if seen[-1][0] == 3:
            x = x * 100
        print("a batch:", x)
        for _ in range(len(seen)):
            x = x + 1
        return x

    pipe = body(prefetch_queue_depth=1)
    assert [values(pipe.run()[0]) for _ in range(3)] == [[2, 3], [302, 402], [8, 9]]
    assert seen == [[1, 2], [3, 4], [5, 6]]
    assert "[300, 400]" in capsys.readouterr().out


def test_calls_in_a_condition_keep_their_own_state(files):
    turn = iter(range(100))

    @ndd.pipeline_def(batch_size=1, prefetch_queue_depth=1)
    def body():
        if next(turn) % 2:
            _, sometimes = fn.readers.file(files=files, labels=list(range(20, 27)))
        else:
            sometimes = types.Constant([0])
        _, always = fn.readers.file(files=files)
        return always, sometimes

    pipe = body()
    found = [[o.at(0).tolist()[0] for o in pipe.run()] for _ in range(4)]
    assert found == [[0, 0], [1, 20], [2, 0], [3, 21]]


def test_runs_are_prepared_on_a_thread():
    threads = []

    @ndd.pipeline_def(batch_size=1, prefetch_queue_depth=2)
    def body():
        threads.append(threading.current_thread().name)
        return fn.external_source(source=lambda i: [np.int32(i)])

    pipe = body()
    pipe.run()
    wait_until(lambda: len(threads) >= 3)
    time.sleep(0.05)  # and no more than that
    assert threads == ["MainThread", "ndd-pipeline", "ndd-pipeline"]


def test_a_debugger_steps_through_the_body():
    """Breakpoints are of the thread that runs, so a traced program runs bodies where they are called."""
    if sys.gettrace() is not None:
        pytest.skip("traced already")
    lines = []

    @ndd.pipeline_def(batch_size=1, prefetch_queue_depth=3)
    def body():
        lines.append(threading.current_thread().name)
        return types.Constant(1)

    pipe = body()
    sys.settrace(lambda *_: None)
    try:
        for _ in range(4):
            pipe.run()
    finally:
        sys.settrace(None)
    assert lines == ["MainThread"] * 4


def test_a_pipeline_that_nobody_holds_ends_its_thread():
    def threads():
        return [t for t in threading.enumerate() if t.name == "ndd-pipeline"]

    before = threads()  # of other tests' pipelines, which may end at any time
    pipe = counter(prefetch_queue_depth=3)
    pipe.run()
    (own,) = [t for t in threads() if t not in before]
    gone = weakref.ref(pipe)
    del pipe
    gc.collect()
    wait_until(lambda: not own.is_alive())
    assert gone() is None


def test_memory_is_flat_over_fifty_epochs(files):
    from ndd.plugin.pytorch import DALIGenericIterator

    @ndd.pipeline_def(batch_size=2)
    def body():
        _, label = fn.readers.file(files=files, name="R", pad_last_batch=True)
        return fn.external_source(source=lambda i: np.zeros((2, 256, 256), np.float32)) + 1.0, label

    iterator = DALIGenericIterator(body(), ["x", "y"], reader_name="R", auto_reset=True)

    def epochs(count):
        for _ in range(count):
            for _ in iterator:
                pass

    epochs(15)
    assert least_growth(lambda: epochs(15)) < 3e6


def test_outputs_are_known_before_the_pipeline_runs(files):
    """In a `with` block a reader and an operator unpack to what they will give."""
    pipe = ndd.Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        data, labels = fn.readers.file(files=files, labels=list(range(7)))
        image = fn.reshape(types.Constant(np.arange(12, dtype=np.uint8)), shape=[2, 2, 3], layout="HWC")
        small, before = fn.resize(image, size=[1, 1], save_attrs=True)
        pipe.set_outputs(data, labels, small, before)
    assert pipe.num_outputs == 4
    pipe.build()
    found = pipe.run()
    assert values(found[1]) == [[0], [1]]
    assert values(found[3]) == [[2, 2], [2, 2]]
