"""`ndd.profile`: what it counts, where it puts the time, and that nothing is left on."""

from __future__ import annotations

import json
import os
import sys
import threading
import time

import numpy as np
import pytest
import torch
from waiting import wait_until

import ndd
from ndd._execution import observation
from ndd._tensor import stream_waits
from ndd.profiling import trace
from ndd.profiling.loop_profile import Profile
from ndd.profiling.recorder import recorder
from ndd.profiling.spans import Span

MEAN, STD = [120, 110, 100], [60, 60, 60]


@pytest.fixture(autouse=True)
def _off_afterwards():
    yield
    assert observation.active is None
    assert stream_waits.begins is None
    assert not recorder.profiles
    wait_until(lambda: not recorder._working)  # what runs ahead ends by itself


def epoch(batch_size=8, **arguments):
    return ndd.readers.File(file_root=ndd.demo.photos()).next_epoch(batch_size=batch_size, **arguments)


def loop(batches=None, seconds=0.0):
    for jpegs, _ in epoch() if batches is None else batches:
        images = ndd.resize(ndd.decoders.image(jpegs, device="cpu"), size=[64, 64])
        ndd.crop_mirror_normalize(images, mean=MEAN, std=STD).torch()
        time.sleep(seconds)


def rows(profile):
    return {row.name: row for row in profile.operators}


@pytest.mark.parametrize("mode", ["eager", "deferred", "sync_cpu", "sync_full"])
@pytest.mark.drawn(2)
def test_every_call_and_its_time(mode):
    count = len(epoch())
    with getattr(ndd.EvalMode, mode), ndd.profile() as p:
        loop()
    result = rows(p)
    for name in ("decoders.image", "resize", "crop_mirror_normalize", "readers.File"):
        assert result[name].calls == count, name
    assert all(result[name].host > 0 for name in ("decoders.image", "resize", "crop_mirror_normalize"))
    assert result["crop_mirror_normalize"].nbytes == p.images * 64 * 64 * 3 * 4
    assert all(row.device is None for row in p.operators)
    assert p.images == len(ndd.readers.File(file_root=ndd.demo.photos()))
    assert p.images_per_second == pytest.approx(p.images / p.seconds)
    assert sum(row.waited for row in p.operators) == pytest.approx(p.waited)
    assert 0 < p.waited <= p.seconds


def test_the_share_of_waiting_is_that_of_the_loop():
    """What the loop does itself is no waiting; what operators do while it sleeps is none either."""
    loop()  # compiled
    with ndd.profile() as busy:
        loop(seconds=0.2)
    with ndd.profile() as idle:
        loop()
    assert busy.seconds - busy.waited >= 0.19 * len(epoch())
    assert busy.waiting < idle.waiting <= 1


def test_a_slow_reader_is_what_the_loop_waits_for():
    def slow():
        for k in range(4):
            time.sleep(0.05)
            yield np.full((8, 8, 3), k, np.uint8)

    with ndd.profile() as p:
        source = ndd.ExternalSource(slow, layout="HWC")
        for _ in range(4):
            ndd.flip(source(batch_size=2)).torch()
    first = p.operators[0]
    assert (first.name, first.calls) == ("ExternalSource", 4)
    assert first.waited > 0.15


def test_a_reader_that_is_called():
    reader = ndd.readers.File(file_root=ndd.demo.photos())
    with ndd.profile() as p:
        for _ in range(3):
            reader(batch_size=4)
        reader.reset()
        reader()
    assert rows(p)["readers.File"].calls == 4
    assert p.images == 13


def test_without_a_reader_the_call_with_most_samples_counts():
    data = ndd.batch([np.zeros((8, 8, 3), np.uint8)] * 5, layout="HWC")
    with ndd.profile() as p:
        for _ in range(3):
            flipped = ndd.flip(data)
            ndd.flip(flipped).evaluate()
    assert rows(p)["flip"].calls == 6
    assert p.images == 15


def test_the_time_of_an_operator_within_another_is_its_own():
    @ndd.operator
    def outer_of_a_profile(x, /):
        return ndd.like(x)

    @outer_of_a_profile.cpu
    def _(x, out):
        time.sleep(0.02)
        out[...] = np.asarray(ndd.flip(ndd.tensor(x, layout="HWC")))

    with ndd.profile() as p:
        outer_of_a_profile(np.zeros((4, 4, 3), np.uint8)).evaluate()
    result = rows(p)
    outer = next(row for name, row in result.items() if name.endswith("outer_of_a_profile"))
    assert (outer.calls, result["flip"].calls) == (1, 0)  # the loop did not call it
    assert outer.host >= 0.02
    assert result["flip"].host < 0.02
    assert p.waited <= p.seconds


def test_what_ran_ahead():
    reader = ndd.readers.File(file_root=ndd.demo.photos(), random_shuffle=True)
    kept = []
    with ndd.profile() as p:
        for _ in range(4):
            for jpegs, _ in reader.next_epoch(batch_size=4, capture=True):
                images = ndd.resize(ndd.decoders.image(jpegs, device="cpu"), size=[64, 64])
                kept.append(ndd.crop_mirror_normalize(images, mean=MEAN, std=STD))
                kept[-1].evaluate()
                time.sleep(0.05)
    result = rows(p)
    assert 0 < result["crop_mirror_normalize"].ahead <= result["crop_mirror_normalize"].calls == len(kept)
    assert any(span.ahead and span.thread_name.startswith("ndd-lookahead") for span in p.spans)
    assert any("made ahead" in ndd.explain(value) for value in kept)


def test_profiles_within_each_other_and_beside_each_other():
    with ndd.profile() as outer:
        loop()
        with ndd.profile() as inner:
            loop()
        loop()
    assert rows(inner)["resize"].calls == rows(outer)["resize"].calls / 3
    with ndd.profile() as first:
        second = ndd.profile().__enter__()
        ndd.flip(np.zeros((4, 4, 3), np.uint8)).evaluate()
    ndd.flip(np.zeros((4, 4, 3), np.uint8)).evaluate()
    second.__exit__()
    assert (rows(first)["flip"].calls, rows(second)["flip"].calls) == (1, 2)
    with pytest.raises(RuntimeError, match="make another one"):
        first.__enter__()


def _stumbles():
    loop()
    raise ZeroDivisionError


def test_an_error_in_the_loop_leaves_it_usable():
    p = ndd.profile()
    with pytest.raises(ZeroDivisionError), p:
        _stumbles()
    assert rows(p)["resize"].calls
    with pytest.raises(RuntimeError, match="no known format"), ndd.profile() as p:
        ndd.decoders.image(np.frombuffer(b"no picture at all", np.uint8)).evaluate()
    assert any(span.failed for span in p.spans)
    assert "decoders.image" in str(p)


def test_the_loop_is_the_thread_that_takes_batches():
    loop()
    with ndd.profile() as p:
        thread = threading.Thread(target=loop, kwargs={"seconds": 0.01})
        thread.start()
        identity = thread.native_id
        thread.join()
    assert p.loop_thread == identity
    assert rows(p)["readers.File"].calls == len(epoch())
    assert 0 < p.waiting < 1


def _in_worker(_):
    return observation.active is None


def test_a_forked_worker_sees_nothing():
    with ndd.profile() as p:
        loader = torch.utils.data.DataLoader(
            range(4), num_workers=1, collate_fn=_in_worker, multiprocessing_context="fork"
        )
        assert all(loader)
    assert not p.spans


def test_a_forked_child_may_have_a_profile_of_its_own():
    """That of its parent sees nothing of it, and its lock may be held for ever."""
    with ndd.profile() as outer, outer._lock:
        child = os.fork()
        if not child:
            code = 1
            try:
                loop()
                with ndd.profile() as own:
                    loop()
                code = 0 if own.images == 16 and not outer.spans else 2
            finally:
                os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert outer.images == 0


def test_work_that_forks_is_known_to_the_parent_alone():
    @ndd.operator(register=False)
    def forking(x, /):
        return ndd.like(x)

    children = []

    @forking.batch
    def _(call, x):
        children.append(os.fork())
        return x.arrays

    with ndd.profile() as p, ndd.EvalMode.sync_cpu:  # on this thread
        try:
            forking(np.zeros(3, np.float32)).evaluate()
        finally:
            if not children[0]:
                os._exit(0 if sys.exc_info()[0] is None else 1)
    assert os.waitpid(children[0], 0)[1] == 0
    assert [row.calls for row in p.operators] == [1]


def test_it_ends_once():
    p = ndd.profile()
    p.__exit__(None, None, None)
    with p:
        loop()
    seconds = p.seconds
    p.__exit__(None, None, None)
    assert p.seconds == seconds


@pytest.mark.parametrize(
    ("path", "error", "sentence"),
    [
        (5, TypeError, "Profile.save: path: expected a path as a str or a Path, got int"),
        (None, TypeError, "Profile.save: path: expected a path as a str or a Path, got NoneType"),
        (b"x.json", TypeError, "Profile.save: path: expected a path as a str or a Path, got bytes"),
        ("", IsADirectoryError, "Profile.save: path: expected the name of a file, got the folder ''"),
        (".", IsADirectoryError, "Profile.save: path: expected the name of a file, got the folder '.'"),
        ("none/x.json", FileNotFoundError, "[Errno 2] No such file or directory: 'none/x.json'"),
    ],
)
def test_a_path_that_cannot_be_written(tmp_path, monkeypatch, path, error, sentence):
    monkeypatch.chdir(tmp_path)
    with ndd.profile() as p:
        pass
    with pytest.raises(error) as caught:
        p.save(path)
    assert str(caught.value) == sentence
    assert not list(tmp_path.iterdir())


def test_the_text_and_the_table():
    with ndd.profile() as p:
        loop()
        assert "decoders.image" in str(p)  # meanwhile
    lines = str(p).splitlines()
    assert f"{p.images:,} images" in lines[0]
    assert "The loop waited for data" in lines[1]
    head = lines.index(next(line for line in lines if "calls" in line))
    assert {line.split()[0] for line in lines[head + 1 :]} == {row.name for row in p.operators}
    result = p._repr_html_()
    assert result.count("<tr>") == 1 + len(p.operators)
    p._sums["<b>"] = [1, 0, 0, 0]
    assert "&lt;b&gt;" in p._repr_html_()
    assert "0.000 s" in str(ndd.profile())  # not begun


def test_the_trace_is_what_perfetto_reads(tmp_path):
    with ndd.profile() as p:
        loop()
    p.save(tmp_path / "trace.json")
    with open(tmp_path / "trace.json") as file:
        read = json.load(file)
    assert read.keys() == {"traceEvents", "displayTimeUnit"}
    events = [event for event in read["traceEvents"] if event["ph"] == "X"]
    named = {(e["pid"], e["tid"]) for e in read["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"}
    assert {event["ph"] for event in read["traceEvents"]} == {"X", "M"}
    assert len(events) == len(p.spans)
    for event in events:
        assert isinstance(event["name"], str)
        assert event["cat"] in ("operator", "wait", "reader", "reading")
        assert event["ts"] >= -1e6
        assert event["dur"] >= 0
        assert (event["pid"], event["tid"]) in named
        assert isinstance(event["args"]["samples"], int)
    decoded = [e for e in events if e["name"] == "decoders.image"]
    assert sum(sum(e["args"].get("pictures", {}).values()) for e in decoded) == p.images
    _check_nesting(events)


def _check_nesting(events):
    """Of one thread, events lie within each other or apart: else Perfetto drops them."""
    for thread in {event["tid"] for event in events}:
        own = sorted((e for e in events if e["tid"] == thread), key=lambda e: (e["ts"], -e["dur"]))
        open_until: list[float] = []
        for event in own:
            end = event["ts"] + event["dur"]
            while open_until and open_until[-1] <= event["ts"]:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1
            open_until.append(end)


def test_a_long_loop_keeps_its_sums(monkeypatch):
    monkeypatch.setattr("ndd.profiling.loop_profile._MOST_SPANS", 5)
    with ndd.profile() as p:
        loop()
    assert len(p.spans) == 5
    assert p.dropped > 0
    assert rows(p)["resize"].calls == len(epoch())
    assert "later ones" in str(p)


def test_ranges_in_torch_s_profiler():
    """Of the thread that is profiled: calls, waits and what runs on it."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with ndd.profile(), torch.profiler.profile(activities=activities) as traced:
        loop()
    names = {event.key for event in traced.key_averages()}
    assert {"ndd.resize (call)", "ndd: wait for readers.File", "ndd: wait for crop_mirror_normalize"} <= names
    with ndd.EvalMode.sync_cpu, ndd.profile(), torch.profiler.profile(activities=activities) as traced:
        loop()
    assert {"ndd.resize", "ndd.decoders.image"} <= {event.key for event in traced.key_averages()}
    with torch.profiler.profile(activities=activities) as traced:
        loop()
    assert not any(event.key.startswith("ndd") for event in traced.key_averages())


@pytest.mark.parametrize("nvtx", [None, True, False])
def test_ranges_in_nsight_systems(nvtx, monkeypatch):
    pushed, depth = [], []
    monkeypatch.setattr("ndd.profiling.loop_profile.has_gpu", lambda: True)
    monkeypatch.setattr(torch.cuda.nvtx, "range_push", lambda name: (pushed.append(name), depth.append(name)))
    monkeypatch.setattr(torch.cuda.nvtx, "range_pop", lambda: depth.pop())
    with ndd.profile(nvtx=nvtx), ndd.EvalMode.sync_cpu:
        ndd.flip(np.zeros((4, 4, 3), np.uint8))
    assert ("ndd.flip" in pushed) == (nvtx is not False)
    assert not depth


def test_a_profile_that_is_never_read_keeps_no_events():
    """With NDD_NVTX=1 one is on for the life of the process."""
    span = Span("resize", "operator", 0, 1, "loop", timing=object())
    for keeps in (True, False):
        profile = Profile(keeps_spans=keeps)
        profile.add(span)
        assert len(profile._timed) == keeps


def test_one_image_is_no_plural():
    with ndd.profile() as p:
        ndd.flip(ndd.demo.photo("cat")).torch()
    assert ", 1 image, " in str(p)


@pytest.mark.parametrize("depth", [1, 2])
def test_a_loop_over_a_pipeline_waits_for_its_outputs(depth):
    """Not the thread that makes them, which took the reader's batches; and what that thread does ahead is not the loop's."""

    @ndd.pipeline_def(batch_size=4, num_threads=2, device_id=None, prefetch_queue_depth=depth)
    def pipe():
        jpegs, _ = ndd.fn.readers.file(file_root=str(ndd.demo.photos()))
        return ndd.fn.resize(ndd.fn.decoders.image(jpegs), size=[32, 32])

    made = pipe()
    with ndd.profile() as p:
        for _ in range(3):
            made.run()
    assert p.loop_thread == threading.get_native_id()
    assert p.images == 12
    assert rows(p)["pipeline"].calls == 3
    assert 0 < p.waited <= p.seconds
    before = str(p)
    made.run()
    made.run()
    assert str(p) == before
    assert [event["tid"] for event in trace.events(p) if event["name"] == "wait for pipeline"] == [p.loop_thread] * 3
    if made._ahead is not None:  # else it would read into what the next test measures
        made._ahead.stop()
        made._ahead.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_a_loop_thread_of_its_own():
    """Its main thread keeps the name, and before Python 3.13 the number, of its parent's."""
    child = os.fork()
    if not child:
        with ndd.profile() as p:
            list(ndd.readers.File(file_root=str(ndd.demo.photos())).next_epoch(batch_size=8))
        os._exit(int(p.loop_thread != threading.get_native_id() or not p.waited))
    assert os.waitpid(child, 0)[1] == 0


def test_a_loop_without_ndd_is_not_said_to_wait_for_nothing():
    with ndd.profile() as p:
        time.sleep(0.001)
    assert "No reader and no operator of ndd ran" in str(p)
    assert "0.0 %" not in str(p)
