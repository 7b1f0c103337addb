"""How a pipeline runs: its function is called once, or with `debug=True` for every batch; errors, threads, memory."""

from __future__ import annotations

import gc
import importlib
import random
import sys
import threading
import time
import traceback
import weakref
from pathlib import Path

import numpy as np
import pytest
from memory import least_growth
from pipeline.counting import counter, values
from waiting import wait_until

import ndd
from ndd import fn, types


def test_errors_point_at_the_line_of_the_body():
    @ndd.pipeline_def(batch_size=2)
    def body():
        x = fn.external_source(source=lambda i: np.zeros((2, 8 - 2 * i, 8, 3), np.uint8), layout="HWC")
        return fn.crop(x, crop=[5, 5])  # the line

    line = next(i for i, text in enumerate(Path(__file__).read_text().splitlines(), 1) if text.endswith("# the line"))
    for depth in (1, 2):
        pipe = body(prefetch_queue_depth=depth)
        with pytest.raises(RuntimeError) as caught:
            [pipe.run() for _ in range(3)]
        lines = [f.lineno for f in traceback.extract_tb(caught.value.__traceback__) if f.filename == __file__]
        assert line in lines or f"{Path(__file__).name}:{line}" in str(caught.value)


def test_the_function_is_called_once():
    """Python state goes on, and Python values are drawn once."""
    calls = []

    @ndd.pipeline_def(batch_size=2)
    def body():
        calls.append(1)
        rng, chosen = np.random.default_rng(7), random.random()
        drawn = fn.python_function(function=lambda: np.array(rng.integers(1000)))
        return drawn, types.Constant(chosen), types.Constant(FACTOR)

    pipe = body()
    assert len(calls) == 1
    pipe.build()
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(globals(), "FACTOR", 2)
        result = [[values(o)[0] for o in pipe.run()] for _ in range(3)]
    assert [row[0] for row in result] == [944, 684, 578]
    assert len({row[1] for row in result}) == 1
    assert [row[2] for row in result] == [1, 1, 1]
    assert len(calls) == 1


FACTOR = 1


@pytest.mark.oracle
@pytest.mark.parametrize("package", ["ndd", "nvidia.dali"])
def test_when_the_function_is_called(package):
    library = pytest.importorskip(package)
    calls = []

    class Derived(library.Pipeline):
        def define_graph(self):
            calls.append("graph")
            return library.fn.constant(idata=len(calls))

    pipe = Derived(1, 1, None)
    assert calls == []
    pipe.build()
    assert calls == ["graph"]
    assert [int(np.asarray(pipe.run()[0].at(0)).item()) for _ in range(2)] == [1, 1]
    assert calls == ["graph"]


@pytest.mark.oracle
@pytest.mark.parametrize("package", ["ndd", "nvidia.dali"])
def test_mistakes_are_told_when_the_pipeline_is_made(package):
    pytest.importorskip(package)
    library = importlib.import_module(package)
    fn = library.fn

    def images():
        return fn.external_source(lambda i: [np.zeros((4, 4, 3), np.uint8)], layout="HWC")

    for body, error in (
        (lambda: 1 / 0, ZeroDivisionError),
        (lambda: fn.resize(images(), size="a"), ValueError),
        (lambda: fn.rotate(images(), angle="x"), ValueError),
        (lambda: fn.resize(images(), colour=3), KeyError),
        (lambda: fn.resize(), ValueError),
        (lambda: fn.cast(images(), dtype="abc"), ValueError),
        (lambda: fn.flip(images(), device="xpu"), ValueError),
        (lambda: fn.flip(images(), device="gpu"), RuntimeError),
        (lambda: images() + "a", TypeError),
        (lambda: 1 if images() else 2, TypeError),
        (lambda: fn.copy([np.zeros(2), np.zeros(2)]), TypeError),
    ):
        with pytest.raises(error):
            library.pipeline_def(body)(batch_size=1, num_threads=1, device_id=None)
    for body, error in (
        (lambda: None, NotImplementedError),
        (lambda: "abc", TypeError),
        (lambda: (1, [images()]), TypeError),
        (lambda: tuple(fn.external_source(name="x") for _ in range(2)), RuntimeError),
        (lambda: fn.readers.file(file_root="/none")[0], RuntimeError),
    ):
        pipe = library.pipeline_def(body)(batch_size=1, num_threads=1, device_id=None)
        with pytest.raises(error):
            pipe.build()


@pytest.mark.oracle
@pytest.mark.parametrize("package", ["ndd", "nvidia.dali"])
def test_what_no_output_needs_does_not_run(package, files):
    """But functions of Python, and what has `preserve=True`."""
    library = importlib.import_module(package) if pytest.importorskip(package) else None
    fn, seen = library.fn, set()

    def noting(name):
        return lambda *_: (seen.add(name), np.array(1, np.int32))[1]

    @library.pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def body():
        fn.external_source([[np.int32(1)]])
        fn.external_source(lambda: [noting("source")()])
        fn.python_function(function=noting("function"))
        fn.copy(fn.external_source(lambda: [noting("preserved")()]), preserve=True)
        fn.readers.file(files=files, name="unused")
        return fn.readers.file(files=files, name="used")[1]

    pipe = body()
    pipe.build()
    assert [np.asarray(pipe.run()[0].at(0)).item() for _ in range(4)] == [0, 1, 2, 3]
    assert seen == {"function", "preserved"}
    assert list(pipe.reader_meta()) == ["used"]


def test_a_sink_runs():
    seen = []

    def body():
        ndd.Pipeline.current().add_sink(fn.external_source(lambda i: (seen.append(i), [np.int32(i)])[1]))
        return np.int32(1)

    pipe = ndd.pipeline_def(body)(batch_size=1, prefetch_queue_depth=1)
    [pipe.run() for _ in range(3)]
    assert seen == [0, 1, 2]


def test_long_pipelines():
    @ndd.pipeline_def(batch_size=1)
    def body():
        x = fn.external_source(source=lambda i: [np.int32(i)])
        for _ in range(3000):
            x = x + 1
        return x

    pipe = body()
    assert [values(pipe.run()[0]) for _ in range(2)] == [[3000], [3001]]


def test_values_are_let_go_after_their_last_use():
    """Of a chain no more than two results are there at once, and the input of a step."""
    alive, most = [], []

    def one_more(array):
        result = array + 1
        alive.append(weakref.ref(result))
        gc.collect()
        most.append(sum(reference() is not None for reference in alive))
        return result

    @ndd.pipeline_def(batch_size=1, prefetch_queue_depth=1)
    def body():
        x = fn.external_source(source=lambda i: [np.zeros(4, np.float32)])
        for _ in range(8):
            x = fn.python_function(x, function=one_more)
        return x

    body().run()
    assert max(most) <= 3


def test_a_run_after_an_error():
    calls = iter(range(100))

    @ndd.pipeline_def(batch_size=1, debug=True)
    def body():
        i = next(calls)
        if i == 2:
            raise ValueError("the third")
        return fn.external_source(source=lambda k: [np.int32(i)])

    pipe = body()
    result = []
    for _ in range(4):
        try:
            result.append(values(pipe.run()[0])[0])
        except ValueError as error:
            result.append(str(error))
    assert result == [0, 0, "the third", 0]


def test_with_debug_the_function_runs_for_every_batch(capsys):
    seen = []

    @ndd.pipeline_def(batch_size=2, debug=True)
    def body():
        x = fn.external_source(source=[[1, 2], [3, 4], [5, 6]])
        seen.append(x.get().as_array().tolist())
        if seen[-1][0] == 3:
            x = x * 100
        print("a batch:", x)
        for _ in range(len(seen)):
            x = x + 1
        return x

    pipe = body()
    assert seen == []
    assert [values(pipe.run()[0]) for _ in range(3)] == [[2, 3], [302, 402], [8, 9]]
    assert seen == [[1, 2], [3, 4], [5, 6]]
    assert "[300, 400]" in capsys.readouterr().out


def test_with_debug_a_list_of_arrays_is_a_batch():
    def body():
        return fn.copy([np.full(2, i, np.int32) for i in range(3)])

    assert values(ndd.pipeline_def(body)(batch_size=3, debug=True).run()[0]) == [[0, 0], [1, 1], [2, 2]]
    with pytest.raises(TypeError, match="one array for each sample"):
        ndd.pipeline_def(body)(batch_size=3)


def test_with_debug_conditions_decide_for_each_sample():
    kept = []

    @ndd.pipeline_def(batch_size=4, debug=True, enable_conditionals=True)
    def body():
        x = fn.external_source(source=[[0, 1, 2, 3], [0, 0, 0, 0]])
        if x > 1:
            y = x * 10
            kept.append(y.get().as_array().tolist())
        else:
            y = -x
        return y

    pipe = body()
    assert [values(pipe.run()[0]) for _ in range(2)] == [[0, -1, 20, 30], [0, 0, 0, 0]]
    assert kept == [[20, 30], []]


def test_what_is_not_known_with_debug(files):
    @ndd.pipeline_def(batch_size=1, debug=True)
    def body():
        return fn.readers.file(files=files, name="R")[1]

    pipe = body()
    for call in (pipe.serialize, lambda: pipe.num_outputs):
        with pytest.raises(RuntimeError, match="debug=True"):
            call()
    assert (values(pipe.run()[0]), pipe.num_outputs, pipe.epoch_size("R")) == ([[0]], 1, 7)


def test_with_debug_calls_in_a_condition_keep_their_own_state(files):
    turn = iter(range(100))

    @ndd.pipeline_def(batch_size=1, debug=True)
    def body():
        if next(turn) % 2:
            _, sometimes = fn.readers.file(files=files, labels=list(range(20, 27)))
        else:
            sometimes = types.Constant([0])
        _, always = fn.readers.file(files=files)
        return always, sometimes

    pipe = body()
    result = [[o.at(0).tolist()[0] for o in pipe.run()] for _ in range(4)]
    assert result == [[0, 0], [1, 20], [2, 0], [3, 21]]


def noting_thread(threads):
    def source(i):
        threads.append(threading.current_thread().name)
        return [np.int32(i)]

    return ndd.pipeline_def(lambda: fn.external_source(source=source))


def test_runs_are_prepared_on_a_thread():
    threads = []
    pipe = noting_thread(threads)(batch_size=1, prefetch_queue_depth=2)
    pipe.run()
    wait_until(lambda: len(threads) >= 3)
    time.sleep(0.05)  # and no more than that
    assert threads == ["MainThread", "ndd-pipeline-0", "ndd-pipeline-0"]


@pytest.mark.parametrize("debug", [False, True])
def test_a_debugger_steps_through_functions_of_the_user(debug):
    """Breakpoints are of the thread that runs, so a traced program runs sources where `run` is called."""
    if sys.gettrace() is not None:
        pytest.skip("traced already")
    threads = []
    pipe = noting_thread(threads)(batch_size=1, prefetch_queue_depth=3, debug=debug)
    sys.settrace(lambda *_: None)
    try:
        for _ in range(4):
            pipe.run()
    finally:
        sys.settrace(None)
    assert threads == ["MainThread"] * 4


def test_a_pipeline_that_nobody_holds_ends_its_thread():
    def threads():
        return [t for t in threading.enumerate() if t.name.startswith("ndd-pipeline")]

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
    result = pipe.run()
    assert values(result[1]) == [[0], [1]]
    assert values(result[3]) == [[2, 2], [2, 2]]
