"""Samples that threads take in turn inside compiled loops: each is done once, and errors are those of sample by sample."""

from __future__ import annotations

import functools
import threading
import time
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import ndd
from ndd._compiled.background import background
from ndd._compiled.intrinsics import array_at
from ndd._compiled.jit import kernel
from ndd._compiled.sample_loops import _by_fallback, next_index
from ndd._operator import Plan, all_operators, on_cpu, partition
from ndd._operator.partition import CostEstimate, parallel_for

LARGE = 1 << 30  # bytes: worth all threads


@kernel
def mark(counter, limit, places, like):
    for _ in range(limit):
        i = next_index(counter)
        if i >= len(places):
            break
        array_at(places[i], 2, like)[1] += 1 + i
    return True


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("nbytes", [0, LARGE])
def test_each_is_done_once(threads, nbytes):
    marks = np.zeros((500, 2), np.int32)
    places = marks.ctypes.data + 8 * np.arange(500)
    assert parallel_for(ndd.EvalContext(num_threads=threads), mark, (places, marks[0]), 500, nbytes, marks)
    np.testing.assert_array_equal(marks[:, 0], 0)
    np.testing.assert_array_equal(marks[:, 1], np.arange(1, 501))


def test_calls_end_so_that_python_can_look_for_signals():
    limits = []

    def loop(counter, at_most):
        limits.append(at_most)
        counter[0] += at_most
        return True

    assert parallel_for(ndd.EvalContext(num_threads=1), loop, (), 100, 100 * LARGE, None)
    assert limits == [1] * 100


def test_what_was_compiled_meanwhile_has_all_threads(tasks):
    """However often it was left before."""
    cost, context = CostEstimate(), ndd.EvalContext(num_threads=3)
    for _ in range(10):
        assert not parallel_for(context, lambda *counter: False, (), 10, LARGE, None, cost)
    assert tasks == []
    marks = np.zeros((10, 2), np.int32)
    places = marks.ctypes.data + 8 * np.arange(10)
    for _ in range(3):
        assert parallel_for(context, mark, (places, marks[0]), 10, LARGE, marks, cost)
    assert tasks == [3] * 3


def test_a_fallback_says_little_of_what_is_compiled():
    cost = CostEstimate()
    for _ in range(100):
        if cost.is_due():
            cost.note(1.0)
    while not cost.is_due():
        pass
    cost.note(0.01)
    assert cost.seconds == 0.01


@pytest.mark.parametrize(("nbytes", "cost", "calls"), [(LARGE, CostEstimate(1.0), 3), (LARGE, None, 1), (0, None, 1)])
def test_what_is_being_compiled_is_left(nbytes, cost, calls):
    result = []
    assert not parallel_for(
        ndd.EvalContext(num_threads=3), lambda *counter: result.append(1), (), 10, nbytes, None, cost
    )
    assert len(result) == calls


@pytest.mark.parametrize(("seconds", "threads"), [(1e-3, 5), (1e-6, 4), (1e-7, 1)])
def test_as_many_threads_as_the_work_is_worth(seconds, threads):
    """A tenth of a second for 100 samples, a tenth of a millisecond (20 times what a thread costs), and a hundredth of one."""
    used = []

    class Pool:
        def run(self, share, count):
            used.append(count)
            share(0)
            return {}

    context = SimpleNamespace(num_threads=5, thread_pool=Pool())

    def loop(counter, limit):
        counter[0] += limit
        return True

    assert parallel_for(context, loop, (), 100, 1 << 14, None, CostEstimate(seconds * 100 / (1 << 14)))
    assert used == ([threads] if threads > 1 else [])


def test_the_pace_of_a_loop():
    """The first call may have compiled; later ones are looked at now and then."""
    cost = CostEstimate()
    for seconds in (8.0, 2.0, 4.0):
        assert cost.is_due()
        cost.note(seconds)
    assert cost.seconds == 2.0
    assert sum(cost.is_due() for _ in range(640)) == 10
    cost.note(4.0)
    assert cost.seconds == 3.0


def test_much_work_with_few_bytes_is_shared_too():
    used = set()

    def loop(counter, limit):
        for _ in range(limit):
            if counter[0] >= 20:
                break
            counter[0] += 1
            used.add(threading.current_thread())
            time.sleep(0.005)
        return True

    assert parallel_for(ndd.EvalContext(num_threads=3), loop, (), 20, 1 << 14, None)
    assert len(used) == 3


def test_errors_come_through():
    def loop(counter, limit):
        raise MemoryError("nothing left")

    with pytest.raises(MemoryError, match="nothing left"):
        parallel_for(ndd.EvalContext(num_threads=2), loop, (), 10, LARGE, None, CostEstimate(1.0))


def images(rng, count=6):
    return [rng.integers(0, 256, (20 + 3 * k, 50 - 4 * k, 3), np.uint8) for k in range(count)]


@pytest.mark.parametrize("kind", [None, pytest.param(ndd.float32, marks=pytest.mark.long)])  # four more kernels
def test_resampling_gives_the_same_as_for_samples_alone(kind, monkeypatch):
    """Among them samples that stay as they are, or along one axis, empty ones, and the nearest pixel."""
    monkeypatch.setattr(background, "allowed", False)
    rng = np.random.default_rng(1)
    data = [*images(rng), rng.integers(0, 256, (24, 36, 3), np.uint8), rng.integers(0, 256, (24, 20, 3), np.uint8)]
    data += [np.zeros((0, 7, 3), np.uint8)]
    filters = [ndd.types.INTERP_LINEAR, ndd.types.INTERP_NN, ndd.types.INTERP_LANCZOS3] * 3
    with ndd.EvalContext(num_threads=3):
        for layout, arrays in (("HWC", data), ("CHW", [a.transpose(2, 0, 1).copy() for a in data])):
            result = ndd.resize(
                ndd.batch(arrays, layout=layout), size=[24, 36], dtype=kind, interp_type=ndd.batch(filters)
            )
            for array, interp_type, item in zip(arrays, filters, result.tensors, strict=True):
                alone = ndd.resize(ndd.tensor(array, layout=layout), size=[24, 36], dtype=kind, interp_type=interp_type)
                np.testing.assert_array_equal(np.asarray(item), np.asarray(alone))


def test_an_operator_runs_a_loop_for_each_thread(tasks, monkeypatch):
    """Not for each of the samples; and what it leaves is done by the kernel for one sample."""
    monkeypatch.setattr(background, "allowed", False)
    rng = np.random.default_rng(2)
    data = [rng.integers(0, 256, (150, 200 + k, 3), np.uint8) for k in range(12)]
    monkeypatch.setattr(all_operators()["random_resized_crop"], "cpu", None)
    with ndd.EvalContext(num_threads=3):
        result = ndd.random_resized_crop(ndd.batch(data, layout="HWC"), size=[90, 80], rng=ndd.random.RNG(seed=1))
        ndd.crop_mirror_normalize(result, mean=[1.0], std=[2.0]).evaluate()
    assert tasks == [3, 3]


@pytest.mark.parametrize("kind", [np.uint8, *(pytest.param(k, marks=pytest.mark.long) for k in (np.float16, np.int32))])
def test_normalising_gives_the_same_while_it_is_compiled(kind, monkeypatch):
    rng = np.random.default_rng(3)
    data = [array.astype(kind) for array in images(rng)]
    arguments = {"crop": [12, 14], "mean": [1.0, 2.0, 3.0], "std": [4.0], "pad_output": True}
    arguments |= {"mirror": ndd.batch([0, 1] * 3), "dtype": ndd.float16, "output_layout": "HWC"}
    batch = ndd.batch(data, layout="HWC")
    result = np.asarray(ndd.crop_mirror_normalize(batch, **arguments).torch()).copy()
    monkeypatch.setattr(partition, "loop_over_samples", lambda item: functools.partial(_by_fallback, item))
    np.testing.assert_array_equal(np.asarray(ndd.crop_mirror_normalize(batch, **arguments).torch()), result)
    empty = ndd.crop_mirror_normalize(ndd.batch([np.zeros((0, 5, 3), kind)] * 2, layout="HWC"), mean=[1.0])
    assert empty.shape == [(3, 0, 5)] * 2


def test_ctrl_c_leaves_the_others_their_memory():
    """The caller's share ends at once, while other threads still write."""
    begun, go_on, alive = threading.Event(), threading.Event(), []
    held = np.zeros(10)
    seen = weakref.ref(held)

    def loop(counter, limit):
        if threading.current_thread() is caller:
            begun.wait(30)
            raise KeyboardInterrupt
        begun.set()
        go_on.wait(30)
        alive.append(seen() is not None)
        counter[0] = 10
        return True

    caller = threading.current_thread()
    context = ndd.EvalContext(num_threads=2)
    with pytest.raises(KeyboardInterrupt):
        parallel_for(context, loop, (), 10, LARGE, held, CostEstimate(1.0))
    del held
    go_on.set()
    context.thread_pool.run(lambda i: None, 2)
    for _ in range(3000):
        if alive:
            break
        time.sleep(0.01)
    assert alive == [True]


@kernel
def scale(x, out, factor, row, shift):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * factor + row[1] + shift


def scaled(item):
    """An operator `factor x + row[1] + shift` with this kernel for one sample."""

    @ndd.operator(register=False)
    def scaled(x, /, *, factor: ndd.PerSample[float] = 2.0, shift: int = 3):
        """factor x + row[1] + shift."""
        return ndd.like(x)

    @scaled.plan
    def _(x, *, factor, shift):
        rows = np.arange(2 * x.n, dtype=np.float32).reshape(x.n, 2)
        return Plan(x.shapes, {"factor": factor.each(), "row": rows}, {"shift": shift})

    scaled.cpu(item)
    return scaled


@pytest.mark.parametrize("background_too", [True, False])
@pytest.mark.parametrize("layout", ["apart", "strided", "whole", "read-only"])
def test_a_compiled_kernel_for_one_sample_runs_in_turns(layout, background_too, monkeypatch):
    """Each sample has its own extents, numbers and rows."""
    monkeypatch.setattr(background, "allowed", background_too)
    own = kernel(scale.function)
    if background_too:
        own.fallback()
    monkeypatch.setattr(on_cpu._Bound, "_one_by_one", None)  # no sample is left to be done alone
    count = 9
    sizes = [20] * count if layout == "whole" else range(4, 4 + count)
    arrays = [np.full((size, 3000), k, np.float32) for k, size in enumerate(sizes)]
    if layout == "strided":
        arrays = [a.repeat(2, 1)[:, ::2] for a in arrays]
    for a in arrays:
        a.flags.writeable = layout != "read-only"
    batch = ndd.as_batch(np.stack(arrays)) if layout == "whole" else ndd.as_batch([ndd.as_tensor(a) for a in arrays])
    with ndd.EvalContext(num_threads=3):
        result = scaled(own)(batch, factor=ndd.batch([float(k) for k in range(count)]), shift=5)
        for k, item in enumerate(result.tensors):
            np.testing.assert_array_equal(np.asarray(item), np.full_like(arrays[k], k * k + 2 * k + 1 + 5))
    background.finish()
