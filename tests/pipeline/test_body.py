"""The body of a pipeline is plain Python: a debugger, errors, threads, memory."""

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
from pipeline.counting import counter, values
from waiting import wait_until

import ndd
from ndd import fn, types


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


def test_an_interrupt_while_a_run_is_waited_for(monkeypatch):
    """Ctrl-C where the wait has let go of its lock is a KeyboardInterrupt, and no run is lost."""

    @ndd.pipeline_def(batch_size=1, prefetch_queue_depth=2)
    def body():
        def slow(i):
            time.sleep(0.01)
            return [np.int32(i)]

        return fn.external_source(source=slow)

    pipe = body()
    seen = [int(pipe.run()[0].as_array()[0]) for _ in range(2)]
    changed = pipe._ahead._changed
    release = changed._release_save

    def interrupted():
        release()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(changed, "_release_save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            seen += iter(lambda: int(pipe.run()[0].as_array()[0]), None)
    seen += [int(pipe.run()[0].as_array()[0]) for _ in range(3)]
    assert seen == list(range(len(seen)))


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
