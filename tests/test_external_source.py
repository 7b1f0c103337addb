"""`ExternalSource`: the same scenarios as DALI's; prefetching threads and processes."""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import threading

import numpy as np
import pytest
import torch
from scenarios import outcomes

import ndd
from ndd import external_source

a = np.arange(3)
h = np.arange(6.0).reshape(2, 3)


def items(m, do):
    for data in (
        a,
        3,
        2.5,
        [a, a],
        (a, a),
        (a,),
        [],
        (),
        [1, 2],
        np.zeros(0),
        torch.arange(3),
        np.float32(2),
        None,
        {},
    ):
        do(lambda data=data: m.ExternalSource(lambda: data)())
        do(lambda data=data: m.ExternalSource(lambda: data)(batch_size=2))
    for data in (m.tensor(h, layout="HW"), m.batch([h, h], layout="HW")):
        do(lambda data=data: m.ExternalSource(lambda: data)())
        do(lambda data=data: m.ExternalSource(lambda: data, layout="WH", dtype=m.float32)())
        do(lambda data=data: m.ExternalSource(lambda: data)(batch_size=2))
        do(lambda data=data: m.ExternalSource(lambda: data)(batch_size=3))
    do(lambda: m.ExternalSource(lambda: a)(batch_size=-1) and None)
    do(lambda: m.ExternalSource(lambda: a)(2))
    tensors = importlib.import_module("ndd.tensors" if m is ndd else "nvidia.dali.tensors")
    for data in (
        tensors.TensorCPU(h, "HW"),
        tensors.TensorListCPU(np.stack([h, h]), "HW"),
        tensors.TensorListCPU([h, h[:1]]),
    ):
        do(lambda data=data: m.ExternalSource(lambda: data)())
        do(lambda data=data: m.ExternalSource(lambda: data)(batch_size=2))


def outputs(m, do):
    for count in (0, -1, 2.0, None):
        do(lambda count=count: m.ExternalSource(lambda: (a, a), num_outputs=count)())
    for data in ((a, a + 1), [a, a + 1], a, (a, a, a), {"a": a, "b": a}, np.zeros((2, 3)), (a, m.batch([a, a]))):
        do(lambda data=data: m.ExternalSource(lambda: data, 2)())
        do(lambda data=data: m.ExternalSource(lambda: data, num_outputs=2)(batch_size=2))
    do(lambda: m.ExternalSource(lambda: (m.batch([a]), m.batch([a, a])), 2)())


def described(m, do):
    for layout in ("HW", ["HW"], ["HW", "HW"], "HWC", None, ""):
        do(lambda layout=layout: m.ExternalSource(lambda: h, layout=layout)())
        do(lambda layout=layout: m.ExternalSource(lambda: (h, h), 2, layout=layout)())
    for layout in (["HW", None], ["HW", ""], ["HW"] * 3):
        do(lambda layout=layout: m.ExternalSource(lambda: (h, a), 2, layout=layout)())
    for dtype in (m.float32, np.uint8, [m.float32, m.uint8], [m.float32], [m.float32, None]):
        do(lambda dtype=dtype: m.ExternalSource(lambda: (h, a), 2, dtype=dtype)())
    do(lambda: m.ExternalSource(lambda: a, device="nowhere") and None)


def sources(m, do):
    def two():
        yield a
        yield a + 1

    class Both:
        def __iter__(self):
            return iter([a])

        def __call__(self):
            return a + 9

    for source in (
        [a, a + 1], iter([a, a + 1]), np.arange(6).reshape(2, 3), two, two(), Both(), lambda x: a, lambda x=1: a, 5,
        lambda *x: a, lambda **x: a, lambda *, x=1: a,
    ):  # fmt: skip
        do(lambda source=source: [m.ExternalSource(source)() for _ in range(2)] and m.ExternalSource(source)())
    for cycle in (None, False, True, "no", "quiet", "raise", "other", 1, 0):
        for source in ([a, a + 1], two, two(), lambda: a, []):
            do(lambda cycle=cycle, source=source: m.ExternalSource(source, cycle=cycle) and None)
            try:
                again = m.ExternalSource(source, cycle=cycle)
            except Exception:
                continue
            for _ in range(6):
                do(lambda again=again: again())

    def failing():
        raise KeyError("x")

    do(lambda: m.ExternalSource(failing)())


@pytest.mark.oracle
@pytest.mark.parametrize("scenario", [items, outputs, described, sources], ids=lambda s: s.__name__)
def test_as_dali(scenario):
    dali = pytest.importorskip("nvidia.dali.experimental.dynamic")
    ours, theirs = outcomes(scenario, ndd), outcomes(scenario, dali)
    assert [(i, o, t) for i, (o, t) in enumerate(zip(ours, theirs, strict=True)) if o != t] == []


def test_words_of_errors():
    with pytest.raises(ValueError, match="no parameters"):
        ndd.ExternalSource(lambda x: a)
    with pytest.raises(ValueError, match="Expected batch size 3, got 2"):
        ndd.ExternalSource(lambda: ndd.batch([a, a]))(batch_size=3)
    with pytest.raises(ValueError, match="Expected 2 outputs"):
        ndd.ExternalSource(lambda: a, 2)()
    with pytest.raises(ValueError, match="Expected a sequence of size 2, got 1"):
        ndd.ExternalSource(lambda: a, 2, layout=["HW"])
    with pytest.raises(ValueError, match=r"output 1: .*layout"):
        ndd.ExternalSource(lambda: (h, a), 2, layout="HW")()
    with pytest.raises(ValueError, match=r"sequence.*processes=1"):
        ndd.ExternalSource(iter([a]), processes=2)


def test_outputs_are_copies():
    shared = np.zeros(2)

    def counting():
        shared[:] += 1
        return shared

    for prefetch in (0, 3):
        shared[:] = 0
        source = ndd.ExternalSource(counting, prefetch=prefetch)
        assert [source().torch().tolist() for _ in range(3)] == [[1, 1], [2, 2], [3, 3]]


def test_a_thread_takes_items_ahead_and_keeps_their_order():
    names, taken = [], threading.Semaphore(0)

    def numbers():
        for i in range(3):
            names.append(threading.current_thread().name)
            taken.release()
            yield np.full(1, i)
        raise KeyError("broken")

    source = ndd.ExternalSource(numbers, prefetch=2)
    assert source().item() == 0
    for _ in range(3):  # the second and third item are taken before they are asked for
        assert taken.acquire(timeout=60)
    assert set(names) == {"ndd-source-0"}
    assert [source().item() for _ in range(2)] == [1, 2]
    with pytest.raises(KeyError, match="broken"):
        source()
    cycled = ndd.ExternalSource([1, 2], cycle="raise", prefetch=5)
    got = []
    for _ in range(6):
        try:
            got.append(cycled().item())
        except StopIteration:
            got.append("end")
    assert got == [1, 2, "end", 1, 2, "end"]


class Squares:
    """A sequence that tells who made its items."""

    def __len__(self):
        return 6

    def __getitem__(self, k):
        if k == 5:
            raise KeyError("five")
        return np.full((k + 1, 2), k * k, np.int16), os.getpid()


def test_processes_share_out_a_sequence():
    source = ndd.ExternalSource(Squares(), 2, processes=2, layout=["HW", None])
    result = [source() for _ in range(5)]
    assert [image.shape for image, _ in result] == [(k + 1, 2) for k in range(5)]
    assert [image.torch().tolist()[0][0] for image, _ in result] == [k * k for k in range(5)]
    assert {str(image.dtype) for image, _ in result} == {"i16"}
    assert result[0][0].layout == "HW"
    makers = {pid.item() for _, pid in result}
    assert len(makers) == 2
    assert os.getpid() not in makers
    with pytest.raises(KeyError, match="five"):
        source()


def test_a_pickle_of_it_is_refused_with_a_sentence():
    with pytest.raises(TypeError, match=r"ExternalSource cannot be pickled or copied: .* Make one in each process"):
        pickle.dumps(ndd.ExternalSource([1, 2]))


def test_the_end_says_how_to_begin_again():
    source = ndd.ExternalSource([1])
    source()
    for _ in range(2):
        with pytest.raises(StopIteration, match=r'has ended. cycle="quiet" begins again'):
            source()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_leaves_the_items_to_its_parent():
    """It would take them from the processes, and the parent would wait for ever."""
    items = external_source._OfThisProcess(iter([0, 1]))  # in the place of torch's loader, whose processes take seconds
    assert next(items) == 0
    child = os.fork()
    if child == 0:
        try:
            next(items)
        except RuntimeError as error:
            os._exit(0 if "make one in each process" in str(error) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert list(items) == [1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_takes_items_ahead_on_a_thread_of_its_own():
    """What the parent's thread was about to take when it forked nobody takes here."""
    entered, go_on = threading.Event(), threading.Event()

    def take():
        entered.set()
        go_on.wait(60)
        return 7

    source = ndd.ExternalSource(take, prefetch=2)
    asker = threading.Thread(target=source)
    asker.start()
    entered.wait(60)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        go_on.set()
        os._exit(source().item() != 7)
    go_on.set()
    assert os.waitpid(child, 0)[1] == 0
    asker.join()
    assert source().item() == 7
